package barrier_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/rig/bubble"
	"github.com/succession-dev/succession/internal/view"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/recipes/barrier"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A call is one that waits in the background.
type call struct {
	b      *memory.Backend
	in     *barrier.Inside // of a double barrier
	err    error
	done   chan struct{}
	cancel context.CancelFunc
}

func start(t *testing.T, b *memory.Backend, f func(context.Context, *call) error) *call {
	k := &call{b: b, done: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	k.cancel = cancel
	go func() {
		defer close(k.done)
		k.err = f(ctx, k)
	}()
	synctest.Wait()
	return k
}

// waits has a client of its own wait for the barrier "start" of n.
func waits(t *testing.T, c *memory.Coordinator, name string, n int) *call {
	t.Helper()
	b := bubble.Client(t, c, name)
	return start(t, b, func(ctx context.Context, _ *call) error { return barrier.New(b, "start", n, nil).Wait(ctx) })
}

// enters has a client of its own enter the double barrier "start" of n.
func enters(t *testing.T, c *memory.Coordinator, name string, n int) *call {
	t.Helper()
	b := bubble.Client(t, c, name)
	return start(t, b, func(ctx context.Context, k *call) (err error) {
		k.in, err = barrier.NewDouble(b, "start", n, nil).Enter(ctx)
		return err
	})
}

// leaves has one who is inside leave.
func leaves(t *testing.T, k *call) *call {
	return start(t, k.b, func(ctx context.Context, _ *call) error { return k.in.Leave(ctx) })
}

// ends waits until the call has returned.
func ends(t *testing.T, k *call) {
	t.Helper()
	select {
	case <-k.done:
	case <-time.After(time.Hour):
		t.Fatal("the call has not returned")
	}
}

func (k *call) returned() bool {
	synctest.Wait()
	select {
	case <-k.done:
		return true
	default:
		return false
	}
}

// passed checks that exactly these of all have returned, and without an error.
func passed(t *testing.T, what string, all []*call, want ...int) {
	t.Helper()
	for i, k := range all {
		if k.returned() != slices.Contains(want, i) {
			t.Fatalf("%s: number %d has returned: %v", what, i, k.returned())
		}
		if k.returned() && k.err != nil {
			t.Fatalf("%s: number %d: %v", what, i, k.err)
		}
	}
}

// lost checks that err says what was lost, and returns its token.
func lost(t *testing.T, err error) uint64 {
	t.Helper()
	var l *elect.LostError
	if !errors.As(err, &l) || !errors.Is(err, elect.ErrLost) || l.Election != "start-arrivals" || l.Token == 0 {
		t.Fatalf("%v does not say what was lost", err)
	}
	return l.Token
}

// empty checks that nobody stands in line any more.
func empty(t *testing.T, c *memory.Coordinator) {
	t.Helper()
	if left := c.Members("start-arrivals"); len(left) != 0 {
		t.Errorf("%v stand in line", left)
	}
}

// The barrier opens for n, and for no more of those who wait.
func TestOpens(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		var all []*call
		for i := range 8 {
			all = append(all, waits(t, c, fmt.Sprint("c", i), 3))
			var want []int
			for j := range (i + 1) / 3 * 3 {
				want = append(want, j)
			}
			passed(t, fmt.Sprint(i+1, " have come"), all, want...)
		}
		all[6].cancel()
		all[7].cancel()
		for _, k := range all[6:] {
			ends(t, k)
			bubble.Want(t, k.err, context.Canceled)
		}
		empty(t, c)
	})
}

// Those who come while nobody can count are let in round by round, and no round is larger than n.
func TestManyAtOnce(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		var all []*call
		for i := range 10 {
			b := bubble.Client(t, c, fmt.Sprint("c", i))
			b.Delay(time.Millisecond, 20*time.Millisecond)
			all = append(all, start(t, b, func(ctx context.Context, k *call) (err error) {
				k.in, err = barrier.NewDouble(b, "start", 3, nil).Enter(ctx)
				return err
			}))
		}
		time.Sleep(time.Minute)
		inside := 0
		for _, k := range all {
			if k.returned() {
				inside++
			}
		}
		if inside != 9 {
			t.Errorf("of 10, %d are inside", inside)
		}
		for _, k := range all {
			k.cancel()
			if ends(t, k); k.in != nil {
				go k.in.Leave(t.Context())
			}
		}
		time.Sleep(time.Minute)
		empty(t, c)
	})
}

// Whoever dies before the barrier opens does not count, nor does whoever gives up, also if it is
// the one who counts.
func TestTheDeadDoNotCount(t *testing.T) {
	for name, dies := range map[string]func(*call){
		"killed": func(k *call) {
			k.b.Kill()
			time.Sleep(2 * bubble.TTL)
		},
		"gives up": func(k *call) {
			k.cancel()
			ends(t, k)
		},
	} {
		for dead := range 3 {
			t.Run(fmt.Sprint(name, " as number ", dead), func(t *testing.T) {
				bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
					var all []*call
					for i := range 3 {
						all = append(all, waits(t, c, fmt.Sprint("c", i), 4))
					}
					dies(all[dead])
					all = slices.Delete(all, dead, dead+1)
					all = append(all, waits(t, c, "late", 4))
					passed(t, "three stand", all)
					all = append(all, waits(t, c, "last", 4))
					passed(t, "four stand", all, 0, 1, 2, 3)
					empty(t, c)
				})
			})
		}
	}
}

// One whose session ends joins again, and counts once.
func TestExpiredCountsOnce(t *testing.T) {
	for who := range 2 {
		bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
			all := []*call{waits(t, c, "a", 3), waits(t, c, "b", 3)}
			for range 5 {
				all[who].b.Expire()
				time.Sleep(bubble.TTL)
			}
			passed(t, "two stand", all)
			all = append(all, waits(t, c, "c", 3))
			passed(t, "three stand", all, 0, 1, 2)
			empty(t, c)
		})
	}
}

// Whoever counts may lose the answer to its write, or the write: all pass, and nobody twice.
func TestLostAnswer(t *testing.T) {
	for name, lose := range map[string]func(*memory.Backend, ...memory.Op){
		"answer": (*memory.Backend).LoseAnswer, "request": (*memory.Backend).LoseRequest,
	} {
		for _, op := range []memory.Op{memory.OpPut, memory.OpAhead, memory.OpGet, memory.OpLine, memory.OpWatchLine, memory.OpWatch} {
			t.Run(fmt.Sprint(name, " of ", op), func(t *testing.T) {
				bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
					a := bubble.Client(t, c, "a")
					lose(a, op)
					all := []*call{start(t, a, func(ctx context.Context, _ *call) error { return barrier.New(a, "start", 3, nil).Wait(ctx) })}
					all = append(all, waits(t, c, "b", 3), waits(t, c, "c", 3))
					time.Sleep(time.Second)
					passed(t, "three have come", all, 0, 1, 2)
					all = append(all, waits(t, c, "d", 3), waits(t, c, "e", 3))
					time.Sleep(time.Second)
					passed(t, "two more have come", all, 0, 1, 2)
					waits(t, c, "f", 3)
					passed(t, "three more have come", all, 0, 1, 2, 3, 4)
				})
			})
		}
	}
}

// So it is in a double barrier, where those who were counted stay in line.
func TestLostAnswerInside(t *testing.T) {
	for _, lose := range []func(*memory.Backend, ...memory.Op){(*memory.Backend).LoseAnswer, (*memory.Backend).LoseRequest} {
		bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
			a := bubble.Client(t, c, "a")
			lose(a, memory.OpPut)
			all := []*call{hookedEnters(t, a, 2, func(memory.Op) {}), enters(t, c, "b", 2)}
			time.Sleep(time.Second)
			passed(t, "two have come", all, 0, 1)
		})
	}
}

// One who is cut off stands, so it is counted. When it comes back after the end of its session it
// finds that it was, and does not wait for the next round.
func TestCountedWhileCutOff(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		all := []*call{waits(t, c, "a", 3), waits(t, c, "b", 3)}
		all[1].b.Cut()
		all = append(all, waits(t, c, "c", 3))
		passed(t, "one of three is cut off", all, 0, 2)
		time.Sleep(2 * bubble.TTL)
		if n := len(c.Members("start-arrivals")); n != 0 {
			t.Fatalf("%d stand: the session has not ended", n)
		}
		all[1].b.Heal()
		time.Sleep(bubble.TTL)
		passed(t, "it is back", all, 0, 1, 2)
		empty(t, c)
	})
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		all := []*call{enters(t, c, "a", 3), enters(t, c, "b", 3)}
		counted := c.Members("start-arrivals")[1].Position
		all[1].b.Cut()
		all = append(all, enters(t, c, "c", 3))
		passed(t, "one of three is cut off", all, 0, 2)
		one, two := leaves(t, all[0]), leaves(t, all[2])
		time.Sleep(2 * bubble.TTL)
		passed(t, "the session of the third has ended", []*call{one, two}, 0, 1)
		all[1].b.Heal()
		ends(t, all[1])
		if token := lost(t, all[1].err); token != counted {
			t.Errorf("the token that was lost is %d, want %d", token, counted)
		}
		empty(t, c)
	})
}

// It finds that also when others have passed meanwhile. After so many that the record does not name it any
// more, it fails, and is not counted again.
func TestCountedWhileOthersPass(t *testing.T) {
	const remembered = 256
	for _, tt := range []struct {
		rounds int
		want   error
	}{{3, nil}, {remembered/2 - 1, nil}, {remembered / 2, elect.ErrLost}} {
		bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
			b := bubble.Client(t, c, "cut")
			cutsFirst := once(memory.OpPut, b.Cut) // it stands, and will not hear that it was counted
			a := start(t, bubble.Client(t, c, "a"), func(ctx context.Context, k *call) error {
				return barrier.New(view.Of(k.b, func(s backend.Session) backend.Session { return hookedSession{s, cutsFirst} }), "start", 2, nil).Wait(ctx)
			})
			cut := start(t, b, func(ctx context.Context, _ *call) error { return barrier.New(b, "start", 2, nil).Wait(ctx) })
			ends(t, a)
			time.Sleep(2 * bubble.TTL)
			others := bubble.Client(t, c, "others")
			for range tt.rounds {
				wait := func(ctx context.Context, _ *call) error { return barrier.New(others, "start", 2, nil).Wait(ctx) }
				passed(t, "another round", []*call{start(t, others, wait), start(t, others, wait)}, 0, 1)
			}
			b.Heal()
			ends(t, cut)
			if bubble.Want(t, cut.err, tt.want); tt.want != nil {
				lost(t, cut.err)
			}
			empty(t, c)
		})
	}
}

// Nor is it counted again by somebody who waits when it comes back, before it can look.
func TestNotCountedBeforeItLooks(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		b := bubble.Client(t, c, "cut")
		cutsFirst := once(memory.OpPut, b.Cut)
		a := start(t, bubble.Client(t, c, "a"), func(ctx context.Context, k *call) error {
			return barrier.New(view.Of(k.b, func(s backend.Session) backend.Session { return hookedSession{s, cutsFirst} }), "start", 2, nil).Wait(ctx)
		})
		cut := start(t, b, func(ctx context.Context, _ *call) error { return barrier.New(b, "start", 2, nil).Wait(ctx) })
		ends(t, a)
		time.Sleep(2 * bubble.TTL)
		others := bubble.Client(t, c, "others")
		wait := func(ctx context.Context, _ *call) error { return barrier.New(others, "start", 2, nil).Wait(ctx) }
		for range 128 {
			passed(t, "another round", []*call{start(t, others, wait), start(t, others, wait)}, 0, 1)
		}
		waits := start(t, others, wait)
		b.Delay(50*time.Millisecond, 50*time.Millisecond)
		b.Heal()
		ends(t, cut)
		bubble.Want(t, cut.err, elect.ErrLost)
		time.Sleep(bubble.TTL)
		passed(t, "one waits, and one has come back that was counted before", []*call{waits})
		waits.cancel()
		ends(t, waits)
	})
}

// woken returns which clients have been woken since, apart from those of which it was the own end.
func woken(c *memory.Coordinator, since memory.Counts, but ...string) (names []string) {
	synctest.Wait()
	for s := range c.Wakeups().Since(since) {
		if !slices.Contains(but, s.Client) {
			names = append(names, s.Client)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// A join wakes whoever counts, an exit also whoever stands just behind, and the opening all.
func TestWoken(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		const n = 20
		var all []*call
		for i := range n {
			before := c.Wakeups()
			all = append(all, waits(t, c, fmt.Sprintf("c%02d", i), n+1))
			want := []string{"c00"}
			if i == 0 {
				want = nil
			}
			if got := woken(c, before); !slices.Equal(got, want) {
				t.Fatalf("the join of number %d has woken %v, want %v", i, got, want)
			}
		}
		exits := func(i int, want ...string) {
			t.Helper()
			before := c.Wakeups()
			all[i].cancel()
			if got := woken(c, before, fmt.Sprintf("c%02d", i)); !slices.Equal(got, want) {
				t.Fatalf("the exit of number %d has woken %v, want %v", i, got, want)
			}
		}
		exits(7, "c00", "c08")
		exits(0, "c01")
		exits(n-1, "c01")
		waits(t, c, "late0", n+1)
		waits(t, c, "late1", n+1)
		waits(t, c, "late2", n+1)
		before, asked := c.Wakeups(), c.Requests()
		waits(t, c, "late3", n+1)
		told := 0
		for s := range c.Wakeups().Since(before) {
			// Three have given up, and the last to come may find the barrier open.
			if s.Op == memory.OpWatch && !slices.Contains([]string{"c00", "c07", "c19", "late3"}, s.Client) {
				told++
			}
		}
		if told != n {
			t.Errorf("the opening has told %d of %d: %v", told, n, c.Wakeups().Since(before))
		}
		if most := 8 * (n + 1); c.Requests().Since(asked).Total() > most {
			t.Errorf("the opening has cost %v, more than %d", c.Requests().Since(asked), most)
		}
		empty(t, c)
	})
}

// What a participant costs.
func TestRequests(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		waits(t, c, "a", 3)
		ops := func(since memory.Counts, client string) (ops []string) {
			for s, n := range c.Requests().Since(since) {
				if s.Client == client {
					ops = append(ops, fmt.Sprint(n, " ", s.Op))
				}
			}
			slices.Sort(ops)
			return ops
		}
		// Who passes leaves at once. Whether it had begun to watch its place by then is chance.
		passed := func(ops []string) []string {
			return slices.DeleteFunc(ops, func(op string) bool { return op == "1 watch place" })
		}
		expect := func(what string, got []string, want ...string) {
			t.Helper()
			if !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", what, got, want)
			}
		}
		before := c.Requests()
		waits(t, c, "b", 3)
		expect("b waits", ops(before, "b"), "1 ahead", "1 get", "1 gone", "1 join", "1 line", "1 session", "1 watch")
		expect("a counts", ops(before, "a"), "1 ahead", "1 watch line")
		before = c.Requests()
		waits(t, c, "c", 3)
		expect("b is told, and passes", passed(ops(before, "b")), "1 ahead", "1 leave")
		expect("a opens, and passes", passed(ops(before, "a")), "1 ahead", "1 leave", "1 put")
	})
}

// If an operator deletes the record while some wait, the barrier opens all the same.
func TestRecordDeleted(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		waits(t, c, "one", 1) // writes the record
		all := []*call{waits(t, c, "a", 3), waits(t, c, "b", 3)}
		s, err := bubble.Client(t, c, "oper").Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Delete(t.Context(), "start-open", nil); err != nil {
			t.Fatal(err)
		}
		all = append(all, waits(t, c, "c", 3))
		passed(t, "three have come", all, 0, 1, 2)
	})
}
