package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/succession-dev/succession/bench/internal/candidate"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// lockLibraries are the locks that are measured, and elections that are nothing else.
var lockLibraries = []string{
	"succession, Mutex", "concurrency.Mutex", "api.Lock", "zk.Lock", "Curator InterProcessMutex", "kazoo Election", // which is its Lock
	"pg_advisory_lock, pgx",
}

func isLock(l candidate.Library) bool {
	return slices.Contains(lockLibraries, l.Name) || l.Coordinator == candidate.Local
}

// lockRounds is how often the libraries take turns.
const lockRounds = 10

// locks measures how long it takes to lock and to unlock where nobody else wants the lock, and what requests that takes.
// All libraries are on one server, and take turns, in random order, so that all meet the same machine.
func (b *bench) locks(ctx context.Context, coordinator string, libraries []candidate.Library) error {
	p, err := start(ctx, coordinator, b.disk)
	if err != nil {
		return err
	}
	defer p.stop()
	type turn struct {
		*figure
		line     *line
		requests int
		err      error
	}
	var turns []*turn
	for _, l := range libraries {
		f := &figure{
			Measure: lock, Coordinator: coordinator, Server: p.version, Library: l.Name, Version: l.Version(), N: 1,
			Date: time.Now().Format(time.DateOnly), NoDisk: !b.disk,
		}
		q, err := open(ctx, p, l, 1, how{session: cmp.Or(l.Session, longSession), idle: true})
		if err != nil {
			b.measured(ctx, f, err)
			continue
		}
		defer q.close()
		turns = append(turns, &turn{figure: f, line: q})
	}
	for round := range lockRounds + 1 { // the first does not count
		rand.Shuffle(len(turns), func(i, j int) { turns[i], turns[j] = turns[j], turns[i] })
		for _, t := range turns {
			if t.err != nil {
				continue
			}
			var took []time.Duration
			sent := 0
			if took, sent, t.err = t.line.lockAndUnlock(ctx, max(1, b.times/lockRounds)); round > 0 {
				t.Times, t.requests = append(t.Times, took...), t.requests+sent
			}
		}
	}
	for _, t := range turns {
		if n := len(t.Times); n > 0 && p.requests != nil {
			t.Requests = float64(t.requests) / float64(n)
		}
		b.measured(ctx, t.figure, t.err)
	}
	return nil
}

// lockAndUnlock takes the lock of the line n times, and gives it back each time. It returns how long each took, and how many
// requests the server was sent.
func (q *line) lockAndUnlock(ctx context.Context, n int) (took []time.Duration, requests int, err error) {
	before := q.count(ctx, &err)
	for range n {
		begun := time.Now()
		if err == nil {
			err = q.join(1, q.processes...)
		}
		if err == nil {
			_, err = q.elected(ctx)
		}
		if err == nil {
			err = q.leader.Send("leave")
		}
		if err != nil {
			return took, 0, err
		}
		q.n--
		err = q.await(ctx, func(e coordtest.PeerEvent) bool { return e.What == "left" })
		took = append(took, time.Since(begun))
	}
	requests = q.count(ctx, &err) - before
	return took, requests, err
}

// lockTable has a row for each lock.
func (b *book) lockTable(w io.Writer) {
	figures := b.of(lock)
	if figures == nil {
		return
	}
	fmt.Fprintln(w, "\nTo lock and to unlock, where nobody else wants the lock:\n\n"+
		"| coordinator | | requests | p50, in milliseconds | p50 of succession / this |\n"+
		"|---|---|---|---|---|")
	for _, f := range figures {
		if len(f.Times) == 0 {
			continue
		}
		beside := "–"
		i := slices.IndexFunc(figures, func(g *figure) bool {
			return g.Coordinator == f.Coordinator && strings.HasPrefix(g.Library, candidate.Ours) && len(g.Times) > 0
		})
		name := f.library()
		if i >= 0 && figures[i] != f {
			beside = ratio(figures[i].quantile(0.5), f.quantile(0.5))
		} else if i >= 0 {
			name = "**" + name + "**"
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s |\n", f.coordinator(), name, f.sent(), ms(f.quantile(0.5)), beside)
	}
}
