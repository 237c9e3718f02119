package migrate_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/succession-dev/succession/internal/rig/lane"
	"github.com/succession-dev/succession/migrate"
)

// Everything at once: processes in every mode come and go and are cut off, operators
// begin, cut over and abort in either direction, and in the end it is finished.
func TestChaos(t *testing.T) {
	lane.Unraced(t)
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { inWorld(t, func(w *world) { chaos(w, seed) }) })
	}
}

func chaos(w *world, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	pick := func(d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }
	ops := map[string]*migrate.Backend{}
	for _, m := range []string{onBoth, onBack} {
		ops[m], _ = w.operator(m)
		defer ops[m].Close()
	}
	w.do(ops[onBoth].Begin, migrate.Begun)
	modes := []string{onOld, onNew, onBoth, onBoth, onBoth, onBack}
	procs := make([]*process, 4)
	for i := range procs {
		procs[i] = w.start(modes[r.IntN(len(modes))], fmt.Sprint("p", i))
	}
	for range 60 {
		i := r.IntN(len(procs))
		p := procs[i]
		switch r.IntN(9) {
		case 0, 1:
			p.end()
			procs[i] = w.start(modes[r.IntN(len(modes))], fmt.Sprint("p", i))
		case 2:
			if sub := p.sub[r.IntN(2)]; sub != nil {
				[]func(){sub.Cut, sub.CutAnswers, sub.CutRequests, sub.Disconnect}[r.IntN(4)]()
				time.AfterFunc(pick(2*ttl), sub.Heal)
			}
		case 3:
			if sub := p.sub[r.IntN(2)]; sub != nil {
				sub.LoseAnswer()
			}
		case 4:
			c := w.c[r.IntN(2)]
			if c.Pause(); r.IntN(2) == 0 {
				time.Sleep(pick(2 * ttl))
			}
			c.Resume()
		case 5, 6, 7:
			op := ops[[]string{onBoth, onBack}[r.IntN(2)]]
			f := []step{op.Begin, op.Cutover, op.Cutover, op.Abort, op.Finish}[r.IntN(5)]
			ctx, cancel := context.WithTimeout(w.ctx, pick(ttl))
			f(ctx, election)
			cancel()
		}
		time.Sleep(pick(ttl))
	}
	for _, p := range procs {
		for _, sub := range p.sub {
			if sub != nil {
				sub.Heal()
			}
		}
		p.end()
	}
	time.Sleep(3 * ttl)
	// Wherever it is, a new process and an operator bring it to an end.
	last := w.start(onBoth, "last")
	op := ops[onBoth]
	s, err := op.Status(w.ctx, election)
	if err != nil {
		w.t.Fatal(err)
	}
	switch s.Phase {
	case migrate.Aborting, migrate.Aborted:
		w.do(op.Abort, migrate.Aborted)
	case migrate.Begun, migrate.Asked, migrate.Sealed:
		w.do(op.Cutover, migrate.Moved)
	}
	if back, err := ops[onBack].Status(w.ctx, election); err != nil {
		w.t.Fatal(err)
	} else if back.Phase == migrate.Begun || back.Phase == migrate.Asked || back.Phase == migrate.Aborting {
		w.do(ops[onBack].Abort, migrate.Aborted)
	}
	w.leads(last)
	last.end()
}
