package migrate_test

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/migrate"
	"github.com/succession-dev/succession/recipes/task"
)

// writes has somebody write a record on one side, on no condition.
func (w *world) writes(side int, name, value string) {
	w.t.Helper()
	s, err := w.c[side].Client("writer").Session(w.ctx)
	if err == nil {
		_, err = s.Put(w.ctx, name, []byte(value), nil)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// chooses returns an operator who says what becomes of records.
func (w *world) chooses(carry []string, leave bool) *migrate.Backend {
	b := migrate.New(w.c[0].Client("chooser"), w.c[1].Client("chooser"), &migrate.Options{From: oldURL, To: newURL, Carry: carry, Leave: leave})
	w.t.Cleanup(func() { b.Close() })
	return b
}

// A record beside the election that only leaders of the old coordinator have written is named before
// the cutover, and an operator says what becomes of it.
func TestRecordBesideTheElection(t *testing.T) {
	const beside = election + "-position"
	for _, carries := range []bool{true, false} {
		inWorld(t, func(w *world) {
			w.writes(0, beside, "7")
			op, p := w.underway(onBoth, "p")
			w.refuses(op.Cutover, migrate.ErrRefused, beside)
			w.plansNot(op, migrate.ErrRefused, migrate.Cutover)
			w.refuses(w.chooses([]string{"mistyped"}, false).Cutover, migrate.ErrRefused, "mistyped")
			want, chosen := "7", w.chooses([]string{beside}, false)
			if !carries {
				want, chosen = "", w.chooses(nil, true)
			}
			w.plans(chosen, migrate.Cutover, true, "ask the leader")
			w.do(chosen.Cutover, migrate.Moved)
			p.end()
			w.readsOf(beside, onNew, want)
			if !carries {
				w.refuses(op.Finish, migrate.ErrRefused, beside)
				w.plansNot(op, migrate.ErrRefused, migrate.Finish)
				w.do(chosen.Finish, migrate.Moved)
				w.do(w.chooses([]string{beside}, false).Finish, migrate.Moved)
				w.readsOf(beside, onNew, "7")
			}
			w.do(op.Finish, migrate.Moved)
		})
	}
}

// What an operator names goes along also if the leader was asked before, and if the election has moved.
func TestRecordIsNamedLate(t *testing.T) {
	const far = "elsewhere/position"
	for _, moved := range []bool{false, true} {
		inWorld(t, func(w *world) {
			w.writes(0, far, "7")
			op := w.begun(onBoth)
			old := w.start(onOld, "o")
			w.leads(old)
			w.refuses(op.Cutover, migrate.ErrRefused, "asked")
			w.refuses(w.chooses([]string{"mistyped"}, false).Cutover, migrate.ErrRefused, "mistyped")
			chosen := w.chooses([]string{far}, false)
			done := make(chan error, 1)
			if !moved {
				w.wg.Go(func() { _, err := chosen.Cutover(w.ctx, election); done <- err })
				w.until("it is known", time.Minute, func() bool { return strings.Contains(string(w.c[0].Record(election+".migrate-records").Value), far) })
			}
			old.end()
			p := w.start(onBoth, "p")
			w.do(op.Cutover, migrate.Moved)
			if moved {
				w.do(chosen.Cutover, migrate.Moved)
			} else if err := <-done; err != nil {
				t.Error(err)
			}
			w.leads(p)
			w.readsOf(far, onNew, "7")
			p.end()
			w.do(op.Finish, migrate.Moved)
		})
	}
}

// A record beside which its leader had no right to write that it goes along is named, if another leader
// seals the old coordinator.
func TestRecordWithoutANote(t *testing.T) {
	inWorld(t, func(w *world) {
		op := w.begun(onBoth)
		b := migrate.New(unwritable{w.c[0].Client("a"), record + ".migrate-home"}, w.c[1].Client("a"), &migrate.Options{From: oldURL, To: newURL})
		defer b.Close()
		term, err := elect.New(b, election, nil).Campaign(w.ctx)
		if err == nil {
			_, err = term.Put(w.ctx, record, []byte("1"), backend.Any)
		}
		if err == nil {
			err = term.Resign(w.ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
		p := w.start(onBoth, "p")
		w.do(op.Cutover, migrate.Moved)
		p.end()
		w.refuses(op.Finish, migrate.ErrRefused, record)
		w.do(w.chooses([]string{record}, false).Finish, migrate.Moved)
		w.reads(onNew, "1")
	})
}

// Where a stranger wrote the list of the records that move, nobody knows which these are, and an operator is told.
func TestListOfAStranger(t *testing.T) {
	inWorld(t, func(w *world) {
		w.writes(0, election+".migrate-records", "nonsense")
		op, p := w.underway(onBoth, "p")
		w.guardsAs(p, record, "1")
		p.end()
		q := w.start(onBoth, "q")
		w.leads(q)
		w.refuses(op.Cutover, migrate.ErrRefused, "more records")
		w.refuses(w.chooses([]string{record}, true).Cutover, backend.ErrInvalid, election+".migrate-records")
		w.do(w.chooses(nil, true).Cutover, migrate.Moved)
		q.end()
	})
}

// Records of other elections, whose names begin alike, headers, and what a leader with both has
// written are in nobody's way; nor is a record that is on the new coordinator by another hand.
func TestRecordsOfOthersBeside(t *testing.T) {
	const deep = "jobs/reports"
	inWorld(t, func(w *world) {
		s, err := w.c[0].Client("another").Session(w.ctx)
		if err == nil {
			_, err = s.Join(w.ctx, deep+"-daily", "another", "")
		}
		if err != nil {
			t.Fatal(err)
		}
		w.writes(0, deep+"-daily-position", "1")
		w.writes(0, deep+"x", "1")
		w.writes(0, "jobs/other", "1")
		w.writes(0, deep+"-copied", "1")
		op, _ := w.operator(onBoth)
		defer op.Close()
		if _, err := op.Begin(w.ctx, deep); err != nil {
			t.Fatal(err)
		}
		b, _ := w.backend(onBoth, "p")
		defer b.Close()
		s, err = b.Session(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		m, err := s.Join(w.ctx, deep, "p", "")
		if err != nil {
			t.Fatal(err)
		}
		if pl, err := s.Ahead(w.ctx, m.Member); err != nil || !pl.First {
			t.Fatal(pl, err)
		}
		if _, err := s.Put(w.ctx, deep+".state", []byte("2"), &backend.If{Member: m.Member}); err != nil {
			t.Fatal(err)
		}
		w.refuses(func(ctx context.Context, _ string) (migrate.Status, error) { return op.Cutover(ctx, deep) }, migrate.ErrRefused, ": "+deep+"-copied;")
		w.wg.Go(func() { _ = s.Gone(w.ctx, m.Member) })
		leave := w.chooses(nil, true)
		if _, err := leave.Cutover(w.ctx, deep); err != nil {
			t.Fatal(err)
		}
		w.writes(1, deep+"-copied", "1")
		if _, err := op.Finish(w.ctx, deep); err != nil {
			t.Error(err)
		}
		w.readsOf(deep+".state", onNew, "2")
	})
}

// The names of a task's records do not begin with that of its line. Those that no leader with both has written are named too.
func TestRecordsOfATask(t *testing.T) {
	const line, tasks, position = "bus-run-orders", "bus-tasks/orders", "bus-position/orders"
	inWorld(t, func(w *world) {
		enough := errors.New("enough")
		standby := func(mode string) (s *task.Standby, end func()) {
			b, _ := w.backend(mode, mode)
			return task.NewStandby(b, "bus", nil), func() { b.Close() }
		}
		check := func(want error, errs ...error) {
			t.Helper()
			if err := errors.Join(errs...); !errors.Is(err, want) {
				t.Fatal(err)
			}
		}
		of := func(f step) step {
			return func(ctx context.Context, _ string) (migrate.Status, error) { return f(ctx, line) }
		}

		old, end := standby(onOld)
		check(nil, old.Configure(w.ctx, "orders", "fast"), old.Start(w.ctx, "orders"))
		check(enough, old.Hot(w.ctx, "orders", func(ctx context.Context, r *task.Run) error {
			return cmp.Or(r.Commit(ctx, 7), enough)
		}))
		check(nil, old.Stop(w.ctx, "orders"))
		end()

		op, _ := w.operator(onBoth)
		defer op.Close()
		w.do(of(op.Begin), migrate.Begun)
		both, end := standby(onBoth)
		ctx, stop := context.WithCancelCause(w.ctx)
		ended := make(chan error)
		go func() { ended <- both.Hot(ctx, "orders", func(context.Context, *task.Run) error { return nil }) }()
		w.until("a machine is first on both", time.Minute, func() bool { return len(w.c[1].Members(line)) == 2 })
		w.refuses(of(op.Cutover), migrate.ErrRefused, position, tasks)
		w.do(of(w.chooses([]string{position, tasks}, false).Cutover), migrate.Moved)
		stop(enough)
		check(enough, <-ended)
		end()
		w.do(of(op.Finish), migrate.Moved)

		next, end := standby(onNew)
		defer end()
		check(nil, next.Start(w.ctx, "orders"))
		check(enough, next.Hot(w.ctx, "orders", func(_ context.Context, r *task.Run) error {
			if r.Position() != 7 || r.Config() != "fast" {
				t.Errorf("on the new coordinator the run begins at %d, with %q", r.Position(), r.Config())
			}
			return enough
		}))
	})
}
