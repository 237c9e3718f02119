package migrate_test

import (
	"errors"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/migrate"
)

// Of two migrations from one coordinator only one can be cut over. The other one can be
// aborted then, and says where the election is.
func TestTwoWaysFromOne(t *testing.T) {
	inWorld(t, func(w *world) {
		x := memory.New(&memory.Options{TTL: ttl, Slack: slack})
		op, _ := w.operator(onBoth)
		defer op.Close()
		other := migrate.New(w.c[0].Client("other"), x.Client("other"), &migrate.Options{From: oldURL, To: "memory:third"})
		defer other.Close()
		w.do(other.Begin, migrate.Begun)
		w.do(op.Begin, migrate.Begun)
		a := w.start(onBoth, "a")
		w.leads(a)
		w.do(op.Cutover, migrate.Moved)
		w.refuses(other.Cutover, backend.ErrSealed, newURL)
		for range 2 {
			w.do(other.Abort, migrate.Elsewhere)
		}
		if m := x.Members(election); len(m) > 0 {
			t.Errorf("on the third one there still is %+v", m)
		}
		third := x.Client("p")
		defer third.Close()
		var sealed *backend.SealedError
		if _, err := elect.New(third, election, nil).Campaign(w.ctx); !errors.As(err, &sealed) || sealed.To != newURL {
			t.Errorf("a process that runs with the third one alone: %v; want that it is on %s", err, newURL)
		}
		if !a.leads() || w.led != 1 {
			t.Error("the abort of the other one disturbed the leader")
		}
		a.end()
	})
}

// Who leads by the old coordinator alone, as the migration was aborted, goes along when it
// is begun again: it takes its place on both, after its work has ended.
func TestBegunAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		op, a := w.underway(onBoth, "a")
		w.do(op.Abort, migrate.Aborted)
		b := w.start(onBoth, "b")
		time.Sleep(time.Second)
		for range 2 {
			if !a.leads() || w.led != 1 {
				t.Error("the term did not go on after the abort")
			}
			time.Sleep(3 * ttl)
		}
		w.do(op.Begin, migrate.Begun)
		w.leads(b)
		w.do(op.Cutover, migrate.Moved)
		if !b.leads() || w.led != 2 {
			t.Errorf("the cutover cost a term")
		}
		w.c[0].Pause()
		b.end()
		w.leads(a)
		a.end()
	})
}
