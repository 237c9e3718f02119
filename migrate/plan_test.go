package migrate_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/migrate"
)

// plans says what the step would do, and fails the test where that is not as told or
// has changed anything.
func (w *world) plans(op *migrate.Backend, step migrate.Step, changes bool, does string) {
	w.t.Helper()
	before := [2]uint64{w.c[0].Index(), w.c[1].Index()}
	p, err := op.Plan(w.ctx, step, election)
	if err != nil || p.Changes != changes || !strings.Contains(p.Does, does) {
		w.t.Errorf("%s in phase %s would change something: %v, would %q, %v; want %v, %q", step, p.Phase, p.Changes, p.Does, err, changes, does)
	}
	if after := [2]uint64{w.c[0].Index(), w.c[1].Index()}; after != before {
		w.t.Errorf("planning %s moved the logs from %v to %v", step, before, after)
	}
}

func (w *world) plansNot(op *migrate.Backend, want error, steps ...migrate.Step) {
	w.t.Helper()
	for _, step := range steps {
		if p, err := op.Plan(w.ctx, step, election); !errors.Is(err, want) {
			w.t.Errorf("%s would %q, %v; want %v", step, p.Does, err, want)
		}
	}
}

func TestPlan(t *testing.T) {
	inWorld(t, func(w *world) {
		op, _ := w.operator(onBoth)
		defer op.Close()
		w.plans(op, migrate.Begin, true, "put a gate at the head of the line on memory:new")
		w.plansNot(op, migrate.ErrNotBegun, migrate.Cutover, migrate.Finish, migrate.Abort)
		w.plansNot(op, backend.ErrInvalid, "leap")
		w.do(op.Begin, migrate.Begun)
		w.plans(op, migrate.Begin, false, "nothing")
		w.plans(op, migrate.Cutover, true, "there is none now: nobody leads")
		w.plans(op, migrate.Abort, true, "forbid the cutover")
		w.plansNot(op, migrate.ErrRefused, migrate.Finish)
		w.do(op.Abort, migrate.Aborted)
		w.plans(op, migrate.Abort, false, "nothing")
		w.do(op.Begin, migrate.Begun)
		ctx, cancel := context.WithTimeout(w.ctx, ttl)
		defer cancel()
		if _, err := op.Cutover(ctx, election); !errors.Is(err, migrate.ErrRefused) {
			t.Fatalf("a cutover without a leader: %v", err)
		}
		w.plans(op, migrate.Cutover, false, "wait, as the leader has been asked already: nobody leads")
		a := w.start(onBoth, "a")
		w.until("it has moved", 6*ttl, func() bool { s, err := op.Status(w.ctx, election); return err == nil && s.Phase == migrate.Moved })
		for _, step := range []migrate.Step{migrate.Cutover, migrate.Finish} {
			w.plans(op, step, false, "carry over records that the cutover has left on memory:old, if there are any")
		}
		w.plansNot(op, migrate.ErrRefused, migrate.Begin, migrate.Abort)
		back, _ := w.operator(onBack)
		defer back.Close()
		w.plans(back, migrate.Begin, true, "make the seal at the head of the line on memory:old the gate")
		a.end()
	})
}

// A half-done cutover is completed by the plan of whoever comes next.
func TestPlanOfHalfACutover(t *testing.T) {
	inWorld(t, func(w *world) {
		op, _ := w.operator(onBoth)
		defer op.Close()
		id := w.do(op.Begin, migrate.Begun).ID
		m, raw := w.raw(0, "leader")
		w.seals(raw, m, id)
		for _, step := range []migrate.Step{migrate.Cutover, migrate.Finish} {
			w.plans(op, step, true, "take away the gate on memory:new")
		}
		w.plansNot(op, migrate.ErrRefused, migrate.Abort) // it would complete the cutover, and then be refused
		w.do(op.Finish, migrate.Moved)
	})
}

// A check leaves nothing, removes what a check that was killed has left, and names the
// side and what is missing there.
func TestCheck(t *testing.T) {
	inWorld(t, func(w *world) {
		const probe = election + ".migrate-probe"
		op, sub := w.operator(onBoth)
		defer op.Close()
		raw, err := w.c[0].Client("raw").Session(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		m, err := raw.Join(w.ctx, probe, "probe", "")
		if err != nil {
			t.Fatal(err)
		}
		if err := raw.Pin(w.ctx, m.Member, backend.Header{Fence: 7}, backend.Absent); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 2)
		other, _ := w.operator(onBoth)
		defer other.Close()
		for _, b := range []*migrate.Backend{op, other} { // two operators at once
			w.wg.Go(func() { done <- b.Check(w.ctx, election) })
		}
		for range 2 {
			if err := <-done; err != nil {
				t.Errorf("Check: %v", err)
			}
		}
		for side, c := range w.c {
			if m, r := c.Members(probe), c.Record(probe); len(m) > 0 || r.Version != backend.Absent {
				t.Errorf("on side %d a check leaves %+v and %q", side, m, r.Value)
			}
		}
		sub[1].Cut()
		ctx, cancel := context.WithTimeout(w.ctx, ttl)
		defer cancel()
		err = op.Check(ctx, election)
		if err == nil || !strings.Contains(err.Error(), newURL) || strings.Contains(err.Error(), oldURL) {
			t.Errorf("a check that cannot reach the new one: %v", err)
		}
		halves := [2]*memory.Backend{w.c[0].Client("d"), w.c[1].Client("d")}
		d := migrate.New(denied{halves[0]}, halves[1], &migrate.Options{From: oldURL, To: newURL})
		defer d.Close()
		err = d.Check(w.ctx, election)
		if !errors.Is(err, errNoRight) || !strings.Contains(err.Error(), oldURL+": could not stand in line") || strings.Contains(err.Error(), newURL) {
			t.Errorf("a check without a right on the old one: %v", err)
		}
	})
}
