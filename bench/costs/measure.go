package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/succession-dev/succession/bench/internal/candidate"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

const (
	// longSession is for handovers: no session is to end while a machine is busy with ten
	// thousand candidates.
	longSession = time.Minute
	// warmUp is how many handovers are not counted, or as many as are: servers compile and caches
	// fill meanwhile.
	warmUp = 20
	// jobs is how many lines are measured at a time where all mostly wait.
	jobs = 4
)

// handovers measures the lines of all libraries on one server, and the floor: a handover of each at
// a time, in random order, so that all meet the same machine. It also measures how long it takes
// until all stand who join at once, and one leads.
func (b *bench) handovers(ctx context.Context, coordinator string, libraries []candidate.Library, n, processes int) error {
	p, err := start(ctx, coordinator, b.disk)
	if err != nil {
		return err
	}
	defer p.stop()
	of := func(library, version string) *figure {
		return &figure{
			Measure: handover, Coordinator: coordinator, Server: p.version, Library: library, Version: version, N: n, Processes: processes,
			Date: time.Now().Format(time.DateOnly), NoDisk: !b.disk,
		}
	}
	type turn struct {
		*figure
		once func(context.Context) (time.Duration, error)
		err  error
	}
	var turns []*turn
	for _, l := range slices.Concat([]candidate.Library{candidate.FloorOf(coordinator)}, libraries) {
		if l.Most > 0 && n > l.Most {
			continue
		}
		f, size := of(l.Name, l.Version()), n
		if l.Name == candidate.Floor { // which costs the same at any length
			size = max(2, min(n, processes))
		}
		q, err := open(ctx, p, l, min(n, processes), how{session: cmp.Or(l.Session, longSession)})
		if err == nil {
			defer q.close()
			err = q.assemble(ctx, f, size, b.limit)
		}
		if err != nil {
			b.measured(ctx, f, err)
			continue
		}
		turns = append(turns, &turn{figure: f, once: q.handover})
	}
	skip := min(warmUp, b.times)
	for i := range skip + b.times {
		rand.Shuffle(len(turns), func(i, j int) { turns[i], turns[j] = turns[j], turns[i] })
		for _, t := range turns {
			if t.err != nil {
				continue
			}
			var took time.Duration
			if took, t.err = t.once(ctx); t.err == nil && i >= skip {
				t.Times = append(t.Times, took)
			}
		}
	}
	for _, t := range turns {
		b.measured(ctx, t.figure, t.err)
	}
	return nil
}

// assemble has n candidates join at once, and waits until all stand and one leads. How long that
// takes is unknown where nobody can tell who stands.
func (q *line) assemble(ctx context.Context, f *figure, n int, limit time.Duration) error {
	begin := time.Now()
	if err := q.join(n, q.processes...); err != nil {
		return err
	}
	stood, err := q.stand(ctx, limit)
	f.Stood, f.Start = stood, time.Since(begin)
	if err != nil {
		return err
	}
	at, err := q.elected(ctx)
	f.Start = max(f.Start, at.Sub(begin))
	if q.library.Unseen {
		f.Stood, f.Start = 0, 0
	}
	return err
}

// alone measures each library on a server of its own, some at a time.
func (b *bench) alone(ctx context.Context, measure string, libraries []candidate.Library, jobs, n int,
	do func(ctx context.Context, p *place, l candidate.Library, f *figure) error) error {
	slots := make(chan struct{}, jobs)
	var all sync.WaitGroup
	for _, l := range libraries {
		if l.Most > 0 && n > l.Most {
			continue
		}
		f := &figure{
			Measure: measure, Coordinator: l.Coordinator, Library: l.Name, Version: l.Version(), N: n, Session: b.session,
			Date: time.Now().Format(time.DateOnly), NoDisk: !b.disk,
		}
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			p, err := start(ctx, l.Coordinator, b.disk)
			if err == nil {
				defer p.stop()
				f.Server = p.version
				err = do(ctx, p, l, f)
			}
			b.measured(ctx, f, err)
		})
	}
	all.Wait()
	return nil
}

// failovers crashes one leader after the other, each in a process of its own, at a random moment
// between two heartbeats.
func (b *bench) failovers(ctx context.Context, p *place, l candidate.Library, f *figure) error {
	q, err := open(ctx, p, l, b.runs+1, how{session: b.session})
	if err != nil {
		return err
	}
	defer q.close()
	if err := q.join(b.runs+1, q.processes...); err != nil {
		return err
	}
	if _, err := q.elected(ctx); err != nil {
		return err
	}
	for range b.runs {
		if err := sleep(ctx, b.session/3+rand.N(b.session/3)); err != nil {
			return err
		}
		at := time.Now()
		q.leader.Kill()
		next, err := q.elected(ctx)
		if err != nil {
			return err
		}
		f.Times = append(f.Times, next.Sub(at))
	}
	return nil
}

// rest measures what a line costs in which nothing happens: one process has the leader, and another
// all who wait, whose processor time and memory are measured. Before that the leader is alone. What the server is sent while nobody is
// there does not count.
func (b *bench) rest(ctx context.Context, p *place, l candidate.Library, f *figure) error {
	// sessions is how many sessions' times are measured, of each state.
	const sessions = 2
	anyway := 0.0 // requests in a session time that the server is sent by itself, as an API server is, or by this program
	if p.requests != nil {
		before, err := p.requests(ctx)
		if err != nil {
			return err
		}
		if err := sleep(ctx, sessions*b.session); err != nil {
			return err
		}
		after, err := p.requests(ctx)
		if err != nil {
			return err
		}
		anyway = float64(after-before) / sessions
	}
	h := how{session: b.session, counted: true}
	q, err := open(ctx, p, l, 1, h)
	if err != nil {
		return err
	}
	defer q.close()
	if err := q.join(1, q.processes...); err != nil {
		return err
	}
	if _, err := q.elected(ctx); err != nil {
		return err
	}
	count := func() (requests int, bytes int64, used time.Duration, err error) {
		if p.requests != nil {
			if requests, err = p.requests(ctx); err != nil {
				return 0, 0, 0, err
			}
		}
		used, err = cpu(pids(q.processes[1:])...)
		return requests, q.bytes(), used, err
	}
	// spent is what happens in a session's time.
	spent := func() (requests, bytes float64, used time.Duration, took time.Duration, err error) {
		if err := sleep(ctx, b.session); err != nil { // what follows a start is not rest
			return 0, 0, 0, 0, err
		}
		was, wasBytes, wasUsed, err := count()
		if err != nil {
			return 0, 0, 0, 0, err
		}
		begin := time.Now()
		if err := sleep(ctx, sessions*b.session); err != nil {
			return 0, 0, 0, 0, err
		}
		is, isBytes, isUsed, err := count()
		return max(0, float64(is-was)/sessions-anyway), float64(isBytes-wasBytes) / sessions, isUsed - wasUsed, time.Since(begin), err
	}
	if f.Alone.Requests, f.Alone.Bytes, _, _, err = spent(); err != nil {
		return err
	}
	if err := q.start(ctx, 1, h); err != nil {
		return err
	}
	waits := q.processes[1]
	// What one more costs is what the second half adds: the first has what they share.
	half := f.N / 2
	var weights [2]weight
	for i, n := range []int{half, f.N - half} {
		if err := q.join(n, waits); err != nil {
			return err
		}
		if _, err := q.stand(ctx, b.limit); err != nil {
			return err
		}
		if weights[i], err = q.weigh(ctx, waits); err != nil {
			return err
		}
	}
	f.Memory = float64(weights[1].bytes()-weights[0].bytes()) / float64(f.N-half)
	f.Goroutines = float64(weights[1].goroutines-weights[0].goroutines) / float64(f.N-half)
	requests, bytes, used, took, err := spent()
	f.Requests, f.Bytes, f.CPU = requests, bytes, float64(used)/float64(took)
	return err
}

// server measures what a line costs its server in which nothing happens, and each candidate is in a process of its own, as in replicas of a service.
// What the server uses while nobody is there does not count.
func (b *bench) server(ctx context.Context, p *place, l candidate.Library, f *figure) error {
	const sessions = 4
	// used returns which share of a core it uses, and how much memory.
	used := func() (share, memory float64, err error) {
		if err := sleep(ctx, b.session); err != nil { // what follows a start is not rest
			return 0, 0, err
		}
		was, _, err := p.used()
		if err != nil {
			return 0, 0, err
		}
		begin := time.Now()
		if err := sleep(ctx, sessions*b.session); err != nil {
			return 0, 0, err
		}
		is, bytes, err := p.used()
		return float64(is-was) / float64(time.Since(begin)), float64(bytes), err
	}
	anyway, before, err := used()
	if err != nil {
		return err
	}
	q, err := open(ctx, p, l, f.N, how{session: b.session})
	if err != nil {
		return err
	}
	defer q.close()
	if err := q.assemble(ctx, f, f.N, b.limit); err != nil {
		return err
	}
	share, memory, err := used()
	f.CPU, f.Memory = max(0, share-anyway), max(0, memory-before)
	return err
}

// many measures elections of some candidates each, dealt to two processes or in one: how long it
// takes until all have a leader, what they cost at rest, and how many handovers there are in a
// second when each leader resigns at once.
func (b *bench) many(ctx context.Context, p *place, l candidate.Library, f *figure) error {
	f.Candidates, f.Processes = b.candidates, 2
	if b.together {
		f.Processes = 1
	}
	q, err := open(ctx, p, l, f.Processes, how{session: b.session, idle: true})
	if err != nil {
		return err
	}
	defer q.close()
	begin := time.Now()
	sent := make(chan error, 1)
	go func() {
		for i := range f.N {
			for j := range f.Candidates {
				if err := q.processes[j%f.Processes].Send(fmt.Sprint("join -", i)); err != nil {
					sent <- err
					return
				}
			}
		}
		sent <- nil
	}()
	err = q.await(ctx, func(e coordtest.PeerEvent) bool {
		if strings.HasPrefix(e.What, "elected-") {
			f.Stood++
			f.Start = max(f.Start, e.At.Sub(begin))
		}
		return f.Stood == f.N
	})
	if err = errors.Join(err, <-sent); err != nil {
		return fmt.Errorf("%d of %d elections have a leader: %w", f.Stood, f.N, err)
	}
	if err := sleep(ctx, b.session); err != nil {
		return err
	}
	used, err := cpu(pids(q.processes)...)
	if err != nil {
		return err
	}
	if err := sleep(ctx, b.session); err != nil {
		return err
	}
	usedThen, err := cpu(pids(q.processes)...)
	if err != nil {
		return err
	}
	f.CPU = float64(usedThen-used) / float64(b.session)
	if f.Candidates == 1 {
		return nil // nobody to hand over to
	}
	for _, p := range q.processes {
		if err := p.Send("rotate"); err != nil {
			return err
		}
	}
	count := func() (n int, at time.Time, err error) {
		answers, err := q.tell(ctx, "count", "count ")
		for _, a := range answers {
			k, _ := strconv.Atoi(a)
			n += k
		}
		return n, time.Now(), err
	}
	if err := sleep(ctx, b.session/10); err != nil {
		return err
	}
	n, from, err := count()
	if err != nil {
		return err
	}
	if err := sleep(ctx, b.session/2); err != nil {
		return err
	}
	then, to, err := count()
	f.Rate = float64(then-n) / to.Sub(from).Seconds()
	return err
}

// sleep waits.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
