package migrate_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/migrate"
)

const election = "reports"

// A world is two coordinators, and everybody who ever led there.
type world struct {
	t      *testing.T
	c      [2]*memory.Coordinator
	ctx    context.Context
	cancel context.CancelFunc

	mu     sync.Mutex
	terms  map[*elect.Term]string
	newest uint64
	who    string
	led    int
	wg     sync.WaitGroup
}

func inWorld(t *testing.T, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, terms: make(map[*elect.Term]string)}
		for side := range w.c {
			w.c[side] = memory.New(&memory.Options{TTL: ttl, Slack: slack, Index: uint64(side * 500)})
		}
		w.ctx, w.cancel = context.WithCancel(context.Background())
		defer w.wg.Wait()
		defer w.cancel()
		f(w)
	})
}

// A process runs elect on a backend until it is stopped.
type process struct {
	w    *world
	name string
	b    backend.Backend
	sub  [2]*memory.Backend // nil where it has none
	stop context.CancelFunc
	done chan struct{}
	err  error // what Run returned
	mu   sync.Mutex
	term *elect.Term
}

// The ways in which a process can be run.
const (
	onOld  = "old"
	onNew  = "new"
	onBoth = "both"
	onBack = "back"

	// These begin the migration.
	beginsBoth = "begins"
	beginsBack = "begins back"
)

func (w *world) backend(mode, name string) (backend.Backend, [2]*memory.Backend) {
	var sub [2]*memory.Backend
	for side := range sub {
		if mode == onOld && side == 1 || mode == onNew && side == 0 {
			continue
		}
		sub[side] = w.c[side].Client(name)
		sub[side].Delay(time.Millisecond, time.Millisecond)
	}
	switch mode {
	case onOld:
		return sub[0], sub
	case onNew:
		return sub[1], sub
	case onBack, beginsBack:
		return migrate.New(sub[1], sub[0], &migrate.Options{From: newURL, To: oldURL, Begin: mode == beginsBack}), sub
	}
	return migrate.New(sub[0], sub[1], &migrate.Options{From: oldURL, To: newURL, Begin: mode == beginsBoth}), sub
}

func (w *world) start(mode, name string) *process {
	p := &process{w: w, name: name + "-" + mode, done: make(chan struct{})}
	p.b, p.sub = w.backend(mode, p.name)
	ctx, stop := context.WithCancel(w.ctx)
	p.stop = stop
	w.wg.Go(func() {
		defer close(p.done)
		defer p.b.Close()
		p.err = elect.New(p.b, election, &elect.Options{ID: p.name}).Run(ctx, func(ctx context.Context, t *elect.Term) error {
			w.began(p, t)
			<-ctx.Done()
			w.ended(p, t)
			return nil
		})
	})
	return p
}

func (w *world) began(p *process, t *elect.Term) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for o, name := range w.terms {
		if o.Check() == nil {
			w.t.Errorf("%s leads with token %d, while %s does with token %d", p.name, t.Token(), name, o.Token())
		}
	}
	if t.Token() <= w.newest {
		w.t.Errorf("%s leads with token %d, after %s did with %d", p.name, t.Token(), w.who, w.newest)
	}
	w.newest, w.who = max(w.newest, t.Token()), p.name
	w.terms[t] = p.name
	w.led++
	p.mu.Lock()
	p.term = t
	p.mu.Unlock()
}

func (w *world) ended(p *process, t *elect.Term) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.terms, t)
	p.mu.Lock()
	p.term = nil
	p.mu.Unlock()
}

func (p *process) leads() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.term != nil && p.term.Check() == nil
}

func (p *process) end() {
	p.stop()
	<-p.done
}

// until waits until cond holds.
func (w *world) until(what string, d time.Duration, cond func() bool) {
	w.t.Helper()
	for end := time.Now().Add(d); !cond(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("not after %v: %s\nold: %+v %s\nnew: %+v %s", d, what,
				w.c[0].Members(election), w.c[0].Record(election).Value, w.c[1].Members(election), w.c[1].Record(election).Value)
		}
	}
}

func (w *world) leads(p *process) {
	w.t.Helper()
	w.until(p.name+" leads", time.Minute, p.leads)
}

func (w *world) operator(mode string) (*migrate.Backend, [2]*memory.Backend) {
	b, sub := w.backend(mode, "operator")
	return b.(*migrate.Backend), sub
}

// begun returns the operator of a migration that has begun, for as long as the test.
func (w *world) begun(mode string) *migrate.Backend {
	w.t.Helper()
	op, _ := w.operator(mode)
	w.t.Cleanup(func() { op.Close() })
	w.do(op.Begin, migrate.Begun)
	return op
}

// underway is begun, and returns a process as well that leads by both coordinators.
func (w *world) underway(mode, name string) (*migrate.Backend, *process) {
	w.t.Helper()
	op, p := w.begun(mode), w.start(mode, name)
	w.leads(p)
	return op, p
}

// seals has m, which s has joined on the old coordinator, seal that and do nothing else: the
// gate still stands.
func (w *world) seals(s backend.Session, m backend.Member, id string) {
	w.t.Helper()
	l, err := s.Line(w.ctx, election)
	if err != nil {
		w.t.Fatal(err)
	}
	h, err := header.Of(l.Header)
	if err != nil {
		w.t.Fatal(err)
	}
	h.Sealed, h.Migration = newURL, header.Migration{ID: id, From: oldURL, To: newURL, Step: "sealed"}
	if err := s.Pin(w.ctx, m, h.Stored(), l.Version); err != nil {
		w.t.Fatal(err)
	}
}

// raw lets somebody stand in line on a side who does nothing of its own.
func (w *world) raw(side int, value string) (backend.Member, backend.Session) {
	w.t.Helper()
	s, err := w.c[side].Client("raw").Session(w.ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	m, err := s.Join(w.ctx, election, value, "")
	if err != nil {
		w.t.Fatal(err)
	}
	return m.Member, s
}

// leading returns a session of b that leads the election, and its member.
func leading(ctx context.Context, t *testing.T, b backend.Backend) (backend.Session, backend.Member) {
	t.Helper()
	s, err := b.Session(ctx)
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.Join(ctx, election, "leader", "")
	if err != nil {
		t.Fatal(err)
	}
	if p, err := s.Ahead(ctx, m.Member); err != nil || !p.First {
		t.Fatalf("Ahead: %+v, %v; want to be first", p, err)
	}
	return s, m.Member
}

type step func(context.Context, string) (migrate.Status, error)

// do takes a step, which must succeed and end in the phase.
func (w *world) do(f step, want migrate.Phase) migrate.Status {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, 2*time.Minute)
	defer cancel()
	s, err := f(ctx, election)
	if err != nil || s.Phase != want {
		w.t.Fatalf("the step ended in phase %q, %v; want %q", s.Phase, err, want)
	}
	return s
}

// refuses takes a step that must be refused, and returns the reason.
func (w *world) refuses(f step, want error, words ...string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, 5*time.Second)
	defer cancel()
	_, err := f(ctx, election)
	if !errors.Is(err, want) {
		w.t.Fatalf("the step returned %v; want %v", err, want)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			w.t.Errorf("the error %q does not say %q", err, word)
		}
	}
}
