package queue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/rig/bubble"
	"github.com/succession-dev/succession/internal/view"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/recipes/queue"
)

func TestLimit(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		const limit = 3
		limited := func(name string) *queue.Queue {
			b := bubble.Client(t, c, name)
			b.Delay(time.Millisecond, time.Millisecond)
			return queue.New(b, "jobs", &queue.Options{Limit: limit})
		}
		results := make(chan error, 8)
		for i := range cap(results) {
			go func() { results <- errOf(limited(fmt.Sprint(i)).Put(t.Context(), fmt.Sprint(i))) }()
		}
		accepted := 0
		for range cap(results) {
			if err := <-results; err == nil {
				accepted++
			} else {
				bubble.Want(t, err, queue.ErrFull)
			}
		}
		q := limited("another")
		if n := bubble.Must[int](t)(q.Len(t.Context())); accepted != limit || n != limit {
			t.Errorf("%d puts have succeeded and %d items stand, with a limit of %d", accepted, n, limit)
		}
		abandoned(t, c)
		item := bubble.Must[*queue.Item](t)(q.TryTake(t.Context()))
		before := c.Requests()
		bubble.Want(t, errOf(q.Put(t.Context(), "too many")), queue.ErrFull)
		if n := c.Requests().Since(before).Total(memory.OpAppend); n != 0 {
			t.Errorf("Put has appended %d items to a full queue", n)
		}
		done(t, item)
		put(t, q, "the next")
	})
}

// An item beyond the limit that somebody has taken counts as put.
func TestLimitOfWhatIsTaken(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		a := bubble.Client(t, c, "a")
		first := queue.New(a, "jobs", &queue.Options{Limit: 1})
		b := bubble.Client(t, c, "b")
		slow := queue.New(b, "jobs", &queue.Options{Limit: 1})
		bubble.Must[backend.Session](t)(b.Session(t.Context()))
		call := take(t.Context(), of(t, c, "taker"))
		b.Delay(time.Second, 0)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		result := make(chan error)
		go func() { result <- errOf(slow.Put(ctx, "slow")) }()
		time.Sleep(3 * time.Second / 2) // it has seen that there is room
		put(t, first, "first")
		if !call.Returned(t) || call.Value.Value != "first" {
			t.Fatal("the first is not taken")
		}
		next := take(t.Context(), of(t, c, "next"))
		if err := <-result; err != nil {
			t.Errorf("the item has been taken, and Put says %v", err)
		}
		if !next.Returned(t) || next.Value.Value != "slow" {
			t.Fatal("the second is not taken")
		}
		done(t, next.Value)
		done(t, call.Value)
	})
}

func TestArguments(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		b := bubble.Client(t, c, "a")
		q := queue.New(b, "jobs", nil)
		put(t, q, strings.Repeat("x", queue.MaxValue))
		for what, err := range map[string]error{
			fmt.Sprint(queue.MaxValue): errOf(q.Put(t.Context(), strings.Repeat("x", queue.MaxValue+1))),
			"UTF-8":                    errOf(q.Put(t.Context(), "\xff")),
			"no//name":                 errOf(queue.New(b, "no//name", nil).Put(t.Context(), "x")),
			"empty":                    errOf(queue.New(b, "", nil).Put(t.Context(), "x")),
			"at most":                  errOf(queue.New(b, strings.Repeat("x", backend.MaxName), nil).Put(t.Context(), "x")),
			"Limit -1":                 errOf(queue.New(b, "jobs", &queue.Options{Limit: -1}).Put(t.Context(), "x")),
			"Value":                    errOf(queue.New(b, "jobs", &queue.Options{Options: elect.Options{Value: "x"}}).Put(t.Context(), "x")),
			"ID":                       func() error { _, err := named(b, "two\nlines").Take(t.Context()); return err }(),
		} {
			bubble.Want(t, err, backend.ErrInvalid)
			if !strings.Contains(fmt.Sprint(err), what) {
				t.Errorf("%v does not say %s", err, what)
			}
		}
		with := func(o elect.Options) *queue.Queue { return queue.New(b, "jobs", &queue.Options{Options: o}) }
		for what, bad := range map[string]*queue.Queue{
			"name": queue.New(b, "no//name", nil), "Margin": with(elect.Options{Margin: -1}), "ResignTimeout": with(elect.Options{ResignTimeout: -1}),
			"ID": with(elect.Options{ID: "two\nlines"}), "the length of ID": with(elect.Options{ID: strings.Repeat("x", backend.MaxValue-10)}),
		} {
			_, take := bad.Take(t.Context())
			_, try := bad.TryTake(t.Context())
			_, length := bad.Len(t.Context())
			_, list := bad.List(t.Context())
			for call, err := range map[string]error{"Put": errOf(bad.Put(t.Context(), "x")), "Take": take, "TryTake": try, "Len": length, "List": list} {
				if !errors.Is(err, backend.ErrInvalid) {
					t.Errorf("%s with a wrong %s: %v, want ErrInvalid", call, what, err)
				}
			}
		}
		if n := bubble.Must[int](t)(q.Len(t.Context())); n != 1 {
			t.Errorf("%d items stand, want the one that is allowed", n)
		}
	})
}

// What is no item or no claim is named, and is left alone. What stands behind a free item is not met.
func TestForeignMembers(t *testing.T) {
	for name, join := range map[string]func(context.Context, backend.Session) (backend.Member, error){
		"candidate among the items": func(ctx context.Context, s backend.Session) (backend.Member, error) {
			j, err := s.Join(ctx, "jobs-items", strings.Repeat("x", 26)+"\nx", "")
			return j.Member, err
		},
		"other item": func(ctx context.Context, s backend.Session) (backend.Member, error) {
			return s.Append(ctx, "jobs-items", "x")
		},
		"item without a proper ID": func(ctx context.Context, s backend.Session) (backend.Member, error) {
			return s.Append(ctx, "jobs-items", strings.Repeat("\x00", 26)+"\nx")
		},
		"candidate among the claims": func(ctx context.Context, s backend.Session) (backend.Member, error) {
			j, err := s.Join(ctx, "jobs-claims", "x\ny", "")
			return j.Member, err
		},
		"reader among the claims": func(ctx context.Context, s backend.Session) (backend.Member, error) {
			j, err := s.JoinShared(ctx, "jobs-claims", "x", "")
			return j.Member, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
				q := of(t, c, "a")
				s := bubble.Must[backend.Session](t)(bubble.Client(t, c, "stranger").Session(t.Context()))
				m := bubble.Must[backend.Member](t)(join(t.Context(), s))
				put(t, q, "one")
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				_, takeErr := q.Take(ctx)
				_, tryErr := q.TryTake(ctx)
				_, listErr := q.List(t.Context())
				for _, err := range []error{takeErr, tryErr, listErr} {
					if err == nil || !strings.Contains(err.Error(), m.Line) || !strings.Contains(err.Error(), m.Key) {
						t.Errorf("%v does not say what was met", err)
					}
				}
				if err := s.Leave(t.Context(), m); err != nil {
					t.Fatal(err)
				}
				done(t, takes(t, q, "one"))
				abandoned(t, c)
			})
		})
	}
}

// wrapped is a backend with other sessions.
// Where the backend lacks something, it is said so, also by a call that would wait for ever.
func TestLackingBackends(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		b := bubble.Client(t, c, "a")
		unsupported := func(err error, what string) {
			t.Helper()
			bubble.Want(t, err, errors.ErrUnsupported)
			if !strings.Contains(fmt.Sprint(err), what) || !strings.Contains(fmt.Sprint(err), "use ") {
				t.Errorf("%v does not say what to do", err)
			}
		}
		q := named(view.Of(b, bubble.NoItems), "a")
		unsupported(errOf(q.Put(ctx, "one")), "no items")
		_, err := q.Take(ctx)
		unsupported(err, "no items")
		_, err = q.TryTake(ctx)
		unsupported(err, "no items")

		q = named(view.Of(b, bubble.NoShares), "a")
		put(t, q, "one")
		_, err = q.Take(ctx)
		unsupported(err, "no shared members")
		lists(t, named(b, "a"), "one")
		abandoned(t, c)
	})
}
