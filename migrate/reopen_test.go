package migrate_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/migrate"
)

// sealedOnBoth moves the election to the new coordinator and back, and restores the old one from a
// backup that was made in between: it is sealed on both, towards each other.
func (w *world) sealedOnBoth() (there, back *migrate.Backend) {
	w.t.Helper()
	move := func(mode string) *migrate.Backend {
		op, p := w.underway(mode, "p")
		w.do(op.Cutover, migrate.Moved)
		p.end()
		return op
	}
	there = move(onBoth)
	restore := w.c[0].Snapshot()
	back = move(onBack)
	restore()
	for _, c := range w.c {
		if err := operate.New(c.Client("fence"), election, "").RaiseFence(w.ctx, 1_000_000); err != nil {
			w.t.Fatal(err)
		}
	}
	return there, back
}

// An election that is sealed on both coordinators is reopened on the one that an operator names.
func TestReopen(t *testing.T) {
	inWorld(t, func(w *world) {
		op, _ := w.sealedOnBoth()
		for _, f := range []step{op.Begin, op.Cutover, op.Finish} {
			w.refuses(f, backend.ErrHeader, "abort reopens it on "+oldURL)
		}
		if s, err := op.Status(w.ctx, election); err != nil || !strings.Contains(s.Next, "abort") {
			t.Errorf("the status is %+v, %v", s, err)
		}
		w.plans(op, migrate.Abort, true, "take away the seal on "+oldURL)
		w.do(op.Abort, migrate.Aborted)
		p := w.start(onOld, "p")
		w.leads(p)
		n := w.start(onNew, "n")
		<-n.done
		if !errors.Is(n.err, backend.ErrSealed) {
			t.Errorf("a client of the new one: %v, want %v", n.err, backend.ErrSealed)
		}
		w.do(op.Begin, migrate.Begun)
		p.end()
	})
}

// Of two who reopen it on different coordinators one does, whatever comes first; and who crashes
// before the seal has gone may begin again.
func TestReopenOnBoth(t *testing.T) {
	for first := range 2 {
		for writes := range 4 {
			inWorld(t, func(w *world) {
				there, back := w.sealedOnBoth()
				left := calls(int64(writes))
				o := &migrate.Options{From: oldURL, To: newURL}
				crashed := migrate.New(crashing{w.c[0].Client("c"), left}, crashing{w.c[1].Client("c"), left}, o)
				_, _ = crashed.Abort(w.ctx, election)
				crashed.Close()
				ops := []*migrate.Backend{there, back}
				won := 0
				done := make(chan error, 2)
				for i := range ops {
					op := ops[(first+i)%2]
					w.wg.Go(func() {
						ctx, cancel := context.WithTimeout(w.ctx, ttl)
						defer cancel()
						_, err := op.Abort(ctx, election)
						done <- err
					})
				}
				for range ops {
					if err := <-done; err == nil {
						won++
					}
				}
				p, n := w.start(onOld, "p"), w.start(onNew, "n")
				w.until("one leads", ttl, func() bool { return p.leads() || n.leads() })
				if won != 1 || p.leads() && n.leads() { // and see began
					t.Errorf("after %d writes of another, %d aborts are done, and on the old one somebody leads: %v, on the new one: %v", writes, won, p.leads(), n.leads())
				}
				p.end()
				n.end()
			})
		}
	}
}
