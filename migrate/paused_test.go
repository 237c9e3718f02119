package migrate_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/migrate"
)

// Nobody leads a paused election, so nobody could move it; and the gate of a migration is no pause.
func TestAPausedElectionIsNotMoved(t *testing.T) {
	inWorld(t, func(w *world) {
		op, _ := w.operator(onBoth)
		defer op.Close()
		var on [2]*operate.Operator
		old, _ := w.backend(onOld, "observer")
		defer old.Close()
		for side, mode := range []string{onOld, onNew} {
			b, _ := w.backend(mode, "ops-"+mode)
			defer b.Close()
			on[side] = operate.New(b, election, "ops")
		}
		pause := func() {
			t.Helper()
			if err := on[0].Pause(w.ctx, "the disk is moved"); err != nil {
				t.Fatal(err)
			}
		}
		resume := func() {
			t.Helper()
			if _, err := on[0].Resume(w.ctx, nil); err != nil {
				t.Fatal(err)
			}
		}
		refused := func(steps ...migrate.Step) {
			t.Helper()
			w.plansNot(op, migrate.ErrRefused, steps...)
			for _, step := range steps {
				_, err := op.Plan(w.ctx, step, election)
				if err == nil || !strings.Contains(err.Error(), "paused by ops: the disk is moved; resume") {
					t.Errorf("%s: %v; want who has paused it and why", step, err)
				}
			}
		}
		pause()
		refused(migrate.Begin)
		if _, err := op.Begin(w.ctx, election); !errors.Is(err, migrate.ErrRefused) {
			t.Errorf("Begin: %v", err)
		}
		resume()
		w.do(op.Begin, migrate.Begun)
		if err := on[1].Pause(w.ctx, "why"); !errors.Is(err, operate.ErrMoving) {
			t.Errorf("a pause where the gate of a migration stands: %v", err)
		}
		pause()
		a := w.start(onBoth, "a")
		refused(migrate.Cutover, migrate.Abort)
		resume()
		w.until("it leads", 6*ttl, func() bool {
			l, err := elect.New(old, election, nil).Leader(w.ctx)
			return err == nil && strings.HasPrefix(l.ID, "a")
		})
		w.do(op.Cutover, migrate.Moved)
		if err := on[0].Pause(w.ctx, "too late"); err == nil {
			t.Error("an election was paused that has moved")
		}
		a.end()
	})
}
