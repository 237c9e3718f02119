package migrate_test

import (
	"context"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/internal/view"
	"github.com/succession-dev/succession/migrate"
)

// Who joins by servers that lag behind is not told that no migration has begun, if one has.
func TestJoinBehind(t *testing.T) {
	inWorld(t, func(w *world) {
		b, sub := w.backend(onBoth, "behind")
		defer b.Close()
		for _, half := range sub {
			half.Lag(time.Minute)
		}
		s, err := b.Session(w.ctx)
		if err == nil {
			_, err = s.Line(w.ctx, election)
		}
		if err != nil {
			t.Fatal(err)
		}
		w.begun(onBoth)
		if _, err := s.Join(w.ctx, election, "x", ""); err != nil {
			t.Error(err)
		}
	})
}

// An operator whose servers lag behind sees what another one has done.
func TestOperatorBehind(t *testing.T) {
	inWorld(t, func(w *world) {
		behind, sub := w.operator(onBoth)
		defer behind.Close()
		for _, half := range sub {
			half.Lag(time.Minute)
		}
		for _, want := range []migrate.Phase{migrate.None, migrate.Begun, migrate.Aborted} {
			switch want {
			case migrate.Begun:
				w.begun(onBoth)
			case migrate.Aborted:
				op, _ := w.operator(onBoth)
				defer op.Close()
				w.do(op.Abort, migrate.Aborted)
			}
			s, err := behind.Status(w.ctx, election)
			if err != nil || s.Phase != want {
				t.Errorf("the phase is %s, %v; want %s", s.Phase, err, want)
			}
		}
	})
}

// Who only looks, and begins when the old coordinator has been switched off, sees who leads on the new one.
func TestLooksWithoutOld(t *testing.T) {
	inWorld(t, func(w *world) {
		op, a := w.underway(onBoth, "a")
		w.do(op.Cutover, migrate.Moved)
		w.c[0].Pause()
		defer w.c[0].Resume()
		b, _ := w.backend(onBoth, "looks")
		defer b.Close()
		l, err := elect.New(b, election, nil).Leader(w.ctx)
		if err != nil || l.ID != a.name {
			t.Errorf("leader %+v, %v; want %s", l, err, a.name)
		}
	})
}

// A fence that is raised while the election moves outlives the election on the new coordinator too.
func TestRaisedMeanwhile(t *testing.T) {
	inWorld(t, func(w *world) {
		op, _ := w.underway(onBoth, "a")
		b, _ := w.backend(onBoth, "raises")
		defer b.Close()
		moves := view.Of(b, func(s backend.Session) backend.Session {
			return moving{s, func() { w.do(op.Cutover, migrate.Moved) }}
		})
		const floor = 1_000_000
		if err := operate.New(moves, election, "").RaiseFence(w.ctx, floor); err != nil {
			t.Fatal(err)
		}
		w.c[1].Drop(election)
		n := w.start(onNew, "n")
		w.until("it leads", time.Minute, n.leads)
		if token := n.term.Token(); token <= floor {
			t.Errorf("after the election was deleted, somebody leads with token %d; want more than %d", token, floor)
		}
	})
}

// moving has the election move when the copy of its fence has been written.
type moving struct {
	backend.Session
	move func()
}

func (s moving) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	v, err := s.Session.Put(ctx, name, value, cond)
	if err == nil && name == election+".fence" && s.move != nil {
		s.move()
	}
	return v, err
}
