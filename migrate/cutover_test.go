package migrate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/internal/view"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/migrate"
)

// Whatever becomes of the request that seals, nobody leads twice and the cutover
// is completed.
func TestSealIsInterrupted(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(w *world, a *process)
		goes bool // the leader goes on
	}{
		{"the answer is lost", func(w *world, a *process) { a.sub[0].LoseAnswer(memory.OpPin) }, true},
		{"the request is lost", func(w *world, a *process) { a.sub[0].LoseRequest(memory.OpPin) }, true},
		{"the leader hears nothing of old any more", func(w *world, a *process) { a.sub[0].CutAnswers() }, false},
		{"the leader is cut off from old", func(w *world, a *process) { a.sub[0].Cut() }, false},
		{"the leader is cut off from new", func(w *world, a *process) { a.sub[1].Cut() }, false},
		{"the leader is told to stop", func(w *world, a *process) {
			a.sub[0].Delay(time.Second, time.Second)
			time.AfterFunc(2*time.Second+ttl/50, a.stop)
		}, false},
		{"the new one removes the leader's member", func(w *world, a *process) {
			a.sub[0].Delay(time.Second, time.Second)
			time.AfterFunc(time.Second, func() { w.c[1].Remove(election, w.c[1].Members(election)[1].Key) })
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				op, a := w.underway(onBoth, "a")
				b := w.start(onBoth, "b")
				time.Sleep(time.Second)
				tt.do(w, a)
				led := w.led
				w.do(op.Cutover, migrate.Moved)
				if tt.goes && (!a.leads() || w.led != led) {
					t.Errorf("the term of the leader did not go on")
				}
				if !tt.goes {
					a.sub[0].Delay(0, 0)
					a.sub[0].Heal()
					a.sub[1].Heal()
					w.until("somebody leads", 5*ttl, func() bool { return a.leads() || b.leads() })
				}
				if seal := w.c[0].Members(election); len(seal) == 0 || !seal[0].Pinned {
					t.Errorf("on the old one stands %+v; want the seal", seal)
				}
				n := w.start(onNew, "n")
				a.end()
				b.end()
				w.leads(n)
				n.end()
			})
		})
	}
}

// A leader knows its seal also where somebody else has written the record since, and its
// coordinator took that for the reason why the seal could not be set.
func TestSealIsFoundAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		op := w.begun(onBoth)
		b := migrate.New(&forgetful{w.c[0].Client("a")}, w.c[1].Client("a"), &migrate.Options{From: oldURL, To: newURL})
		defer b.Close()
		term, err := elect.New(b, election, nil).Campaign(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		w.do(op.Cutover, migrate.Moved)
		w.c[0].Pause() // it needs that no more
		time.Sleep(3 * ttl)
		if err := term.Check(); err != nil {
			t.Errorf("the term that has sealed the old one: %v", err)
		}
		if err := term.Resign(w.ctx); err != nil {
			t.Error(err)
		}
	})
}

// A leader knows its seal also where nobody waited for the answer any more, and the election has moved
// by it. If it cannot look for its seal at once, or a server that lags behind does not know of it, that does not cost
// the term.
func TestSealIsFoundByAhead(t *testing.T) {
	inWorld(t, func(w *world) {
		op := w.begun(onBoth)
		old := &lineless{Backend: w.c[0].Client("a")}
		sub := old.Backend.(*memory.Backend)
		b := migrate.New(old, w.c[1].Client("a"), &migrate.Options{From: oldURL, To: newURL})
		defer b.Close()
		s, m := leading(w.ctx, t, b)
		ctx, cancel := context.WithCancelCause(w.ctx)
		gone, moved := make(chan error, 1), make(chan error, 1)
		go func() { gone <- s.Gone(ctx, m) }()
		sub.Delay(time.Millisecond, time.Second)
		go func() {
			_, err := op.Cutover(w.ctx, election)
			moved <- err
		}()
		w.until("the old one is sealed", ttl, func() bool { return w.c[0].Members(election)[0].Pinned })
		enough := errors.New("enough")
		cancel(enough)
		if err := <-gone; !errors.Is(err, enough) {
			t.Errorf("Gone, when its context has ended: %v", err)
		}
		if err := <-moved; err != nil {
			t.Fatal(err)
		}
		sub.Delay(time.Millisecond, time.Millisecond)
		if _, err := s.Put(w.ctx, "record", []byte("lost"), &backend.If{Member: m}); !errors.Is(err, backend.ErrUnavailable) {
			t.Errorf("a write of who does not know of its seal: %v", err)
		}
		old.fails.Store(true)
		if _, err := s.Ahead(w.ctx, m); !errors.Is(err, backend.ErrUnavailable) {
			t.Errorf("Ahead, which cannot look for the seal: %v", err)
		}
		old.fails.Store(false)
		old.lags.Store(&backend.Line{Members: []backend.Member{{Line: election, Key: m.Key}}}) // as before the seal
		if p, err := s.Ahead(w.ctx, m); err != nil || !p.First {
			t.Errorf("Ahead of who has sealed the old one: %+v, %v", p, err)
		}
		if _, err := s.Put(w.ctx, "record", []byte("kept"), &backend.If{Member: m}); err != nil || string(w.c[1].Record("record").Value) != "kept" {
			t.Errorf("a write after that: %v; the new one has %q", err, w.c[1].Record("record").Value)
		}
	})
}

// A lineless backend cannot read a line while fails is true, and reads lags, if there is one, until it is refreshed.
type lineless struct {
	backend.Backend
	fails atomic.Bool
	lags  atomic.Pointer[backend.Line]
}

type linelessSession struct {
	backend.Session
	b *lineless
}

func (b *lineless) Session(ctx context.Context) (backend.Session, error) {
	s, err := b.Backend.Session(ctx)
	return linelessSession{s, b}, err
}

func (s linelessSession) Line(ctx context.Context, line string) (backend.Line, error) {
	if s.b.fails.Load() {
		return backend.Line{}, backend.ErrUnavailable
	}
	if l := s.b.lags.Load(); l != nil {
		return *l, nil
	}
	return s.Session.Line(ctx, line)
}

func (s linelessSession) Refresh(ctx context.Context) error {
	s.b.lags.Store(nil)
	return s.Session.Refresh(ctx)
}

// A forgetful backend pins, loses the answer, and tries again after somebody else has
// written the record: the version is another one by then.
type forgetful struct{ backend.Backend }

type forgetfulSession struct{ backend.Session }

func (b *forgetful) Session(ctx context.Context) (backend.Session, error) {
	s, err := b.Backend.Session(ctx)
	return forgetfulSession{s}, err
}

func (s forgetfulSession) Pin(ctx context.Context, m backend.Member, h backend.Header, at backend.Version) error {
	if err := s.Session.Pin(ctx, m, h, at); err != nil {
		return err
	}
	noted, err := header.Of(h)
	if err != nil {
		return err
	}
	noted.Resign++
	if _, err := s.Put(ctx, m.Line, noted.Encode(), nil); err != nil {
		return err
	}
	return fmt.Errorf("%w: somebody else has written it", backend.ErrVersion)
}

// A cutover is done when both of its steps are, however they fall between what the
// operator sees.
func TestCutoverIsWhole(t *testing.T) {
	for i := range 50 {
		inWorld(t, func(w *world) {
			op, sub := w.operator(onBoth)
			defer op.Close()
			w.do(op.Begin, migrate.Begun)
			a := w.start(onBoth, "a")
			w.leads(a)
			sub[0].Delay(100*time.Millisecond, 100*time.Millisecond)
			a.sub[1].Delay(time.Duration(i)*40*time.Millisecond, 400*time.Millisecond)
			w.do(op.Cutover, migrate.Moved)
			a.end()
		})
	}
}

// After the cutover nobody needs the old coordinator: not the leader, and not a
// process that is started.
func TestOldIsNotNeeded(t *testing.T) {
	inWorld(t, func(w *world) {
		op, a := w.underway(onBoth, "a")
		w.do(op.Cutover, migrate.Moved)
		w.c[0].Pause()
		time.Sleep(3 * ttl)
		if !a.leads() || w.led != 1 {
			t.Errorf("the leader did not outlive the old coordinator")
		}
		b := w.start(onBoth, "b")
		w.until("the new process stands in line", 3*ttl, func() bool { return len(w.c[1].Members(election)) == 2 })
		a.end()
		w.leads(b)
		w.c[0].Resume()
		time.Sleep(3 * ttl)
		if !b.leads() || w.led != 2 {
			t.Errorf("the return of the old coordinator ended a term")
		}
		b.end()
	})
}

// Who cannot get the new coordinator does not keep the old one from the others.
func TestPatience(t *testing.T) {
	for name, hinder := range map[string]func(w *world, a *process) func(){
		"cut off": func(w *world, a *process) func() { a.sub[1].Cut(); return a.sub[1].Heal },
		"somebody stands there": func(w *world, _ *process) func() {
			n := w.start(onNew, "n")
			time.Sleep(time.Second)
			return n.end
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.begun(onBoth)
				first := w.start(onOld, "first")
				w.leads(first)
				a := w.start(onBoth, "a")
				time.Sleep(time.Second)
				undo := hinder(w, a)
				o := w.start(onOld, "o")
				time.Sleep(time.Second)
				first.end()
				w.leads(o)
				undo()
				time.Sleep(3 * ttl)
				o.end()
				w.leads(a)
				a.end()
			})
		})
	}
}

// One answer of the new coordinator that is lost does not cost a leader its term, however little patience it has.
func TestLeaderHasPatienceEachTime(t *testing.T) {
	inWorld(t, func(w *world) {
		op := w.begun(onBoth)
		sub := [2]*memory.Backend{w.c[0].Client("a"), w.c[1].Client("a")}
		var lose atomic.Bool
		flaky := view.Of(sub[1], func(s backend.Session) backend.Session { return &flakySession{s, &lose} })
		b := migrate.New(sub[0], flaky, &migrate.Options{From: oldURL, To: newURL, Patience: ttl / 4})
		defer b.Close()
		term, err := elect.New(b, election, nil).Campaign(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer term.Resign(w.ctx)
		lose.Store(true)
		time.Sleep(5 * ttl) // it looks about once in a session time
		if lose.Load() {
			t.Fatal("it has not looked at the new coordinator")
		}
		if err := term.Check(); err != nil {
			t.Error(err)
		}
		w.do(op.Cutover, migrate.Moved)
		if err := term.Check(); err != nil {
			t.Error(err)
		}
	})
}

// flakySession loses one answer to a call of Line.
type flakySession struct {
	backend.Session
	lose *atomic.Bool
}

func (s *flakySession) Line(ctx context.Context, line string) (backend.Line, error) {
	if s.lose.CompareAndSwap(true, false) {
		return backend.Line{}, backend.ErrUnavailable
	}
	return s.Session.Line(ctx, line)
}

// A seal is nobody's to remove.
func TestSealStays(t *testing.T) {
	inWorld(t, func(w *world) {
		op := w.begun(onBoth)
		b, _ := w.backend(onBoth, "raw")
		defer b.Close()
		s, err := b.Session(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		m, err := s.Join(w.ctx, election, "raw", "")
		if err != nil {
			t.Fatal(err)
		}
		if p, err := s.Ahead(w.ctx, m.Member); err != nil || !p.First {
			t.Fatalf("Ahead: %+v, %v", p, err)
		}
		term, cancel := context.WithCancel(w.ctx)
		done := make(chan error, 1)
		go func() { done <- s.Gone(term, m.Member) }()
		w.do(op.Cutover, migrate.Moved)
		cancel()
		<-done
		for range 2 {
			if err := s.Leave(w.ctx, m.Member); err != nil {
				t.Error(err)
			}
			if p, err := s.Ahead(w.ctx, m.Member); !errors.Is(err, backend.ErrNotMember) {
				t.Errorf("Ahead after Leave says %+v, %v", p, err)
			}
		}
		if err := s.Close(w.ctx); err != nil {
			t.Fatal(err)
		}
		if s, err = b.Session(w.ctx); err != nil {
			t.Fatal(err)
		}
		if err := s.Leave(w.ctx, m.Member); !errors.Is(err, backend.ErrDenied) {
			t.Errorf("Leave of the seal: %v; want ErrDenied", err)
		}
		if seal := w.c[0].Members(election); len(seal) != 1 {
			t.Errorf("on the old one stands %+v; want the seal", seal)
		}
	})
}

// Records of acknowledgement and resignation, and fences, go along.
func TestHeaderGoesAlong(t *testing.T) {
	for _, raised := range []bool{false, true} {
		t.Run(fmt.Sprintf("fence raised %v", raised), func(t *testing.T) { headerGoesAlong(t, raised) })
	}
}

func headerGoesAlong(t *testing.T, raised bool) {
	inWorld(t, func(w *world) {
		op, a := w.underway(onBoth, "a")
		if err := a.term.Acknowledge(w.ctx); err != nil {
			t.Fatal(err)
		}
		old, new := w.c[0].Client("old"), w.c[1].Client("new")
		defer old.Close()
		defer new.Close()
		floor := a.term.Token() - 1
		if raised {
			floor = 123456
			if err := operate.New(old, election, "").RaiseFence(w.ctx, floor); err != nil {
				t.Fatal(err)
			}
		}
		w.do(op.Cutover, migrate.Moved)
		ob, _ := w.backend(onBoth, "observer")
		defer ob.Close()
		for _, b := range []backend.Backend{new, ob} {
			l, err := elect.New(b, election, nil).Leader(w.ctx)
			if err != nil || l.ID != a.name || l.Token <= floor {
				t.Errorf("on the new coordinator leads %+v, %v; want %s with a token above %d", l, err, a.name, floor)
			}
			if !raised && !l.Acknowledged { // a raised fence makes it another token
				t.Errorf("the acknowledgement did not go along: %+v", l)
			}
		}
		term := a.term
		if _, err := operate.New(ob, election, "").AskToResign(w.ctx, nil); err != nil {
			t.Fatal(err)
		}
		<-term.Context().Done()
		if !errors.Is(context.Cause(term.Context()), elect.ErrAsked) {
			t.Errorf("the term ended with %v", context.Cause(term.Context()))
		}
		w.leads(a)
		a.end()
	})
}

// A leader whose place on the old coordinator an operator deletes knows it by that
// coordinator alone: the next one there leads soon.
func TestRemovedWhileTheNewOneIsSlow(t *testing.T) {
	for name, asked := range map[string]bool{"leading": false, "about to seal": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				op, a := w.underway(onBoth, "a")
				o := w.start(onOld, "o")
				time.Sleep(time.Second)
				o.sub[0].Delay(500*time.Millisecond, 500*time.Millisecond) // it hears of it after the leader
				a.sub[1].Delay(2*time.Second, 2*time.Second)
				if asked {
					ask, cancel := context.WithTimeout(w.ctx, 100*time.Millisecond)
					defer cancel()
					w.refuses(func(_ context.Context, e string) (migrate.Status, error) { return op.Cutover(ask, e) }, migrate.ErrRefused)
					time.Sleep(3 * time.Second) // it has heard, and reads the record again
				}
				w.c[0].Remove(election, w.c[0].Members(election)[0].Key)
				w.leads(o) // and nobody else does; see began
				o.end()
				a.sub[1].Delay(0, 0)
				w.leads(a)
				a.end()
			})
		})
	}
}

// A step whose context ends says why it is not done, at whatever moment that is: also
// while it looks again.
func TestStepOutOfTimeSaysWhy(t *testing.T) {
	inWorld(t, func(w *world) {
		op, _ := w.operator(onBoth)
		defer op.Close()
		says := func(step func(context.Context, string) (migrate.Status, error), after time.Duration, want error, why string) {
			t.Helper()
			ctx, cancel := context.WithTimeout(w.ctx, after)
			defer cancel()
			if _, err := step(ctx, election); !errors.Is(err, want) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), why) {
				t.Errorf("after %v: %v; want %v, and %q", after, err, want, why)
			}
		}
		w.do(op.Begin, migrate.Begun)
		for after := 100 * time.Millisecond; after < 1500*time.Millisecond; after += 3 * time.Millisecond {
			says(op.Cutover, after, migrate.ErrRefused, "nobody leads")
		}
		m, raw := w.raw(1, "early")
		says(op.Abort, ttl, backend.ErrUnavailable, "behind the gate: early") // forbids the cutover first
		for after := 100 * time.Millisecond; after < 1500*time.Millisecond; after += 3 * time.Millisecond {
			says(op.Abort, after, backend.ErrUnavailable, "behind the gate: early")
		}
		if err := raw.Leave(w.ctx, m); err != nil {
			t.Fatal(err)
		}
		w.do(op.Abort, migrate.Aborted)
	})
}

// A cutover that was seen to be sealed cannot be taken back, and is not called refused.
func TestCutoverOutOfTimeAfterTheSeal(t *testing.T) {
	inWorld(t, func(w *world) {
		op, sub := w.operator(onBoth)
		defer op.Close()
		id := w.do(op.Begin, migrate.Begun).ID
		m, raw := w.raw(0, "leader")
		ctx, cancel := context.WithCancel(w.ctx)
		done := make(chan error, 1)
		w.wg.Go(func() { _, err := op.Cutover(ctx, election); done <- err })
		time.Sleep(500 * time.Millisecond) // it has asked, and waits
		sub[1].Delay(time.Second, time.Second)
		w.seals(raw, m, id)
		time.Sleep(3500 * time.Millisecond) // it has looked, and takes away the gate
		cancel()
		if err := <-done; errors.Is(err, migrate.ErrRefused) || !errors.Is(err, context.Canceled) {
			t.Errorf("it ends with %v; want %v, and no refusal", err, context.Canceled)
		}
		sub[1].Delay(0, 0)
		w.do(op.Finish, migrate.Moved)
	})
}

// Whoever gives up a cutover, at whatever moment, is told of the request if that stands.
func TestCutoverGivenUp(t *testing.T) {
	for after := time.Duration(0); after < 60*time.Millisecond; after += 500 * time.Microsecond {
		inWorld(t, func(w *world) {
			op := w.begun(onBoth)
			w.raw(0, "leader")
			ctx, cancel := context.WithTimeout(w.ctx, after)
			defer cancel()
			_, err := op.Cutover(ctx, election)
			time.Sleep(time.Second) // what was sent arrives
			s, serr := op.Status(w.ctx, election)
			if serr != nil {
				t.Fatal(serr)
			}
			asked := strings.Contains(err.Error(), "asked, and not seen to be done")
			says := asked || strings.Contains(err.Error(), "not known whether the leader was asked")
			if asked && s.Phase != migrate.Asked {
				t.Errorf("given up after %v, in phase %s: %v", after, s.Phase, err)
			}
			if s.Phase == migrate.Asked && !says {
				t.Errorf("given up after %v: %v", after, err)
			}
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("given up after %v: %v, want the end of the context", after, err)
			}
			if after == 0 && says || after > 50*time.Millisecond && !says {
				t.Errorf("given up after %v: %v", after, err)
			}
		})
	}
}

// A cutover that could not ask the leader does not say that it has, and says why not.
func TestCutoverThatCannotAsk(t *testing.T) {
	for name, tt := range map[string]struct {
		fails error
		ends  bool // the context ends meanwhile
	}{
		"out of reach":               {backend.ErrUnavailable, false},
		"denied":                     {backend.ErrDenied, false},
		"denied when its time is up": {backend.ErrDenied, true},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.begun(onBoth)
				w.raw(0, "leader")
				ctx, cancel := context.WithTimeout(w.ctx, 5*time.Second)
				defer cancel()
				to := view.Of(w.c[1].Client("mute"), func(s backend.Session) backend.Session {
					return mute{s, func() error {
						if tt.ends {
							cancel()
						}
						return tt.fails
					}}
				})
				op := migrate.New(w.c[0].Client("mute"), to, &migrate.Options{From: oldURL, To: newURL})
				defer op.Close()
				_, err := op.Cutover(ctx, election)
				if !errors.Is(err, tt.fails) || errors.Is(err, migrate.ErrRefused) || !strings.Contains(err.Error(), tt.fails.Error()) || strings.Contains(err.Error(), "asked, and not seen") {
					t.Errorf("it ends with %v; want %v, and no request", err, tt.fails)
				}
			})
		})
	}
}

// A mute session cannot write the election's record.
type mute struct {
	backend.Session
	fails func() error
}

func (s mute) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	if name == election {
		return 0, s.fails()
	}
	return s.Session.Put(ctx, name, value, cond)
}

// Candidates that wait on the old coordinator learn of the seal from the one in front, and not only when they look again
// after a session time: nobody would lead if the leader went meanwhile.
func TestWaitersFollowTheSeal(t *testing.T) {
	inWorld(t, func(w *world) {
		op, a := w.underway(onBoth, "a")
		rest := []*process{w.start(onBoth, "b"), w.start(onBoth, "c")}
		w.until("all stand on the old one", ttl, func() bool { return len(w.c[0].Members(election)) == 3 })
		time.Sleep(time.Second)
		w.do(op.Cutover, migrate.Moved)
		w.until("all stand on the new one", ttl/4, func() bool { return len(w.c[1].Members(election)) == 3 })
		for _, p := range append(rest, a) {
			p.end()
		}
	})
}

// A leader that loses its place on the new coordinator keeps the one on the old coordinator until it knows, and has left.
func TestLeaderKeepsTheOldOneUntilItKnows(t *testing.T) {
	inWorld(t, func(w *world) {
		w.begun(onBoth)
		var term *elect.Term
		knew := make(chan bool, 9)
		old := view.Of(w.c[0].Client("a"), func(s backend.Session) backend.Session {
			return leaveTold{s, func(m backend.Member) {
				if term != nil && m.Line == election {
					knew <- term.Check() != nil
				}
			}}
		})
		both := migrate.New(old, w.c[1].Client("a"), &migrate.Options{From: oldURL, To: newURL})
		b := view.Of(both, func(s backend.Session) backend.Session { return lateWatch{s} })
		defer b.Close()
		var err error
		if term, err = elect.New(b, election, nil).Campaign(w.ctx); err != nil {
			t.Fatal(err)
		}
		w.c[1].Remove(election, w.c[1].Members(election)[1].Key)
		<-term.Context().Done()
		if err := term.Resign(w.ctx); err != nil {
			t.Error(err)
		}
		if !<-knew {
			t.Error("it has left the old coordinator before its term has ended")
		}
	})
}

// A leader that has lost its place on the new coordinator leaves the old one at once, also if the new one is slow to answer.
func TestLeavesTheOldOneWithoutTheNewOne(t *testing.T) {
	inWorld(t, func(w *world) {
		_, p := w.underway(onBoth, "p")
		o := w.start(onOld, "o")
		w.until("both stand in line", ttl, func() bool { return len(w.c[0].Members(election)) == 2 })
		p.sub[1].Delay(ttl/5, 0)
		w.c[1].Remove(election, w.c[1].Members(election)[1].Key)
		w.until("o leads", ttl/10, o.leads)
		p.sub[1].Delay(0, 0)
		p.end()
		o.end()
	})
}

// A leaveTold tells before a member leaves.
type leaveTold struct {
	backend.Session
	tell func(backend.Member)
}

func (s leaveTold) Leave(ctx context.Context, m backend.Member) error {
	s.tell(m)
	return s.Session.Leave(ctx, m)
}

// A lateWatch says late that a place cannot be watched any more.
type lateWatch struct{ backend.Session }

func (s lateWatch) WatchPlace(ctx context.Context, m backend.Member, p *backend.Place) error {
	err := s.Session.WatchPlace(ctx, m, p)
	if err != nil && ctx.Err() == nil {
		time.Sleep(ttl / 2)
	}
	return err
}
