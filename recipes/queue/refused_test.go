package queue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/internal/rig/bubble"
	"github.com/succession-dev/succession/internal/view"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/recipes/queue"
)

// A hooked session asks before each call whether it fails.
type hooked struct {
	backend.Session
	before func(op, name string) error
	shown  func(l *backend.Line) // changes lines
}

func (s hooked) Line(ctx context.Context, line string) (backend.Line, error) {
	if err := s.before("line", line); err != nil {
		return backend.Line{}, err
	}
	l, err := s.Session.Line(ctx, line)
	if s.shown != nil {
		s.shown(&l)
	}
	return l, err
}

func (s hooked) WatchLine(ctx context.Context, line string, after backend.Line) (backend.Line, error) {
	if err := s.before("watch", line); err != nil {
		return backend.Line{}, err
	}
	return s.Session.WatchLine(ctx, line, after)
}

func (s hooked) Free(ctx context.Context, items, claims string) (backend.Member, error) {
	if err := s.before("free", items); err != nil {
		return backend.Member{}, err
	}
	return s.Session.Free(ctx, items, claims)
}

func (s hooked) Append(ctx context.Context, line, value string) (backend.Member, error) {
	if err := s.before("append", line); err != nil {
		return backend.Member{}, err
	}
	return s.Session.Append(ctx, line, value)
}

func (s hooked) Claim(ctx context.Context, line, value, record string, item backend.Member) (backend.Joined, error) {
	if err := s.before("claim", line); err != nil {
		return backend.Joined{}, err
	}
	return s.Session.Claim(ctx, line, value, record, item)
}

func (s hooked) Remove(ctx context.Context, m, by backend.Member) error {
	if err := s.before("remove", m.Line); err != nil {
		return err
	}
	return s.Session.Remove(ctx, m, by)
}

func (s hooked) Refresh(ctx context.Context) error {
	if err := s.before("refresh", ""); err != nil {
		return err
	}
	return s.Session.Refresh(ctx)
}

func hook(b backend.Backend, before func(op, name string) error) backend.Backend {
	return view.Of(b, func(s backend.Session) backend.Session { return hooked{Session: s, before: before} })
}

func limited(b backend.Backend, limit int) *queue.Queue {
	return queue.New(b, "jobs", &queue.Options{Limit: limit})
}

// What the coordinator refuses is an error of the call, and no reason to wait or to go on; and it is told as it is.
func TestRefused(t *testing.T) {
	refuse := func(op, name string, after int) func(string, string) error {
		return func(o, n string) error {
			if o == op && n == name {
				if after--; after < 0 {
					return backend.ErrDenied
				}
			}
			return nil
		}
	}
	putLimited := func(ctx context.Context, b backend.Backend) error { _, err := limited(b, 5).Put(ctx, "x"); return err }
	take := func(ctx context.Context, b backend.Backend) error { _, err := named(b, "a").Take(ctx); return err }
	for _, tt := range []struct {
		op, name string
		after    int // so many calls are not refused
		call     func(context.Context, backend.Backend) error
	}{
		{"line", "jobs-items", 0, putLimited},
		{"append", "jobs-items", 0, putLimited},
		{"line", "jobs-items", 1, putLimited},
		{"refresh", "", 0, func(ctx context.Context, b backend.Backend) error { _, err := named(b, "a").Len(ctx); return err }},
		{"line", "jobs-items", 0, func(ctx context.Context, b backend.Backend) error { _, err := named(b, "a").Len(ctx); return err }},
		{"refresh", "", 0, func(ctx context.Context, b backend.Backend) error { _, err := named(b, "a").List(ctx); return err }},
		{"line", "jobs-items", 0, func(ctx context.Context, b backend.Backend) error { _, err := named(b, "a").List(ctx); return err }},
		{"line", "jobs-claims", 0, func(ctx context.Context, b backend.Backend) error { _, err := named(b, "a").List(ctx); return err }},
		{"free", "jobs-items", 0, take},
		{"free", "jobs-items", 1, take},
		{"free", "jobs-items", 2, take},
		{"line", "jobs-claims", 0, take},
		{"line", "jobs-items", 0, take},
		{"watch", "jobs-claims", 0, take},
		{"watch", "jobs-items", 0, take},
	} {
		bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			err := tt.call(ctx, hook(bubble.Client(t, c, "a"), refuse(tt.op, tt.name, tt.after)))
			if !errors.Is(err, backend.ErrDenied) || strings.Contains(err.Error(), "has no items") || strings.Contains(err.Error(), "another name") {
				t.Errorf("%s of %q is refused: %v", tt.op, tt.name, err)
			}
			abandoned(t, c)
		})
	}
}

// Calls end when the backend is closed, those that wait too.
func TestClosed(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		b := bubble.Client(t, c, "a")
		q := named(b, "a")
		waiting := take(t.Context(), q)
		time.Sleep(time.Minute)
		b.Close()
		<-waiting.Done
		bubble.Want(t, waiting.Err, backend.ErrClosed)
		_, err := q.Len(t.Context())
		bubble.Want(t, err, backend.ErrClosed)
		_, err = q.List(t.Context())
		bubble.Want(t, err, backend.ErrClosed)
		bubble.Want(t, errOf(q.Put(t.Context(), "x")), backend.ErrClosed)
	})
}

// What is wrong with the options is said by each call, and by a wrong value before anything is sent.
func TestEachCallIsInvalid(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		b := bubble.Client(t, c, "a")
		q := limited(b, -1)
		bubble.Want(t, errOf(q.Put(ctx, "x")), backend.ErrInvalid)
		_, err := q.Take(ctx)
		bubble.Want(t, err, backend.ErrInvalid)
		_, err = q.TryTake(ctx)
		bubble.Want(t, err, backend.ErrInvalid)
		_, err = q.Len(ctx)
		bubble.Want(t, err, backend.ErrInvalid)
		_, err = q.List(ctx)
		bubble.Want(t, err, backend.ErrInvalid)
		if n := c.Requests().Of("a"); n != 0 {
			t.Errorf("%d requests", n)
		}
		_, err = named(b, "a").Put(ctx, "\xff")
		bubble.Want(t, err, backend.ErrInvalid)
		if !strings.HasPrefix(err.Error(), "queue: ") || c.Requests().Of("a") != 0 {
			t.Errorf("%v, after %d requests", err, c.Requests().Of("a"))
		}
	})
}

// An item that stands is put, however full the queue is: the answer alone was lost.
func TestLostAnswerInAFullQueue(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		b := bubble.Client(t, c, "a")
		q := limited(b, 2)
		for _, v := range []string{"one", "two"} {
			put(t, limited(b, 2), "zero")
			b.LoseAnswer(memory.OpAppend)
			if _, err := q.Put(t.Context(), v); err != nil {
				t.Errorf("%s: %v", v, err)
			}
			lists(t, named(b, "a"), "zero", v)
			before := c.Requests()
			bubble.Want(t, errOf(q.Put(t.Context(), "more")), queue.ErrFull)
			if n := c.Requests().Since(before).Of("a", memory.OpAppend); n != 0 {
				t.Errorf("%d items were appended to a full queue", n)
			}
			done(t, takes(t, named(b, "a"), "zero"))
			done(t, takes(t, named(b, "a"), v))
		}

		// What may have been put, and taken since, is not told as refused.
		other := named(bubble.Client(t, c, "b"), "b")
		once := sync.OnceFunc(func() {
			done(t, takes(t, other, "gone"))
			put(t, other, "next")
		})
		b.LoseAnswer(memory.OpAppend)
		_, err := limited(hook(b, func(op, _ string) error {
			if op == "refresh" && len(c.Members("jobs-items")) > 0 {
				once()
			}
			return nil
		}), 1).Put(t.Context(), "gone")
		if err == nil || errors.Is(err, queue.ErrFull) || !strings.Contains(err.Error(), "may have been put") {
			t.Errorf("the item was put and taken, and Put says: %v", err)
		}
		done(t, takes(t, other, "next"))

		// What a server that lags behind cannot be asked about is not put a second time.
		denied := limited(hook(b, func(op, _ string) error {
			if op == "refresh" {
				return backend.ErrDenied
			}
			return nil
		}), 0)
		b.LoseAnswer(memory.OpAppend)
		bubble.Want(t, errOf(denied.Put(t.Context(), "three")), backend.ErrDenied)
		lists(t, named(b, "a"), "three")
	})
}

// Put takes away what it has put beyond the limit, or says why it cannot; it leaves no claim.
func TestBeyondTheLimit(t *testing.T) {
	for _, tt := range []struct {
		name string
		at   string // the call that fails, once
		err  func(c *memory.Coordinator) error
		want error
		left []string
	}{
		{"nothing fails", "", nil, queue.ErrFull, []string{"other"}},
		{"the claim", "claim", func(*memory.Coordinator) error { return backend.ErrDenied }, backend.ErrDenied, []string{"other", "mine"}},
		{"the removal", "remove", func(*memory.Coordinator) error { return backend.ErrDenied }, backend.ErrDenied, []string{"other", "mine"}},
		{"the claim is lost", "remove", func(c *memory.Coordinator) error {
			c.Remove("jobs-claims", c.Members("jobs-claims")[0].Key)
			return nil
		}, queue.ErrFull, []string{"other"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
				b := bubble.Client(t, c, "a")
				met := map[string]bool{}
				q := limited(hook(b, func(op, name string) error {
					first := !met[op]
					met[op] = true
					switch {
					case op == "append" && first: // another is quicker
						put(t, named(b, "b"), "other")
					case op == tt.at && first:
						return tt.err(c)
					}
					return nil
				}), 1)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				bubble.Want(t, errOf(q.Put(ctx, "mine")), tt.want)
				lists(t, named(b, "b"), tt.left...)
				abandoned(t, c)
			})
		})
	}
}

// Done says at once what does not pass, and asks nobody once it has succeeded.
func TestDoneThatIsDenied(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		b := bubble.Client(t, c, "a")
		var denied atomic.Bool
		q := named(hook(b, func(op, _ string) error {
			if op == "remove" && denied.Load() {
				return backend.ErrDenied
			}
			return nil
		}), "a")
		put(t, q, "one", "two")
		item := takes(t, q, "one")
		denied.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		bubble.Want(t, item.Done(ctx), backend.ErrDenied)
		denied.Store(false)
		done(t, item)
		before := c.Requests()
		done(t, item)
		if n := c.Requests().Since(before).Of("a"); n != 0 {
			t.Errorf("another Done took %d requests", n)
		}

		two := takes(t, q, "two")
		b.Cut()
		bubble.Want(t, two.Return(t.Context()), context.DeadlineExceeded)
		b.Heal()
	})
}

// Free items have no token, also where the fence of the claims was raised.
func TestListWithAFence(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		b := bubble.Client(t, c, "a")
		put(t, named(b, "a"), "one", "two")
		takes(t, named(b, "a"), "one")
		if err := operate.New(b, "jobs-claims", "").RaiseFence(t.Context(), 1000); err != nil {
			t.Fatal(err)
		}
		lists(t, named(b, "a"), "one*", "two")
	})
}

// Events name the queue, and none of its lines.
func TestTrace(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		n := 0
		q := queue.New(bubble.Client(t, c, "a"), "jobs", &queue.Options{Options: elect.Options{Trace: func(ev trace.Event) {
			if n++; ev.Election != "jobs" {
				t.Errorf("%v of %s", ev.Kind, ev.Election)
			}
		}}})
		put(t, q, "one")
		for _, value := range []string{"one", "two"} {
			item := take(t.Context(), q) // the second one waits for its turn
			if value == "two" {
				put(t, q, value)
			}
			if item.Returned(t) {
				done(t, item.Value)
			}
			if n == 0 {
				t.Error("told of nothing")
			}
			n = 0
		}
	})
}

// An apart context is of another type than those of package context, which need a goroutine to see its end.
type apart struct {
	context.Context
	done chan struct{}
}

func (a apart) Done() <-chan struct{} { return a.done }

// Take leaves nothing behind, also if the caller's context goes on.
func TestTakeLeavesNothing(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		q := of(t, c, "a")
		call := take(apart{t.Context(), make(chan struct{})}, q)
		put(t, q, "one")
		if !call.Returned(t) {
			t.Fatal("it does not get the item")
		}
		done(t, call.Value)
		synctest.Wait() // the bubble fails if a goroutine is left
	})
}

// What stands among the items and was not put is no item, by its ID, by its form, or as it is not pinned.
func TestWhatIsAnItem(t *testing.T) {
	id := strings.Repeat("A", 24)
	for value, ok := range map[string]bool{
		id + "Z7\nvalue": true,
		id + "2A\nvalue": true,
		id + "Z7\n":      true,
		id + "Z7":        false,
		id + "Z7 value":  false,
		id + "Z\nvalue":  false,
		id + "Z8\nvalue": false,
		id + "Z1\nvalue": false,
		id + "[7\nvalue": false,
		id + "@7\nvalue": false,
		id + "a7\nvalue": false,
		id + "Z7\n\xff":  false,
		"":               false,
	} {
		for _, pinned := range []bool{true, false} {
			bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
				b := bubble.Client(t, c, "a")
				put(t, named(b, "a"), "one")
				shown := view.Of(b, func(s backend.Session) backend.Session {
					return hooked{s, func(string, string) error { return nil }, func(l *backend.Line) {
						l.Members[0].Value, l.Members[0].Pinned = value, pinned
					}}
				})
				_, err := named(shown, "a").Len(t.Context())
				if ok := ok && pinned; (err == nil) != ok || !ok && !errors.Is(err, backend.ErrForeign) {
					t.Errorf("%q, pinned %t: %v", value, pinned, err)
				}
				if err != nil && !strings.Contains(fmt.Sprint(err), "give the queue another name") {
					t.Errorf("%v does not say what to do", err)
				}
			})
		}
	}
}

// A queue is full only if it is so now: not if a server that lags behind still shows what others have confirmed.
func TestFullNoMore(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		behind := bubble.Client(t, c, "behind")
		behind.Lag(time.Minute)
		q, others := limited(behind, 2), named(bubble.Client(t, c, "b"), "b")
		put(t, others, "one")
		put(t, others, "two")
		bubble.Want(t, errOf(q.Put(t.Context(), "more")), queue.ErrFull)
		time.Sleep(time.Second)
		done(t, takes(t, others, "one"))
		if _, err := q.Put(t.Context(), "more"); err != nil {
			t.Error(err)
		}
		lists(t, others, "two", "more")
	})
}
