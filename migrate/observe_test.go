package migrate_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/migrate"
)

// back moves an election that has moved back, and returns who leads then.
func (w *world) back(p *process) *process {
	w.t.Helper()
	op := w.begun(onBack)
	b := w.start(onBack, "b")
	w.until("both stand in line", ttl, func() bool { return len(w.c[1].Members(election)) == 2 })
	p.end()
	w.leads(b)
	w.do(op.Cutover, migrate.Moved)
	return b
}

// Who has seen an election move sees it go back, whatever it looks at.
func TestObserversSeeTheWayBack(t *testing.T) {
	header := func(w *world, r backend.Record) string {
		h, err := backend.ParseHeader(r.Value)
		if err != nil {
			w.t.Error(err)
		}
		return h.Sealed
	}
	for name, look := range map[string]func(*world, backend.Session) (sealed string, err error){
		"line": func(w *world, s backend.Session) (string, error) {
			l, err := s.Line(w.ctx, election)
			if len(l.Members) != 1 || l.Members[0].Pinned {
				w.t.Errorf("in line stand %+v", l.Members)
			}
			return l.Header.Sealed, err
		},
		"get": func(w *world, s backend.Session) (string, error) {
			r, err := s.Get(w.ctx, election)
			return header(w, r), err
		},
		"watch": func(w *world, s backend.Session) (string, error) {
			r, err := s.Watch(w.ctx, election, 0)
			return header(w, r), err
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				p := w.writesAndMoves()
				b, _ := w.backend(onBoth, "observer")
				defer b.Close()
				s, err := b.Session(w.ctx)
				if err != nil {
					w.t.Fatal(err)
				}
				if _, err := look(w, s); err != nil {
					w.t.Fatal(err)
				}
				back := w.back(p)
				if sealed, err := look(w, s); err != nil || sealed != "" {
					t.Errorf("after the way back: the record is sealed to %q, %v; want the one of the old coordinator", sealed, err)
				}
				back.end()
			})
		})
	}
}

// An observer of elect goes along, there and back.
func TestObserveThereAndBack(t *testing.T) {
	inWorld(t, func(w *world) {
		ctx, cancel := context.WithCancel(w.ctx)
		defer cancel()
		var last atomic.Pointer[elect.State]
		last.Store(new(elect.State))
		w.wg.Go(func() {
			b, _ := w.backend(onBoth, "observer")
			defer b.Close()
			for l, err := range elect.New(b, election, nil).Observe(ctx) {
				if err == nil {
					last.Store(&l)
				}
			}
		})
		sees := func(p *process, prefix string, side int) bool {
			l, m := last.Load(), w.c[side].Members(election)[0]
			return l.Leader.ID == p.name && l.Leader.Key == prefix+m.Key
		}
		p := w.writesAndMoves()
		w.until("the observer sees who has moved", 3*ttl, func() bool { return sees(p, "to:", 1) })
		back := w.back(p)
		w.until("the observer sees who has moved back", 3*ttl, func() bool { return sees(back, "", 0) })
		back.end()
	})
}

// An election that has moved on to a third coordinator is sealed, and that is what is seen.
func TestObserversSeeThatItMovedOn(t *testing.T) {
	inWorld(t, func(w *world) {
		p := w.writesAndMoves()
		b, _ := w.backend(onBoth, "observer")
		defer b.Close()
		s, err := b.Session(w.ctx)
		if err != nil {
			w.t.Fatal(err)
		}
		r, err := s.Watch(w.ctx, election, 0)
		if err != nil {
			w.t.Fatal(err)
		}
		p.end()
		m, raw := w.raw(1, "raw")
		if err := raw.Pin(w.ctx, m, backend.Header{Sealed: "memory:third"}, w.c[1].Record(election).Version); err != nil {
			w.t.Fatal(err)
		}
		if r, err = s.Watch(w.ctx, election, r.Version); err != nil || string(r.Value) != string(w.c[1].Record(election).Value) {
			t.Errorf("Watch: %s, %v; want the seal", r.Value, err)
		}
		if r, err = s.Get(w.ctx, election); err != nil || string(r.Value) != string(w.c[1].Record(election).Value) {
			t.Errorf("Get: %s, %v; want the seal", r.Value, err)
		}
		if l, err := s.Line(w.ctx, election); err != nil || l.Header.Sealed != "memory:third" {
			t.Errorf("Line: %+v, %v; want the seal", l, err)
		}
	})
}

// An observer that begins while the old coordinator cannot be reached, which the election
// has not left, sees who leads once it can be.
func TestObserveBeforeTheOldIsReached(t *testing.T) {
	for name, look := range map[string]func(context.Context, backend.Session) error{
		"line": func(ctx context.Context, s backend.Session) error {
			_, err := s.Line(ctx, election)
			return err
		},
		"watch line": func(ctx context.Context, s backend.Session) error {
			_, err := s.WatchLine(ctx, election, backend.Line{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				p := w.start(onOld, "a")
				w.leads(p)
				b, sub := w.backend(onBoth, "observer")
				defer b.Close()
				sub[0].Cut()
				s, err := b.Session(w.ctx)
				if err != nil {
					t.Fatal(err)
				}
				if err := look(w.ctx, s); err == nil {
					t.Fatal("there is an answer without the old coordinator")
				}
				sub[0].Heal()
				w.until("the observer sees the line", ttl, func() bool {
					s, err := b.Session(w.ctx)
					return err == nil && look(w.ctx, s) == nil
				})
				p.end()
			})
		})
	}
}

// Between the two steps of a cutover nobody may stand on the new coordinator but the gate,
// which is nobody to an observer: it waits, and does not ask again and again.
func TestObserveHalfACutover(t *testing.T) {
	inWorld(t, func(w *world) {
		op, _ := w.operator(onBoth)
		defer op.Close()
		id := w.do(op.Begin, migrate.Begun).ID
		m, raw := w.raw(0, "leader")
		w.seals(raw, m, id)
		b, _ := w.backend(onBoth, "observer")
		defer b.Close()
		ctx, cancel := context.WithCancel(w.ctx)
		defer cancel()
		var last atomic.Pointer[elect.State]
		w.wg.Go(func() {
			for l := range elect.New(b, election, nil).Observe(ctx) {
				last.Store(&l)
			}
		})
		time.Sleep(ttl)
		before := w.c[1].Requests()
		time.Sleep(ttl)
		if n := w.c[1].Requests().Since(before).Of("observer"); n > 30 {
			t.Errorf("the observer sent %d requests in %v", n, ttl)
		}
		if l := last.Load(); l == nil || !l.Vacant() {
			t.Errorf("the observer sees %+v; want nobody", l)
		}
		w.do(op.Cutover, migrate.Moved)
		p := w.start(onNew, "p")
		w.leads(p)
		w.until("the observer sees the leader", ttl, func() bool { return last.Load().Leader.ID == p.name })
		cancel()
		p.end()
	})
}
