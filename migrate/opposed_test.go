package migrate_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/migrate"
)

// An interrupted backend has something done before a certain call of one of its sessions,
// counted over all that share the counter.
type interrupted struct {
	backend.Backend
	line, get, put, pin *atomic.Int64 // calls until then
	by                  func()
}

type interruptedSession struct {
	backend.Session
	b *interrupted
}

func (b *interrupted) Session(ctx context.Context) (backend.Session, error) {
	s, err := b.Backend.Session(ctx)
	return interruptedSession{s, b}, err
}

func (s interruptedSession) Line(ctx context.Context, line string) (backend.Line, error) {
	if s.b.line != nil && s.b.line.Add(-1) == 0 {
		s.b.by()
	}
	return s.Session.Line(ctx, line)
}

func (s interruptedSession) Get(ctx context.Context, name string) (backend.Record, error) {
	if s.b.get != nil && s.b.get.Add(-1) == 0 {
		s.b.by()
	}
	return s.Session.Get(ctx, name)
}

func (s interruptedSession) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	if s.b.put != nil && s.b.put.Add(-1) == 0 {
		s.b.by()
	}
	return s.Session.Put(ctx, name, value, cond)
}

func (s interruptedSession) Pin(ctx context.Context, m backend.Member, h backend.Header, at backend.Version) error {
	if s.b.pin != nil && s.b.pin.Add(-1) == 0 {
		s.b.by()
	}
	return s.Session.Pin(ctx, m, h, at)
}

func calls(n int64) *atomic.Int64 {
	var c atomic.Int64
	c.Store(n)
	return &c
}

// A begin that has read one coordinator, while the opposite migration comes as far as the
// seal, is refused, and the seal stays what it is: as a gate, an abort would take it away
// from under the leader.
func TestBeginDuringTheOppositeMigration(t *testing.T) {
	inWorld(t, func(w *world) {
		st := &stage{phase: between, open: func(context.Context) (*migrate.Backend, [2]backend.Backend, error) {
			b, sub := w.backend(onBoth, "leader")
			return b.(*migrate.Backend), [2]backend.Backend{sub[0], sub[1]}, nil
		}}
		meanwhile := func() {
			if err := st.prepare(w.ctx, election); err != nil {
				t.Fatal(err)
			}
		}
		second := calls(2)
		back := migrate.New(
			&interrupted{Backend: w.c[1].Client("operator"), line: second, by: meanwhile},
			&interrupted{Backend: w.c[0].Client("operator"), line: second, by: meanwhile},
			&migrate.Options{From: newURL, To: oldURL})
		defer back.Close()
		w.refuses(back.Begin, migrate.ErrRefused, "has not ended")
		h, err := backend.ParseHeader(w.c[0].Record(election).Value)
		if err != nil || h.Sealed != newURL || h.Migration.Seal {
			t.Errorf("the old one's record is %+v, %v; want the seal", h, err)
		}
	})
}

// An abort that finds the gate of the opposite migration, which came between, does not
// end in two coordinators that each say the election is on the other: there is a conflict,
// and its way out.
func TestAbortDuringTheOppositeBegin(t *testing.T) {
	inWorld(t, func(w *world) {
		there, _ := w.operator(onBoth)
		defer there.Close()
		pin, pinned := make(chan struct{}), make(chan struct{})
		aborter := migrate.New(
			&interrupted{Backend: w.c[0].Client("aborter"), get: calls(1), by: func() { close(pin); <-pinned }},
			w.c[1].Client("aborter"), &migrate.Options{From: oldURL, To: newURL})
		defer aborter.Close()
		aborted := make(chan error, 1)
		back := migrate.New(w.c[1].Client("back"), &interrupted{
			// After Join, and before the gate is pinned.
			Backend: w.c[0].Client("back"), line: calls(2), by: func() {
				w.do(there.Begin, migrate.Begun)
				go func() {
					_, err := aborter.Abort(w.ctx, election)
					aborted <- err
				}()
				<-pin
			}}, &migrate.Options{From: newURL, To: oldURL})
		defer back.Close()
		begun := make(chan error, 1)
		go func() {
			_, err := back.Begin(w.ctx, election)
			begun <- err
		}()
		<-pin
		synctest.Wait()
		time.Sleep(time.Second)
		close(pinned)
		<-begun
		if err := <-aborted; err != nil {
			t.Fatalf("abort: %v", err)
		}
		// What was begun the other way goes on.
		w.do(back.Begin, migrate.Begun)
		p := w.start(onBack, "p")
		w.leads(p)
		w.do(back.Cutover, migrate.Moved)
		p.end()
	})
}
