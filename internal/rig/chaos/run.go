//go:build linux

package chaos

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/internal/rig/arena"
	"github.com/succession-dev/succession/internal/rig/evidence"
	"github.com/succession-dev/succession/internal/rig/worker"
)

// Options say what is run.
type Options struct {
	arena.Options
	On  string        // the coordinator; see [arena.Coordinators]
	For time.Duration // how long there are faults, at least: each kind comes once; what comes before and after takes up to a minute more

	// Steps are the faults, instead of a schedule that is drawn.
	Steps []arena.Step
}

const (
	candidates = 5
	servers    = 3 // of the coordinator, if it can have so many

	readyLimit = time.Minute // for a server to serve again
)

// A run is a chaos run.
type run struct {
	*arena.Arena
	o     Options
	c     *arena.Coordinator
	steps []step
}

// Run runs candidates against a coordinator while faults hit both, stops everything,
// and returns what the files that they leave behind prove. An error says that the run
// was not possible, or that ctx has ended; nothing that it started is left in either
// case. It blocks for Options.For and about a minute.
func Run(ctx context.Context, o Options) (out *Report, err error) {
	a, err := arena.New(o.Options, "alpha", "beta")
	if err != nil {
		return nil, err
	}
	r := &run{Arena: a, o: o}
	defer func() { r.end(out) }()
	r.Say("starting %s", o.On)
	if r.c, err = arena.StartSecured(ctx, o.On, o.Dir, servers); err != nil {
		return nil, err
	}
	records, err := r.play(ctx)
	if err != nil {
		return nil, err
	}
	return r.report(records)
}

// end ends what is left of the run, and keeps the servers' logs where something was broken.
func (r *run) end(out *Report) {
	r.Close()
	if r.c == nil {
		return
	}
	logs := r.Dir
	if out != nil && len(out.Violations) == 0 {
		logs = ""
	}
	if err := r.c.Stop(logs); err != nil {
		r.Say("%v", err)
	}
}

// play is the run itself, with a coordinator that serves. It returns what the guarded
// records hold at the end.
func (r *run) play(ctx context.Context) (records map[string]string, err error) {
	if err := r.draw(); err != nil {
		return nil, err
	}
	for i := range candidates {
		c, err := r.Add(r.c.Addrs())
		if err != nil {
			return nil, err
		}
		if r.c.Secured() {
			if err := c.Call(fmt.Sprintf("%s.%s", c.ID, arena.Domain)); err != nil {
				return nil, err
			}
		}
		c.URL = r.c.URL(i, c.Fronts())
		if err := c.Start(); err != nil {
			return nil, err
		}
	}
	if err := r.begun(ctx); err != nil {
		return nil, err
	}
	r.Say("%d candidates for %v of faults", len(r.Candidates), r.o.For)
	if err := r.strike(ctx); err != nil {
		return nil, err
	}
	r.Say("the faults are over; everybody is to lead again")
	r.rotate(ctx)
	since := r.Now()
	r.Dismiss()
	return r.look(ctx, since)
}

// begun waits until each election is led, so that the first faults strike leaders, however long it takes to start everybody.
func (r *run) begun(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	for _, election := range r.Elections {
		for {
			if _, ok := r.Live.Leader(election); ok {
				break
			}
			if err := backoff.Sleep(ctx, 20*time.Millisecond); err != nil {
				return fmt.Errorf("nobody leads %s yet: %w", election, err)
			}
		}
	}
	return nil
}

// draw draws the schedule and prints it.
func (r *run) draw() error {
	t := terrain{
		candidates: candidates, elections: len(r.Elections), servers: servers,
		session: r.c.TTL, vacancy: r.c.Vacancy(), length: r.o.For, can: r.can,
	}
	if r.c.Cluster != nil {
		t.servers = len(r.c.Servers())
	}
	if t.session == 0 {
		t.session = arena.Unhurried
	}
	if r.steps = r.o.Steps; r.steps == nil {
		r.steps = schedule(r.o.Seed, t)
	}
	r.o.For = max(r.o.For, end(r.steps))
	all := fmt.Sprintf("%s, seed %d, %v\n%s", r.o.On, r.o.Seed, r.o.For, text(r.steps))
	r.Say("%s", strings.TrimSpace(all))
	return os.WriteFile(filepath.Join(r.Dir, "schedule.txt"), []byte(all), 0o644)
}

// can reports whether what a fault needs is there.
func (r *run) can(n need) bool {
	switch n {
	case network:
		return r.c.Cluster != nil
	case isolation:
		return r.c.Cluster != nil && r.c.Linked()
	case security, membership, imports:
		return r.c.Secured()
	case store:
		return r.c.Below != nil
	case standby:
		return r.c.FailOver != nil
	case marks:
		return r.o.On == "consul"
	case sessionEnd:
		return r.c.End != nil
	}
	return true
}

// strike goes through the schedule, and returns when all faults have been undone.
func (r *run) strike(ctx context.Context) error {
	var faults sync.WaitGroup
	defer faults.Wait()
	began := r.Now()
	for _, s := range r.steps {
		if err := backoff.Sleep(ctx, began+s.At-r.Now()); err != nil {
			return err
		}
		faults.Go(func() { r.do(ctx, s) })
	}
	return backoff.Sleep(ctx, began+r.o.For-r.Now())
}

// rotate lets leader after leader resign until each candidate has led each election
// once more.
func (r *run) rotate(ctx context.Context) {
	since := r.Now()
	limit := 2*r.c.Vacancy() + time.Duration(len(r.Candidates))*evidence.Recovery
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	led := func(c *arena.Candidate, election string) bool {
		return r.Live.WonSince(arena.Seat{Candidate: c.ID, Election: election}, since)
	}
	for {
		all := true
		for _, election := range r.Elections {
			for _, c := range r.Candidates {
				if !led(c, election) {
					all = false
				}
			}
			if e, ok := r.Live.Leader(election); ok && !all {
				r.Candidate(e.Candidate).Resign()
			}
		}
		if all {
			return
		}
		if backoff.Sleep(ctx, rotation) != nil {
			break
		}
	}
	for _, election := range r.Elections {
		for _, c := range r.Candidates {
			if !led(c, election) {
				r.FailSince(since, arena.Stuck, "%s has not led %s in the %v since the faults were over", c.ID, election, limit)
			}
		}
	}
}

// rotation is how long each leads before its turn is over.
const rotation = time.Second

// look returns what the records hold, and finds fault with a line that is not empty, since everybody was to leave.
func (r *run) look(ctx context.Context, since time.Duration) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	s, err := r.c.Session(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.Refresh(ctx); err != nil {
		return nil, err
	}
	died, cancel := context.WithTimeout(ctx, r.c.Vacancy())
	defer cancel()
	records := make(map[string]string)
	for _, election := range r.Elections {
		line, err := s.Line(ctx, election)
		if err != nil {
			return nil, err
		}
		for _, m := range line.Members {
			rule := arena.Unclosed
			if err := s.Gone(died, m); died.Err() != nil {
				rule = "ghost"
			} else if err != nil {
				return nil, err
			}
			r.FailSince(since, rule, "%s stands in %s as %s (position %d), and everybody has left", m.Value, election, m.Key, m.Position)
		}
		for _, target := range []string{worker.Counter, worker.Last} {
			record, err := s.Get(ctx, worker.Record(target, election))
			if err != nil {
				return nil, err
			}
			records[record.Name] = string(record.Value)
		}
	}
	return records, nil
}
