package migrate_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/migrate"
)

// expireOld ends the process's session with the old coordinator, and returns its term, which
// does not end.
func (w *world) expireOld(p *process) *elect.Term {
	w.t.Helper()
	b := p.sub[0]
	s, err := b.Session(w.ctx) // the one that it has
	if err != nil {
		w.t.Fatal(err)
	}
	b.Expire()
	<-s.Done()
	return p.term
}

// stays checks that the process leads in the term.
func (w *world) stays(p *process, t *elect.Term) {
	w.t.Helper()
	if p.term != t || !p.leads() {
		w.t.Error("the leader's term has ended")
	}
}

// A leader that has moved goes on without its session with the old coordinator, and reaches
// records there again when that can be reached.
func TestRecordsAfterTheOldSession(t *testing.T) {
	inWorld(t, func(w *world) {
		p := w.writesAndMoves()
		defer p.end()
		term := w.expireOld(p)
		s, err := p.b.Session(w.ctx)
		if err != nil {
			w.t.Fatal(err)
		}
		r, err := s.Get(w.ctx, unguarded)
		if err != nil || string(r.Value) != "1" {
			t.Errorf("the leader reads %q, %v; want what is on the old coordinator", r.Value, err)
		}
		w.expireOld(p)
		for _, at := range []backend.Version{backend.Absent, r.Version} {
			if _, err := term.Put(w.ctx, unguarded, []byte("2"), at); !errors.Is(err, backend.ErrVersion) {
				t.Errorf("writing at version %d, which is not that of the new coordinator: %v, want %v", at, err, backend.ErrVersion)
			}
		}
		if r, err = s.Get(w.ctx, unguarded); err == nil {
			_, err = term.Put(w.ctx, unguarded, []byte("2"), r.Version)
		}
		if err != nil {
			t.Errorf("a write at the version that was read: %v", err)
		}
		w.stays(p, term)
		w.readsOf(unguarded, onBoth, "2")
	})
}

// Another election of the same process, which has not moved, is led and observed although
// the first one has let the session with the old coordinator end.
func TestAnotherElectionAfterTheOldSession(t *testing.T) {
	inWorld(t, func(w *world) {
		const another = "another"
		p := w.writesAndMoves()
		defer p.end()
		op, _ := w.operator(onBoth)
		defer op.Close()
		if _, err := op.Begin(w.ctx, another); err != nil {
			w.t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(w.ctx, ttl)
		defer cancel()
		first := w.expireOld(p)
		if l, err := elect.New(p.b, another, nil).State(ctx); err != nil || !l.Vacant() {
			t.Errorf("who leads: %+v, %v; want nobody", l, err)
		}
		w.expireOld(p)
		term, err := elect.New(p.b, another, nil).Campaign(ctx)
		if err != nil {
			w.t.Fatalf("Campaign: %v", err)
		}
		w.stays(p, first)
		if err := term.Resign(w.ctx); err != nil {
			t.Error(err)
		}
		s, err := p.b.Session(w.ctx)
		if err == nil {
			_, err = s.Join(w.ctx, another, "p", "")
		}
		if err != nil {
			w.t.Fatal(err)
		}
		p.sub[0].Expire() // from now on it hangs on that, too
		w.until("the session ends", time.Second, func() bool {
			select {
			case <-s.Done():
				return true
			default:
				return false
			}
		})
		w.leads(p)
	})
}

// A leader that has sealed the old coordinator, and has lost its session there since,
// stands in line there again after the way back.
func TestWayBackAfterTheOldSession(t *testing.T) {
	inWorld(t, func(w *world) {
		p := w.writesAndMoves()
		defer p.end()
		w.expireOld(p)
		op := w.begun(onBack)
		b := w.start(onBack, "b")
		w.until("both stand in line", ttl, func() bool { return len(w.c[1].Members(election)) == 2 })
		if _, err := operate.New(p.b, election, "").AskToResign(w.ctx, nil); err != nil {
			w.t.Fatal(err)
		}
		w.leads(b)
		w.do(op.Cutover, migrate.Moved)
		w.until("the former leader stands in line again", 5*ttl, func() bool { return len(w.c[0].Members(election)) == 2 })
		b.end()
		w.leads(p)
	})
}

// A process that was started while the old coordinator could not be reached, and leads by
// the new one, reaches the old one when that can be reached, and does not lose its term
// for the time before.
func TestOldIsReachedLater(t *testing.T) {
	inWorld(t, func(w *world) {
		w.writesAndMoves().end()
		b, sub := w.backend(onBoth, "late")
		defer b.Close()
		sub[0].Cut()
		term, err := elect.New(b, election, nil).Campaign(w.ctx)
		if err != nil {
			w.t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(w.ctx, 3*ttl)
		defer cancel()
		if _, err := term.Get(ctx, unguarded); !errors.Is(err, backend.ErrUnavailable) {
			t.Errorf("a record that the old one keeps: %v, want %v", err, backend.ErrUnavailable)
		}
		if _, err := elect.New(b, "another", nil).Campaign(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Campaign without the old one: %v", err)
		}
		sub[0].Heal()
		if r, err := term.Get(w.ctx, unguarded); err != nil || string(r.Value) != "1" {
			t.Errorf("the leader reads %q, %v", r.Value, err)
		}
		if err := term.Check(); err != nil {
			t.Errorf("the term has ended: %v", err)
		}
		if err := term.Resign(w.ctx); err != nil {
			t.Error(err)
		}
	})
}

// A joining backend has something done when its session has joined a line.
type joining struct {
	backend.Backend
	line string
	by   func(backend.Session)
}

type joiningSession struct {
	backend.Session
	b *joining
}

func (b *joining) Session(ctx context.Context) (backend.Session, error) {
	s, err := b.Backend.Session(ctx)
	return joiningSession{s, b}, err
}

func (s joiningSession) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	m, err := s.Session.Join(ctx, line, value, record)
	if line == s.b.line {
		s.b.by(s.Session)
	}
	return m, err
}

// A place whose session with the old coordinator ends as it is joined, and is followed by
// another one at once, is none: the deadline of the other one says nothing of it.
func TestJoinAsTheOldSessionEnds(t *testing.T) {
	inWorld(t, func(w *world) {
		const another = "another"
		op, _ := w.operator(onBoth)
		defer op.Close()
		for _, e := range []string{election, another} {
			if _, err := op.Begin(w.ctx, e); err != nil {
				w.t.Fatal(err)
			}
		}
		var s backend.Session
		near := w.c[0].Client("a")
		b := migrate.New(&joining{near, another, func(old backend.Session) {
			near.Expire()
			<-old.Done()
			if _, err := s.Get(w.ctx, record); err != nil {
				t.Error(err)
			}
		}}, w.c[1].Client("a"), &migrate.Options{From: oldURL, To: newURL})
		defer b.Close()
		var m backend.Member
		s, m = leading(w.ctx, t, b)
		w.wg.Go(func() { _ = s.Gone(w.ctx, m) })
		w.do(op.Cutover, migrate.Moved)
		if m, err := s.Join(w.ctx, another, "a", ""); !errors.Is(err, backend.ErrSessionEnded) {
			t.Errorf("Join: %+v, %v; want %v", m, err, backend.ErrSessionEnded)
		}
		if err := s.Err(); err != nil {
			t.Errorf("the session of the leader has ended: %v", err)
		}
	})
}
