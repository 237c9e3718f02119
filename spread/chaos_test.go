package spread_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/rig/lane"
	"github.com/succession-dev/succession/memory"
)

var (
	schedules = flag.Int("schedules", 12, "how many schedules TestMovesThroughFaults tries")
	seed      = flag.Uint64("seed", 0, "the first of them")
)

// Operators move an election to and fro, give up, take moves back and end them, while processes
// crash and are cut off, their clocks drift, connections break, answers are lost, servers lag behind, and clusters are out.
// Nobody leads beside another, tokens grow, no write of a leader is lost, and afterwards the election is led and can be moved.
//
//	go test ./spread -run MovesThroughFaults -schedules 10000
//	go test ./spread -run MovesThroughFaults -schedules 1 -seed 4711
func TestMovesThroughFaults(t *testing.T) {
	lane.Unraced(t)
	for i := range *schedules {
		seed := *seed + uint64(i)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) { movesThroughFaults(t, w, rand.New(rand.NewPCG(1, seed))) }, "a", "b", "c", "d")
		})
	}
}

// A ledger is a record that leaders count in, and what was told of its writes.
type ledger struct {
	mu    sync.Mutex
	known map[int]uint64 // the token that a count was written with, of those that were said to be written
}

// keep counts on until ctx ends.
func (l *ledger) keep(ctx context.Context, t *testing.T, term *elect.Term) {
	const name = election + ".ledger"
	for ; ctx.Err() == nil; _ = backoff.Sleep(ctx, 2*time.Second) {
		r, err := term.Get(ctx, name)
		if err != nil {
			continue
		}
		var n int
		var token uint64
		if r.Version != backend.Absent {
			if _, err := fmt.Sscan(string(r.Value), &n, &token); err != nil {
				t.Errorf("the ledger says %q", r.Value)
			}
		}
		if _, err := term.Put(ctx, name, fmt.Append(nil, n+1, term.Token()), r.Version); err != nil {
			continue
		}
		l.mu.Lock()
		if of, known := l.known[n+1]; known {
			t.Errorf("the leader with token %d has counted to %d, as the one with %d had before", term.Token(), n+1, of)
		}
		if token > term.Token() {
			t.Errorf("the leader with token %d has written over what the one with %d had written", term.Token(), token)
		}
		l.known[n+1] = term.Token()
		l.mu.Unlock()
	}
}

// last returns how far it was counted, as far as that was told.
func (l *ledger) last() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for m := range l.known {
		n = max(n, m)
	}
	return n
}

func movesThroughFaults(t *testing.T, w *world, r *rand.Rand) {
	home(t, w.process("first", "a", "b", "c"))
	names := []string{"a", "b", "c", "d"}
	var all []*process
	started := 0
	kept := &ledger{known: make(map[int]uint64)}
	begin := func() *process {
		started++
		p := w.process(fmt.Sprint("p", started), "a", "b", "c", "d")
		p.early = ttl / 10 * time.Duration(r.IntN(199)-99) / 100 // the default margin covers it
		p.works = func(ctx context.Context, term *elect.Term) { kept.keep(ctx, t, term) }
		p.stop = p.run(election)
		return p
	}
	for range 4 {
		all = append(all, begin())
	}

	// Two operators. An error of theirs is none of the test's, unless it says that a record is damaged.
	ctx, calm := context.WithCancel(w.ctx)
	for range 2 {
		dice := rand.New(rand.NewPCG(2, r.Uint64()))
		w.wg.Go(func() {
			for ctx.Err() == nil {
				op := w.process("operator", names...)
				step, cancel := context.WithTimeout(ctx, time.Duration(dice.IntN(40))*time.Second)
				var err error
				switch n := dice.IntN(8); {
				case n < 4:
					err = op.Move(step, election, names[dice.IntN(4)], nil)
				case n < 5:
					err = op.Abort(step, election)
				default:
					err = op.Finish(step, election, nil)
				}
				cancel()
				op.Close()
				if errors.Is(err, backend.ErrHeader) {
					t.Errorf("an operator: %v", err)
				}
				select {
				case <-ctx.Done():
				case <-time.After(time.Duration(dice.IntN(5000)) * time.Millisecond):
				}
			}
		})
	}
	for range 40 {
		i := r.IntN(len(all))
		p, cluster := all[i], names[r.IntN(4)]
		lasts := time.Duration(r.IntN(25)) * time.Second
		switch r.IntN(7) {
		case 0:
			p.each(cluster, (*memory.Backend).Disconnect)
		case 1:
			p.each(cluster, (*memory.Backend).Cut)
			time.AfterFunc(lasts, func() { p.each(cluster, (*memory.Backend).Heal) })
		case 2:
			w.c[cluster].Pause()
			time.AfterFunc(lasts, w.c[cluster].Resume)
		case 3:
			for _, p := range all {
				p.each(cluster, func(b *memory.Backend) { b.LoseAnswer(memory.OpPut, memory.OpJoin, memory.OpPin, memory.OpLeave) })
			}
		case 4:
			p.killed.Store(true)
			for _, cluster := range names {
				p.each(cluster, (*memory.Backend).Kill)
			}
			w.wg.Go(p.stop)
			all[i] = begin()
		case 5:
			w.c[cluster].Restart()
		case 6:
			p.each(cluster, func(b *memory.Backend) { b.Lag(lasts) })
			time.AfterFunc(lasts, func() { p.each(cluster, func(b *memory.Backend) { b.Lag(0) }) })
		}
		time.Sleep(time.Duration(r.IntN(8000)) * time.Millisecond)
	}
	calm()
	for _, c := range w.c {
		c.Resume()
	}
	for _, p := range all {
		for _, cluster := range names {
			p.each(cluster, func(b *memory.Backend) { b.Heal(); b.Lag(0) })
		}
	}
	op := w.process("last operator", names...)
	h, _, err := op.Where(w.ctx, election)
	if err != nil {
		t.Fatal(err)
	}
	if h.To != "" {
		// Who was cut off until now, and has not heard yet that the election is elsewhere, is in the way until it has.
		var err error
		w.until("nobody stands in the way of the move", time.Minute, func() bool {
			err = op.Move(w.ctx, election, h.To, nil)
			return err == nil || !strings.Contains(err.Error(), "stand in line")
		})
		if err != nil && strings.Contains(err.Error(), "abort again") { // one that was killed while it aborted
			err = op.Abort(w.ctx, election)
		} else if err == nil {
			w.finish(op, election)
		}
		if err != nil {
			t.Fatalf("from %s to %s: %v", h.At, h.To, err)
		}
	}
	w.until("somebody leads", 5*time.Minute, func() bool { return w.leader(election) != "" })
	h, _, _ = op.Where(w.ctx, election)
	w.until("nobody stands elsewhere", ttl, func() bool { // who joined there at the last moment has met the seal
		return !slices.ContainsFunc(names, func(c string) bool {
			return c != h.At && slices.ContainsFunc(w.c[c].Members(election), func(m backend.Member) bool { return !m.Pinned })
		})
	})
	if at := w.at(election); at != h.At {
		t.Errorf("the election is led on %q, and lives on %s", at, h.At)
	}
	n := kept.last()
	w.until("leaders count on", 5*time.Minute, func() bool { return kept.last() > n })
	t.Logf("%d terms, %d processes, %d writes", w.count(election), started, kept.last())
}
