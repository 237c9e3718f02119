package migrate_test

import (
	"testing"
	"time"

	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/migrate"
)

// The history of an election follows it, as the records do that its leaders guard: with the first
// term that begins after the cutover on a process with both.
func TestHistoryFollows(t *testing.T) {
	inWorld(t, func(w *world) {
		lead := func(mode, id string, meanwhile func()) {
			t.Helper()
			b, _ := w.backend(mode, id)
			defer b.Close()
			term, err := elect.New(b, election, &elect.Options{ID: id, History: 9}).Campaign(w.ctx)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second) // it is written that the term has begun
			meanwhile()
			if err := term.Resign(w.ctx); err != nil {
				t.Error(err)
			}
		}
		nothing := func() {}
		lead(onOld, "a", nothing)
		op := migrate.New(w.c[0].Client("operator"), w.c[1].Client("operator"), &migrate.Options{From: oldURL, To: newURL})
		defer op.Close()
		w.do(op.Begin, migrate.Begun)
		lead(onBoth, "b", func() { w.do(op.Cutover, migrate.Moved) })
		lead(onBoth, "c", nothing)
		lead(onNew, "d", nothing)
		b, _ := w.backend(onNew, "reader")
		defer b.Close()
		terms, err := operate.New(b, election, "").History(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, p := range terms {
			got += p.ID + " " + p.Why + ", "
		}
		if want := "a resigned, b resigned, c resigned, d resigned, "; got != want {
			t.Errorf("the history is %q, want %q", got, want)
		}
	})
}

// A history that a leader of the new coordinator alone has begun, since the cutover could not carry over the old one, is
// in nobody's way.
func TestHistoryBeginsAnew(t *testing.T) {
	inWorld(t, func(w *world) {
		op, p := w.underway(onBoth, "p")
		w.guardsAs(p, record, "1")
		w.writes(0, election+".history", "[]")
		w.leavesBehind(op, p, election+".history.migrate-home")
		w.writes(1, election+".history", "[ ]")
		w.do(op.Finish, migrate.Moved)
	})
}
