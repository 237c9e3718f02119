package migrate_test

import (
	"testing"
	"time"

	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/migrate"
)

// The history of an election follows it, as the records do that its leaders guard: with the first
// term that begins after the cutover on a process with both.
func TestHistoryFollows(t *testing.T) {
	inWorld(t, func(w *world) {
		nothing := func() {}
		w.inHistory(onOld, "a", nothing)
		op := migrate.New(w.c[0].Client("operator"), w.c[1].Client("operator"), &migrate.Options{From: oldURL, To: newURL})
		defer op.Close()
		w.do(op.Begin, migrate.Begun)
		w.inHistory(onBoth, "b", func() { w.do(op.Cutover, migrate.Moved) })
		w.inHistory(onBoth, "c", nothing)
		w.inHistory(onNew, "d", nothing)
		w.historyIs("a resigned, b resigned, c resigned, d resigned, ")
	})
}

// inHistory has a process lead and resign, which the history notes.
func (w *world) inHistory(mode, id string, meanwhile func()) {
	w.t.Helper()
	b, _ := w.backend(mode, id)
	defer b.Close()
	term, err := elect.New(b, election, &elect.Options{ID: id, History: 9}).Campaign(w.ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	time.Sleep(time.Second) // it is written that the term has begun
	meanwhile()
	if err := term.Resign(w.ctx); err != nil {
		w.t.Error(err)
	}
}

// historyIs checks what a client of the new coordinator alone reads.
func (w *world) historyIs(want string) {
	w.t.Helper()
	b, _ := w.backend(onNew, "reader")
	defer b.Close()
	terms, err := operate.New(b, election, "").History(w.ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	got := ""
	for _, p := range terms {
		got += p.ID + " " + p.Why + ", "
	}
	if got != want {
		w.t.Errorf("the history is %q, want %q", got, want)
	}
}

// The gate goes without the records, and the new coordinator has the history of when the election was there before. The next leader
// with both goes on with that of the old one.
func TestOlderHistory(t *testing.T) {
	inWorld(t, func(w *world) {
		nothing := func() {}
		w.inHistory(onNew, "z", nothing)
		w.inHistory(onOld, "a", nothing)
		w.inHistory(onOld, "b", nothing)
		var old *memory.Backend
		term := w.sealsThen(func(b *memory.Backend) { old = b; b.Cut() })
		w.until("the gate has gone", 5*ttl, func() bool { return !w.c[1].Members(election)[0].Pinned })
		old.Heal()
		if err := term.Resign(w.ctx); err != nil {
			t.Error(err)
		}
		w.inHistory(onBoth, "c", nothing)
		w.historyIs("a resigned, b resigned, c resigned, ")
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
