package migrate_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/migrate"
)

// A lagging backend reads the election's line, once it lags, as it was when its session
// last read or wrote it: as from a server that hears nothing of the others. A write that
// is refused for its version ends that, as it does with ZooKeeper.
type lagging struct {
	backend.Backend

	mu   sync.Mutex
	lags bool
	seen backend.Line
}

func (b *lagging) lag() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lags = true
}

type laggingSession struct {
	backend.Session
	b *lagging
}

func (b *lagging) Session(ctx context.Context) (backend.Session, error) {
	s, err := b.Backend.Session(ctx)
	return laggingSession{s, b}, err
}

func (s laggingSession) Line(ctx context.Context, line string) (backend.Line, error) {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	var err error
	if !s.b.lags {
		s.b.seen, err = s.Session.Line(ctx, line)
	}
	l := s.b.seen
	l.Members = slices.Clone(l.Members)
	return l, err
}

func (s laggingSession) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	v, err := s.Session.Put(ctx, name, value, cond)
	switch {
	case errors.Is(err, backend.ErrVersion):
		s.b.lags = false
	case err == nil && name == election:
		s.b.seen, err = s.Session.Line(ctx, name)
	}
	return v, err
}

// A leader who reads for long that the cutover is asked for, as its server of the new
// coordinator lags behind, does not seal the old one under an abort that has begun since:
// then both would be sealed, and nobody could lead.
func TestAbortAgainstSealThatReadsOldState(t *testing.T) {
	inWorld(t, func(w *world) {
		op := w.begun(onBoth)

		touched := make(chan struct{})
		aborter := migrate.New(w.c[0].Client("aborter"), &interrupted{
			// After From's record was touched, and before To's says that it is over.
			Backend: w.c[1].Client("aborter"), put: calls(2), by: func() {
				close(touched)
				time.Sleep(5 * time.Second) // the leader has sent a seal again, and waits for the answer
			}}, &migrate.Options{From: oldURL, To: newURL})
		defer aborter.Close()
		aborted := make(chan error, 1)
		near, behind := w.c[0].Client("a"), &lagging{Backend: w.c[1].Client("a")}
		b := migrate.New(&interrupted{
			Backend: near, pin: calls(1), by: func() {
				near.Delay(0, 2*time.Second)
				behind.lag()
				w.wg.Go(func() {
					_, err := aborter.Abort(w.ctx, election)
					aborted <- err
				})
				<-touched
			}}, behind, &migrate.Options{From: oldURL, To: newURL})
		defer b.Close()
		s, m := leading(w.ctx, t, b)
		asked := make(chan error, 1)
		w.wg.Go(func() { _ = s.Gone(w.ctx, m) }) // does what it is asked for
		w.wg.Go(func() {
			_, err := op.Cutover(w.ctx, election)
			asked <- err
		})
		if err := <-aborted; err != nil {
			t.Errorf("Abort: %v", err)
		}
		if err := <-asked; !errors.Is(err, migrate.ErrRefused) {
			t.Errorf("Cutover: %v; want that it was aborted", err)
		}
		w.shows(op, migrate.Aborted, "leader:both |", "", "begin again")
		if p, err := s.Ahead(w.ctx, m); err != nil || !p.First {
			t.Errorf("Ahead: %+v, %v; want that its term goes on", p, err)
		}
		if err := s.Leave(w.ctx, m); err != nil {
			t.Error(err)
		}
		a := w.start(onBoth, "a")
		w.leads(a)
		a.end()
	})
}

// A startled backend takes a member of its own that is pinned for one that has gone, as a
// driver may, and says so before it answers Pin.
type startled struct {
	backend.Backend
	pinned chan struct{}
}

type startledSession struct {
	backend.Session
	b *startled
}

func (b *startled) Session(ctx context.Context) (backend.Session, error) {
	s, err := b.Backend.Session(ctx)
	return startledSession{s, b}, err
}

func (s startledSession) Pin(ctx context.Context, m backend.Member, h backend.Header, at backend.Version) error {
	err := s.Session.Pin(ctx, m, h, at)
	close(s.b.pinned)
	time.Sleep(time.Second)
	return err
}

func (s startledSession) Gone(ctx context.Context, m backend.Member) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	gone := make(chan error, 1)
	go func() { gone <- s.Session.Gone(ctx, m) }()
	select {
	case err := <-gone:
		return err
	case <-s.b.pinned:
		cancel()
		<-gone
		return nil
	}
}

// A leader does not take its seal for its place having been removed, and so does both
// steps of the cutover.
func TestSealIsNotTakenForRemoval(t *testing.T) {
	inWorld(t, func(w *world) {
		op := w.begun(onBoth)
		old := &startled{w.c[0].Client("a"), make(chan struct{})}
		far := w.c[1].Client("a")
		far.Delay(time.Millisecond, time.Millisecond)
		b := migrate.New(old, far, &migrate.Options{From: oldURL, To: newURL})
		defer b.Close()
		s, m := leading(w.ctx, t, b)
		w.wg.Go(func() { _ = s.Gone(w.ctx, m) })
		ask, cancel := context.WithCancel(w.ctx)
		defer cancel()
		w.wg.Go(func() { op.Cutover(ask, election) })
		<-old.pinned
		cancel() // nobody else does the second step
		w.until("the gate is gone", ttl, func() bool { return len(w.c[1].Members(election)) == 1 })
		w.shows(op, migrate.Moved, "| leader:both", "", "restart with memory:new alone")
	})
}

// A leader whose seal an abort has beaten resigns, before that is done. As no seal can be set any more, the other elections that its
// process leads go on.
func TestResignAfterARefusedSeal(t *testing.T) {
	inWorld(t, func(w *world) {
		op := w.begun(onBoth)
		touched, goOn := make(chan struct{}), make(chan struct{})
		aborter := migrate.New(w.c[0].Client("aborter"), &interrupted{
			// After From's record was touched, and before To's says that it is over.
			Backend: w.c[1].Client("aborter"), put: calls(2), by: func() { close(touched); <-goOn }},
			&migrate.Options{From: oldURL, To: newURL})
		defer aborter.Close()
		aborted := make(chan error, 1)
		refused := make(chan error, 1)
		b := migrate.New(&refusedSeal{w.c[0].Client("a"), func() {
			w.wg.Go(func() {
				_, err := aborter.Abort(w.ctx, election)
				aborted <- err
			})
			<-touched
		}, refused}, w.c[1].Client("a"), &migrate.Options{From: oldURL, To: newURL, Begin: true})
		defer b.Close()
		var terms []*elect.Term
		for _, name := range []string{election, "another"} {
			term, err := elect.New(b, name, nil).Campaign(w.ctx)
			if err != nil {
				t.Fatal(err)
			}
			terms = append(terms, term)
		}
		w.wg.Go(func() { op.Cutover(w.ctx, election) }) // is refused
		if err := <-refused; err == nil {               // ErrVersion, or nobody waited for the answer any more
			t.Error("it has sealed the old coordinator")
		}
		time.Sleep(time.Second) // it knows
		if err := terms[0].Resign(w.ctx); err != nil {
			t.Error(err)
		}
		if err := terms[1].Check(); err != nil {
			t.Errorf("the term of the other election: %v", err)
		}
		close(goOn)
		if err := <-aborted; err != nil {
			t.Errorf("Abort: %v", err)
		}
		if err := terms[1].Resign(w.ctx); err != nil {
			t.Error(err)
		}
	})
}

// A refusedSeal has something done before its first seal, and tells what became of that.
type refusedSeal struct {
	backend.Backend
	before func()
	told   chan<- error
}

type refusedSealSession struct {
	backend.Session
	b *refusedSeal
}

func (b *refusedSeal) Session(ctx context.Context) (backend.Session, error) {
	s, err := b.Backend.Session(ctx)
	return refusedSealSession{s, b}, err
}

func (s refusedSealSession) Pin(ctx context.Context, m backend.Member, h backend.Header, at backend.Version) error {
	s.b.before()
	err := s.Session.Pin(ctx, m, h, at)
	s.b.told <- err
	return err
}
