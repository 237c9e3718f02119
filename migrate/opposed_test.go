package migrate_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/migrate"
)

// An interrupted backend has something done before a certain call of one of its sessions,
// counted over all that share the counter.
type interrupted struct {
	backend.Backend
	line, get, put, pin, leave *atomic.Int64 // calls until then
	by                         func()
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

func (s interruptedSession) Leave(ctx context.Context, m backend.Member) error {
	if s.b.leave != nil && s.b.leave.Add(-1) == 0 {
		s.b.by()
	}
	return s.Session.Leave(ctx, m)
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
		h, err := header.Parse(w.c[0].Record(election).Value)
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

// Of two opposed migrations one is aborted, and never both: the gate that an abort is
// about to take away, when somebody aborts the other one, may be the last that stands.
func TestAbortOfBoth(t *testing.T) {
	for name, first := range map[string]side{"to the old one first": 0, "to the new one first": 1} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) { w.abortsBoth(first) })
		})
	}
}

// A side is one of the two coordinators of a world.
type side int

// mover returns who moves the election to a side; by goes before the leave'th time that it
// takes a member away there, or the line'th time that it looks.
func (w *world) mover(to side, line, leave *atomic.Int64, by func()) *migrate.Backend {
	urls := [2]string{oldURL, newURL}
	return migrate.New(w.c[1-to].Client("mover"),
		&interrupted{Backend: w.c[to].Client("mover"), line: line, leave: leave, by: by},
		&migrate.Options{From: urls[1-to], To: urls[to]})
}

func (w *world) abortsBoth(first side) {
	second := w.mover(1-first, nil, nil, nil)
	defer second.Close()
	// Between its look and its gate, the other one puts its own.
	begins := w.mover(first, calls(2), nil, func() { w.do(second.Begin, migrate.Begun) })
	defer begins.Close()
	w.refuses(begins.Begin, migrate.ErrOther, "opposite directions")

	modes := []string{onBoth, onNew, onOld}
	if first == 0 {
		modes = []string{onBack, onOld, onNew}
	}
	ctx, stop := context.WithCancel(w.ctx)
	defer stop()
	var ps []*process
	late := w.mover(first, nil, calls(1), func() {
		if _, err := second.Abort(w.ctx, election); !errors.Is(err, migrate.ErrRefused) {
			w.t.Errorf("an abort of the other one returned %v; want %v", err, migrate.ErrRefused)
		}
		for _, mode := range modes {
			ps = append(ps, w.start(mode, "p"))
			time.Sleep(time.Second)
		}
		stop() // its request arrives all the same
		w.c[first].Remove(election, w.c[first].Members(election)[0].Key)
	})
	defer late.Close()
	if _, err := late.Abort(ctx, election); !errors.Is(err, context.Canceled) {
		w.t.Errorf("the late abort returned %v", err)
	}
	for _, p := range ps {
		time.Sleep(3 * ttl)
		p.end() // nobody led beside another one; see began
	}
	again := w.mover(first, nil, nil, nil)
	defer again.Close()
	w.do(again.Abort, migrate.Elsewhere)
	w.do(second.Begin, migrate.Begun)
}

// A gate that an abort has still to take away, when its request is long on its way, does not
// become the gate of another migration, from where the election has gone meanwhile.
func TestGateThatAnAbortHasLeft(t *testing.T) {
	inWorld(t, func(w *world) {
		w.begun(onBoth)
		left := w.c[1].Members(election)[0]
		ctx, stop := context.WithCancel(w.ctx)
		defer stop()
		late := w.mover(1, nil, calls(1), stop)
		defer late.Close()
		if _, err := late.Abort(ctx, election); !errors.Is(err, context.Canceled) {
			t.Errorf("the late abort returned %v", err)
		}
		x := memory.New(&memory.Options{TTL: ttl, Slack: slack, Index: 1000})
		const third = "memory:third"
		away := migrate.New(w.c[0].Client("away"), x.Client("away"), &migrate.Options{From: oldURL, To: third, Begin: true})
		defer away.Close()
		term, err := elect.New(away, election, nil).Campaign(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		w.do(away.Cutover, migrate.Moved)
		if err := term.Resign(w.ctx); err != nil {
			t.Fatal(err)
		}
		on := migrate.New(x.Client("on"), w.c[1].Client("on"), &migrate.Options{From: third, To: newURL})
		defer on.Close()
		w.do(on.Begin, migrate.Begun)
		w.c[1].Remove(election, left.Key) // the request arrives
		if m := w.c[1].Members(election); len(m) != 1 || !m[0].Pinned {
			t.Errorf("on the new one there stands %+v; want the gate of the migration that goes on", m)
		}
	})
}
