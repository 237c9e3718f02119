package group_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/internal/rig/bubble"
	"github.com/succession-dev/succession/internal/view"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/recipes/group"
)

// follow sends what Follow yields: the members as show has them, and then the error.
func follow(ctx context.Context, b backend.Backend) (<-chan string, <-chan error) {
	states, ended := make(chan string, 1000), make(chan error, 1)
	go func() {
		defer close(states)
		for members, err := range group.New(b, "workers", nil).Follow(ctx) {
			if err != nil {
				ended <- err
			} else {
				states <- show(members)
			}
		}
	}()
	return states, ended
}

// sees checks that the newest state, and no other, has arrived.
func sees(t *testing.T, states <-chan string, want string) {
	t.Helper()
	synctest.Wait()
	select {
	case got := <-states:
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	default:
		t.Errorf("got nothing, want %q", want)
	}
	if len(states) > 0 {
		t.Errorf("got %q besides", <-states)
	}
}

func TestFollow(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		ctx, cancel := context.WithCancelCause(t.Context())
		states, ended := follow(ctx, bubble.Client(t, c, "watcher"))
		sees(t, states, "")
		one := join(t, bubble.Client(t, c, "1"), "one", "first")
		sees(t, states, "one=first")
		join(t, bubble.Client(t, c, "2"), "two", "")
		sees(t, states, "one=first two=")
		set(t, one, "50%")
		synctest.Wait()
		if len(states) > 0 {
			t.Errorf("a Set is told: %q", <-states)
		}
		join(t, bubble.Client(t, c, "3"), "three", "")
		sees(t, states, "one=first two= three=")
		leave(t, one)
		sees(t, states, "two= three=")
		time.Sleep(5 * bubble.TTL) // many a second look
		if len(states) > 0 {
			t.Errorf("got %q, and nothing has changed", <-states)
		}
		enough := errors.New("enough")
		cancel(enough)
		if err := <-ended; err != enough {
			t.Errorf("got %v, want the cause of the context and no more: nothing was wrong", err)
		}
	})
}

// A consumer may stop at any state, also when the context ends meanwhile.
func TestFollowIsLeft(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		g := group.New(bubble.Client(t, c, "watcher"), "workers", nil)
		for range g.Follow(t.Context()) {
			break
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range g.Follow(ctx) {
			cancel()
			break
		}
	})
}

// A join wakes each follower once, and costs it no request but the next wait, whatever was set; a Set wakes nobody.
func TestFollowersWoken(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		one := join(t, bubble.Client(t, c, "one"), "one", "")
		b := bubble.Client(t, c, "joins")
		bubble.Must[backend.Session](t)(b.Session(ctx))
		names := []string{"x", "y", "z"}
		for _, name := range names {
			states, _ := follow(ctx, bubble.Client(t, c, name))
			sees(t, states, "one=")
		}
		woken, sent := c.Wakeups(), c.Requests()
		for range 10 {
			set(t, one, "x")
		}
		synctest.Wait()
		if n := c.Wakeups().Since(woken).Total(); n != 0 {
			t.Errorf("ten calls of Set have woken %d", n)
		}
		if n := c.Requests().Since(sent).Total(); n != 10 {
			t.Errorf("ten calls of Set have cost %d requests", n)
		}
		woken, sent = c.Wakeups(), c.Requests()
		join(t, b, "joins", "")
		synctest.Wait()
		for _, name := range names {
			if n := c.Wakeups().Since(woken).Of(name); n != 1 {
				t.Errorf("a join has woken %s %d times", name, n)
			}
			if n := c.Requests().Since(sent); n.Of(name) != 1 || n.Of(name, memory.OpWatchLine) != 1 {
				t.Errorf("a join has cost %s the requests %v", name, n)
			}
		}
		if n := c.Wakeups().Since(woken).Of("one"); n != 0 {
			t.Errorf("a join has woken another member %d times", n)
		}
	})
}

// Follow lives through the end of its session, ends on the truth, and shows nobody again who had
// gone.
func TestFollowThroughFaults(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		ctx, cancel := context.WithCancel(t.Context())
		b := bubble.Client(t, c, "watcher")
		states, ended := follow(ctx, b)
		var last *group.Presence
		for n := range 16 {
			switch n % 4 {
			case 1:
				b.Cut()
			case 3:
				b.Heal()
			case 0:
				b.Expire()
			}
			p := join(t, bubble.Client(t, c, "m"), string(rune('a'+n)), "")
			if n%2 == 0 && last != nil {
				leave(t, last)
			}
			last = p
			time.Sleep(bubble.TTL)
		}
		time.Sleep(3 * bubble.TTL)
		gone := make(map[string]bool)
		var before []string
		for len(states) > 0 {
			now := strings.Fields(<-states)
			for _, m := range before {
				gone[m] = gone[m] || !slices.Contains(now, m)
			}
			for _, m := range now {
				if gone[m] {
					t.Errorf("%s stands again: %v after %v", m, now, before)
				}
			}
			before = now
		}
		var truth []string
		for _, m := range c.Members("workers-members") {
			truth = append(truth, m.Value+"=")
		}
		if !slices.Equal(before, truth) {
			t.Errorf("the last that it saw is %v, and present are %v", before, truth)
		}
		cancel()
		bubble.Want(t, <-ended, context.Canceled)
	})
}

// A laggingSession has a server that lags behind until it is refreshed. It shows that there is an earlier state of the line.
type laggingSession struct {
	backend.Session
	earlier *atomic.Pointer[backend.Line]
}

func (s laggingSession) WatchLine(ctx context.Context, line string, after backend.Line) (backend.Line, error) {
	if l := s.earlier.Load(); l != nil && !kit.SameMembers(*l, after) {
		return *l, nil
	}
	return s.Session.WatchLine(ctx, line, after)
}

func (s laggingSession) Refresh(ctx context.Context) error {
	s.earlier.Store(nil)
	return s.Session.Refresh(ctx)
}

// Where the server of the next session lags behind, for however long, Follow does not go back.
func TestFollowNeverGoesBack(t *testing.T) {
	for _, what := range []string{"somebody joined", "somebody left", "the last one left", "one had left before it began"} {
		t.Run(what, func(t *testing.T) {
			bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				reader := bubble.Client(t, c, "reader")
				line := func() *backend.Line {
					s := bubble.Must[backend.Session](t)(reader.Session(ctx))
					l := bubble.Must[backend.Line](t)(s.Line(ctx, "workers-members"))
					return &l
				}
				a := bubble.Client(t, c, "a")
				one := join(t, a, "one", "")
				two := join(t, a, "two", "")
				before, newest := line(), "one= two="
				if what == "one had left before it began" {
					leave(t, two)
					newest = "one="
				}
				b, earlier := bubble.Client(t, c, "watcher"), new(atomic.Pointer[backend.Line])
				states, _ := follow(ctx, view.Of(b, func(s backend.Session) backend.Session { return laggingSession{s, earlier} }))
				sees(t, states, newest)
				switch what {
				case "somebody joined":
					newest = "one= two= three="
					join(t, a, "three", "")
					sees(t, states, newest)
				case "somebody left":
					newest = "two="
					leave(t, one)
					sees(t, states, newest)
				case "the last one left":
					newest = "one="
					leave(t, two)
					sees(t, states, newest)
				}

				synctest.Wait()
				earlier.Store(before)
				b.Expire()
				time.Sleep(3 * bubble.TTL)
				if len(states) > 0 {
					t.Errorf("it goes back: %q after %q", <-states, newest)
				}
				if earlier.Load() != nil {
					t.Error("the session was not refreshed")
				}
			})
		})
	}
}
