package spread_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/rig/lane"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/migrate"
	"github.com/succession-dev/succession/spread"
)

// A request to resign that comes late, when another leads, does not end the term of that one.
func TestResignComesLate(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		stop := w.process("p", "a", "b").run(election)
		w.until("p leads", time.Minute, func() bool { return w.leader(election) == "p" })
		w.process("q", "a", "b").run(election)
		w.until("q waits", time.Minute, func() bool { return len(w.c[w.at(election)].Members(election)) == 2 })
		op := w.process("operator", "a", "b")
		late := false
		op.before = func(call, on string) {
			if call == "head" && on == election && !late {
				late = true
				stop()
				w.until("q leads", time.Minute, func() bool { return w.leader(election) == "q" })
			}
		}
		if err := op.Move(w.ctx, election, other(w.at(election)), nil); err != nil {
			t.Fatal(err)
		}
		if !late {
			t.Fatal("nobody was asked to resign")
		}
		w.finish(op, election)
		if n, leads := w.count(election), w.leader(election); n != 2 || leads != "q" {
			t.Errorf("%q leads, in term %d; want q, in term 2", leads, n)
		}
	}, "a", "b")
}

// Who has just become leader, and does not stand on the new cluster yet, is not asked to resign.
func TestResignWaitsForNewLeader(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		stop := w.process("p", "a", "b").run(election)
		w.until("p leads", time.Minute, func() bool { return w.leader(election) == "p" })
		from := w.at(election)
		to := other(from)
		q := w.process("q", "a", "b")
		q.run(election)
		w.until("q waits", time.Minute, func() bool { return len(w.c[from].Members(election)) == 2 })
		moved := make(chan error, 1)
		op := w.process("operator", "a", "b")
		w.wg.Go(func() { moved <- op.Move(w.ctx, election, to, nil) })
		time.Sleep(1900 * time.Millisecond) // p is about to be asked, and q knows of the move
		q.each(to, func(b *memory.Backend) { b.Delay(80*time.Millisecond, 80*time.Millisecond) })
		stop()
		if err := <-moved; err != nil {
			t.Fatal(err)
		}
		if n, leads := w.count(election), w.leader(election); n != 2 || leads != "q" {
			t.Errorf("%q leads, in term %d; want q, in term 2", leads, n)
		}
	}, "a", "b")
}

// Close ends a move that waits, and its sessions.
func TestCloseEndsMove(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.process("p", "a", "b").run(election)
		w.until("p leads", time.Minute, func() bool { return w.leader(election) == "p" })
		op := w.process("operator", "a", "b")
		moved := make(chan error, 1)
		w.wg.Go(func() { moved <- op.Move(w.ctx, election, other(w.at(election)), nil) })
		time.Sleep(time.Second)
		op.Close()
		select {
		case err := <-moved:
			if !errors.Is(err, backend.ErrClosed) {
				t.Errorf("%v; want %v", err, backend.ErrClosed)
			}
		default:
			t.Error("the move goes on")
		}
		if err := op.Move(w.ctx, election, "b", nil); !errors.Is(err, backend.ErrClosed) {
			t.Errorf("a move after Close: %v; want %v", err, backend.ErrClosed)
		}
	}, "a", "b")
}

// An abort that comes just before the gate is put finds none. Who moves takes it away then, also if he gives
// up at that moment.
func TestAbortBeforeTheGate(t *testing.T) {
	for name, givesUp := range map[string]func(*process, context.CancelFunc){
		"goes on":  func(*process, context.CancelFunc) {},
		"gives up": func(_ *process, cancel context.CancelFunc) { cancel() },
		"closes": func(op *process, _ context.CancelFunc) {
			op.w.wg.Go(func() { op.Close() })
			synctest.Wait()
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				other := w.process("other", "a", "b")
				at := home(t, other).At
				to := map[string]string{"a": "b", "b": "a"}[at]
				op := w.process("operator", "a", "b")
				ctx, cancel := context.WithCancel(w.ctx)
				defer cancel()
				aborted := false
				op.before = func(call, on string) {
					if call != "pin" || on != election || aborted {
						return
					}
					aborted = true
					if err := other.Abort(w.ctx, election); err != nil {
						t.Error("abort:", err)
					}
					givesUp(op, cancel)
				}
				want(t, op.Move(ctx, election, to, nil), spread.ErrRefused, "taken the move back")
				if !aborted {
					t.Fatal("no gate was put")
				}
				if m := w.c[to].Members(election); len(m) > 0 {
					t.Errorf("on %s stand %+v", to, m)
				}
			}, "a", "b")
		})
	}
}

// A step that another takes at the same moment, with those after it, is done.
func TestSameStepAtOneMoment(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		other := w.process("other", "a", "b")
		at := home(t, other).At
		to := map[string]string{"a": "b", "b": "a"}[at]
		move := func(p *process) error { return p.Move(w.ctx, election, to, nil) }
		finish := func(p *process) error { return p.Finish(w.ctx, election, nil) }
		abort := func(p *process) error { return p.Abort(w.ctx, election) }
		// meets takes a step, in which others are taken before the home is written for the n-th time.
		meets := func(n int, step func(*process) error, others ...func(*process) error) {
			t.Helper()
			op := w.process("operator", "a", "b")
			op.before = func(call, on string) {
				if call != "put" || on != election+".spread" {
					return
				}
				if n--; n == 0 {
					for _, step := range others {
						if err := step(other); err != nil {
							t.Error(err)
						}
					}
				}
			}
			if err := step(op); err != nil || n > 0 {
				t.Errorf("%v; the home is to be written %d times more", err, n)
			}
		}
		ctx, cancel := context.WithCancel(w.ctx)
		dies := w.process("dies", "a", "b")
		dies.before = func(call, on string) {
			if call == "pin" && on == election {
				cancel()
			}
		}
		want(t, dies.Move(ctx, election, to, nil), context.Canceled)
		meets(1, abort, abort)
		meets(2, move, move)
		meets(1, finish, finish)
		to = at
		meets(2, move, move, finish)
		if h, _, err := other.Where(w.ctx, election); err != nil || h != (spread.Home{At: to}) {
			t.Errorf("it lives on %+v, %v; want %s", h, err, to)
		}
	}, "a", "b")
}

// A leader that crashes just before it is asked to cut over does not hold up the move: the next one is asked to
// resign if it does not stand on both clusters, and when nobody is left in line, Move stands there.
func TestLeaderDiesAtTheCutover(t *testing.T) {
	for name, heir := range map[string]bool{"alone": false, "before another": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				p, q := w.process("p", "a", "b"), w.process("q", "a", "b")
				at := home(t, p).At
				to := other(at)
				p.run(election)
				w.until("p leads", time.Minute, func() bool { return w.leader(election) == "p" })
				q.run(election) // leads when p has been asked to resign
				w.until("q waits", time.Minute, func() bool { return len(w.c[at].Members(election)) == 2 })
				op := w.process("operator", "a", "b")
				asked := false
				op.before = func(call, on string) {
					if call != "put" || on != election || asked || w.leader(election) != "q" {
						return
					}
					asked = true
					if heir {
						b := w.c[at].Client("heir")
						w.wg.Go(func() {
							defer b.Close()
							if term, err := elect.New(b, election, nil).Campaign(w.ctx); err == nil {
								<-term.Context().Done() // it is asked to resign
								term.Resign(w.ctx)
							}
						})
						w.until("the heir waits", time.Minute, func() bool { return len(w.c[at].Members(election)) == 3 })
					}
					p.kill()
					q.kill()
				}
				ctx, cancel := context.WithTimeout(w.ctx, 2*time.Minute)
				defer cancel()
				err := op.Move(ctx, election, to, nil)
				if !asked {
					t.Fatal("nobody was asked to cut over")
				}
				if err != nil {
					t.Error(err)
				}
			}, "a", "b")
		})
	}
}

// A candidate that is first on the old cluster, and waits on the new one, knows of the move: it is not asked to resign.
func TestWaitsOnTheNewCluster(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.process("p", "a", "b")
		at := home(t, p).At
		to := other(at)
		p.run(election)
		w.until("p leads", time.Minute, func() bool { return w.leader(election) == "p" })
		q := w.process("q", "a", "b")
		q.run(election)
		w.until("q waits", time.Minute, func() bool { return len(w.c[at].Members(election)) == 2 })
		s, err := w.c[to].Client("foreign").Session(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		op := w.process("operator", "a", "b")
		moved := make(chan error, 1)
		w.wg.Go(func() { moved <- op.Move(w.ctx, election, to, nil) })
		w.until("the gate stands", time.Minute, func() bool { m := w.c[to].Members(election); return len(m) == 1 && m[0].Pinned })
		m, err := s.Join(w.ctx, election, "foreign", "")
		if err != nil {
			t.Fatal(err)
		}
		w.until("q waits on the new cluster", time.Minute, func() bool { return len(w.c[to].Members(election)) == 3 })
		time.Sleep(ttl)
		if err := s.Leave(w.ctx, m.Member); err != nil {
			t.Fatal(err)
		}
		if err := <-moved; err != nil {
			t.Fatal(err)
		}
		if n, leads := w.count(election), w.leader(election); n != 2 || leads != "q" {
			t.Errorf("%q leads, in term %d; want q, in term 2", leads, n)
		}
	}, "a", "b")
}

// killedBefore has an operator do something, who is killed before his n-th step, and returns that, or "" if there are fewer.
func (w *world) killedBefore(t *testing.T, n int, do func(context.Context, *process) error, clusters ...string) (last string) {
	t.Helper()
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	op := w.process("killed", clusters...)
	var mu sync.Mutex
	op.before = func(call, on string) {
		if call == "got" {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if n--; n == 0 {
			last = call + " " + on
			op.kill()
			cancel()
		}
	}
	if err := do(ctx, op); (last != "") != (err != nil) {
		t.Fatalf("killed before %q: %v", last, err)
	}
	return last
}

// A move that is killed before any of its steps leaves nothing that Abort, or Finish, does not clear
// away: the election can be moved anywhere afterwards.
func TestMoveIsKilled(t *testing.T) {
	for kill, killed := 1, true; killed; kill++ {
		inWorld(t, func(t *testing.T, w *world) {
			at := home(t, w.process("first", "a", "b", "c")).At
			to, third := "b", "c"
			switch at {
			case "b":
				to = "a"
			case "c":
				third = "a"
			}
			last := w.killedBefore(t, kill, func(ctx context.Context, op *process) error { return op.Move(ctx, election, to, nil) }, "a", "b", "c")
			killed = last != ""
			op := w.process("operator", "a", "b", "c")
			if err := op.Abort(w.ctx, election); errors.Is(err, spread.ErrRefused) {
				w.finish(op, election)
			} else if err != nil {
				t.Errorf("killed before %s: abort: %v", last, err)
			} else if h, _, err := op.Where(w.ctx, election); err != nil || h != (spread.Home{At: at}) {
				t.Errorf("killed before %s: it lives on %+v, %v; want %s", last, h, err, at)
			} else if slices.ContainsFunc(w.c[to].Members(election), func(m backend.Member) bool { return m.Pinned }) {
				t.Errorf("killed before %s: after the abort the gate stands", last)
			}
			for _, to := range []string{third, to, at} {
				if err := op.Move(w.ctx, election, to, nil); err != nil {
					t.Errorf("killed before %s: move to %s: %v", last, to, err)
				}
				w.finish(op, election)
			}
			w.process("p", "a", "b", "c").run(election)
			w.until("p leads", time.Minute, func() bool { return w.leader(election) == "p" })
		}, "a", "b", "c")
	}
}

// An abort, or the end of a move, that is killed before any of its steps is done by the next one, and candidates stand all along.
func TestLastStepIsKilled(t *testing.T) {
	for name, step := range map[string]func(context.Context, *process) error{
		"abort":  func(ctx context.Context, op *process) error { return op.Abort(ctx, election) },
		"finish": func(ctx context.Context, op *process) error { return op.Finish(ctx, election, nil) },
	} {
		for kill, last := 1, "none"; last != ""; kill++ {
			inWorld(t, func(t *testing.T, w *world) {
				at := home(t, w.process("first", "a", "b")).At
				to := other(at)
				stays, foreign := to, w.c[at].Client("foreign")
				defer foreign.Close()
				if name == "abort" { // one leads that never stands on both clusters
					stays = at
					s, err := foreign.Session(w.ctx)
					if err == nil {
						_, err = s.Join(w.ctx, election, "foreign", "")
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				for _, name := range []string{"p", "q"} {
					w.process(name, "a", "b").run(election)
				}
				op := w.process("operator", "a", "b")
				ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
				defer cancel()
				if err := op.Move(ctx, election, to, nil); (err != nil) != (name == "abort") {
					t.Fatal(err)
				}
				time.Sleep(2 * ttl) // all have followed
				last = w.killedBefore(t, kill, step, "a", "b")
				time.Sleep(2 * ttl)
				if err := step(w.ctx, op); err != nil {
					t.Errorf("%s, after one that was killed before %q: %v", name, last, err)
				}
				if h, _, err := op.Where(w.ctx, election); err != nil || h != (spread.Home{At: stays}) {
					t.Errorf("killed before %q: it lives on %+v, %v; want %s", last, h, err, stays)
				}
				if err := foreign.Close(); err != nil {
					t.Fatal(err)
				}
				w.until("somebody leads", time.Minute, func() bool { return w.leader(election) != "" })
				if err := op.Move(w.ctx, election, other(stays), nil); err != nil {
					t.Errorf("killed before %q: another move: %v", last, err)
				}
			}, "a", "b")
		}
	}
}

// Of two operators who move the election to different clusters at one moment, at most one does, and
// the other is told so; the election moves on all the same.
func TestTwoOperators(t *testing.T) {
	lane.Unraced(t)
	for delay := range 12 {
		inWorld(t, func(t *testing.T, w *world) {
			p := w.process("p", "a", "b", "c")
			h := home(t, p)
			p.run(election)
			w.process("q", "a", "b", "c").run(election)
			w.until("somebody leads", time.Minute, func() bool { return w.leader(election) != "" })
			time.Sleep(time.Second)
			var targets []string
			for _, name := range []string{"a", "b", "c"} {
				if name != h.At {
					targets = append(targets, name)
				}
			}
			errs := make(chan error, 2)
			for i, to := range targets {
				op := w.process("operator", "a", "b", "c")
				w.wg.Go(func() {
					time.Sleep(time.Duration(i*delay) * 3 * time.Millisecond)
					ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
					defer cancel()
					errs <- op.Move(ctx, election, to, nil)
				})
			}
			done := 0
			for range targets {
				if err := <-errs; err == nil {
					done++
				} else if !errors.Is(err, spread.ErrRefused) && !errors.Is(err, backend.ErrVersion) && !errors.Is(err, migrate.ErrOther) {
					t.Errorf("Move: %v", err)
				}
			}
			op := w.process("operator", "a", "b", "c")
			now, _, err := op.Where(w.ctx, election)
			if err != nil || done > 1 || done == 1 != (now.To != "") {
				t.Fatalf("%d operators have moved it; it lives on %+v, %v", done, now, err)
			}
			if done == 1 {
				w.finish(op, election)
			}
			now, _, _ = op.Where(w.ctx, election)
			for _, to := range []string{"a", "b", "c"} {
				if to == now.At {
					continue
				}
				if err := op.Move(w.ctx, election, to, nil); err != nil {
					t.Errorf("afterwards, to %s: %v", to, err)
				}
				w.finish(op, election)
			}
			w.until("somebody leads", time.Minute, func() bool { return w.leader(election) != "" })
		}, "a", "b", "c")
	}
}
