package migrate_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
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
			if _, err := on[0].Pause(w.ctx, "the disk is moved"); err != nil {
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
		if _, err := on[1].Pause(w.ctx, "why"); !errors.Is(err, operate.ErrMoving) {
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
		if _, err := on[0].Pause(w.ctx, "too late"); err == nil {
			t.Error("an election was paused that has moved")
		}
		a.end()
	})
}

// A pause keeps a cutover from being done, and the operator is told that it was asked for.
func TestAPauseStopsACutover(t *testing.T) {
	inWorld(t, func(w *world) {
		op, _ := w.operator(onBoth)
		defer op.Close()
		w.do(op.Begin, migrate.Begun)
		ctx, cancel := context.WithTimeout(w.ctx, ttl)
		defer cancel()
		if _, err := op.Cutover(ctx, election); !errors.Is(err, migrate.ErrRefused) { // nobody leads
			t.Fatal(err)
		}
		b, _ := w.backend(onOld, "ops")
		defer b.Close()
		if _, err := operate.New(b, election, "ops").Pause(w.ctx, "the disk is moved"); err != nil {
			t.Fatal(err)
		}
		if _, err := op.Cutover(w.ctx, election); !errors.Is(err, migrate.ErrRefused) || !strings.Contains(err.Error(), "The request to cut over stands") {
			t.Errorf("Cutover: %v", err)
		}
	})
}

// A pause through both coordinators stands on the old one alone, whatever stands on the new one, and takes no place
// there that would outlive it.
func TestAPauseTakesNoPlaceOnTheNewCoordinator(t *testing.T) {
	inWorld(t, func(w *world) {
		w.begun(onBoth)
		_, stranger := w.raw(1, "stranger") // behind the gate
		b, _ := w.backend(onBoth, "ops")
		defer b.Close()
		ops := operate.New(b, election, "ops")
		if _, err := ops.Pause(w.ctx, "the disk is moved"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(6 * ttl) // longer than anybody has patience
		if s, err := elect.New(b, election, nil).State(w.ctx); err != nil || !s.Paused {
			t.Errorf("State: %+v, %v; want that it is paused", s, err)
		}
		if err := stranger.Close(w.ctx); err != nil {
			t.Fatal(err)
		}
		if on := w.c[1].Members(election); len(on) != 1 {
			t.Errorf("on the new coordinator stand %v; want the gate alone", on)
		}
		a := w.start(onBoth, "a")
		old, _ := w.backend(onOld, "another")
		defer old.Close()
		if _, err := operate.New(old, election, "another").Resume(w.ctx, nil); err != nil {
			t.Fatal(err)
		}
		w.leads(a)
		a.end()
	})
}

// Who has pinned a member behind a leader that then moves the election is told where that went, and can take the member
// away, but not the seal.
func TestAPinnedMemberStaysBehindTheSeal(t *testing.T) {
	inWorld(t, func(w *world) {
		op, leader := w.underway(onBoth, "leader")
		b, _ := w.backend(onBoth, "ops")
		defer b.Close()
		s, err := b.Session(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		m, err := s.Join(w.ctx, election, "gate", "")
		if err != nil {
			t.Fatal(err)
		}
		l, err := s.Line(w.ctx, election)
		if err == nil {
			err = s.Pin(w.ctx, m.Member, l.Header, l.Version)
		}
		if err != nil {
			t.Fatal(err)
		}
		w.do(op.Cutover, migrate.Moved)
		if p, err := s.Ahead(w.ctx, m.Member); !errors.Is(err, backend.ErrSealed) {
			t.Errorf("Ahead: %+v, %v; want that the election has moved", p, err)
		}
		for range 2 { // the second time it has gone
			if err := s.Leave(w.ctx, m.Member); err != nil {
				t.Errorf("Leave: %v", err)
			}
		}
		on := w.c[0].Members(election)
		if len(on) != 1 || !on[0].Pinned {
			t.Fatalf("on the old coordinator stand %v; want the seal alone", on)
		}
		if err := s.Leave(w.ctx, on[0]); !errors.Is(err, backend.ErrDenied) {
			t.Errorf("Leave of the seal: %v", err)
		}
		leader.end()
	})
}
