package memory_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/memory"
)

// Pin writes the header in the same step or not at all, and outlives the session.
func TestPin(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		b, sa := client(t, c, "a")
		_, sb := client(t, c, "b")
		ma, mb := join(t, sa, "a"), join(t, sb, "b")
		h := backend.Header{Fence: 100, Sealed: "etcd://h1"}

		is(t, "Pin at a wrong version", sa.Pin(t.Context(), ma, h, 7), backend.ErrVersion)
		is(t, "Pin of another's member", sb.Pin(t.Context(), ma, h, backend.Absent), backend.ErrDenied)
		if c.Members(election)[0].Pinned || c.Record(election).Version != backend.Absent {
			t.Fatal("a Pin that failed has done half of its work")
		}
		b.LoseAnswer(memory.OpPin)
		ok(t, "Pin", sa.Pin(t.Context(), ma, h, backend.Absent))
		ok(t, "Pin again", sa.Pin(t.Context(), ma, h, backend.Absent))
		l, err := sb.Line(t.Context(), election)
		ok(t, "Line", err)
		if !l.Members[0].Pinned || l.Header != h || l.Version != c.Record(election).Version {
			t.Fatalf("line is %+v, want a pinned and the header %+v", l, h)
		}

		if p := ahead(t, sa, ma); !p.First || p.Token != 100+ma.Position {
			t.Fatalf("who sealed is at %+v, want first with token %d", p, 100+ma.Position)
		}
		_, err = sb.Ahead(t.Context(), mb)
		is(t, "Ahead behind a seal", err, backend.ErrSealed)
		var sealed *backend.SealedError
		if !errors.As(err, &sealed) || sealed.To != "etcd://h1" {
			t.Fatalf("Ahead behind a seal: %v, want the address", err)
		}

		ok(t, "Close", b.Close())
		wantLine(t, c, "a", "b")
		ok(t, "Leave of a pinned member", sb.Leave(t.Context(), ma))
		_, err = sb.Ahead(t.Context(), mb)
		is(t, "Ahead at the head, where the seal's member is gone", err, backend.ErrSealed)
		is(t, "Pin of one who has gone", sb.Pin(t.Context(), ma, h, 0), backend.ErrNotMember)
	})
}

// A gate can be turned into a seal: pinning a pinned member still writes a header
// that is new, and still on its condition.
func TestPinAgainWithAnotherHeader(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		_, s := client(t, c, "a")
		m := join(t, s, "a")
		ok(t, "Pin", s.Pin(t.Context(), m, backend.Header{}, backend.Absent))
		seal := backend.Header{Sealed: "etcd://h1"}
		is(t, "Pin at a wrong version", s.Pin(t.Context(), m, seal, backend.Absent), backend.ErrVersion)
		ok(t, "Pin", s.Pin(t.Context(), m, seal, c.Record(election).Version))
		l, err := s.Line(t.Context(), election)
		ok(t, "Line", err)
		if l.Header != seal {
			t.Fatalf("header is %+v, want %+v", l.Header, seal)
		}
	})
}

func TestDamagedHeader(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		_, s := client(t, c, "a")
		m := join(t, s, "a")
		_, err := s.Put(t.Context(), election, []byte(`{"succession":2,"fence":`), nil)
		ok(t, "Put", err)
		_, err = s.Ahead(t.Context(), m)
		is(t, "Ahead", err, backend.ErrHeader)
		_, err = s.Line(t.Context(), election)
		is(t, "Line", err, backend.ErrHeader)
		_, err = s.Put(t.Context(), election, []byte("a stranger's data"), nil)
		ok(t, "Put", err)
		if p := ahead(t, s, m); !p.First || p.Token != m.Position {
			t.Fatalf("a is at %+v, want a stranger's data to count as no header", p)
		}
	})
}

func TestWatchLine(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		_, sa := client(t, c, "a")
		_, sb := client(t, c, "b")
		l, err := sb.Line(t.Context(), election)
		if err != nil || len(l.Members) != 0 || l.Version != backend.Absent {
			t.Fatalf("a line that does not exist: %+v, %v", l, err)
		}
		p := begin(func() error { return second(sb.WatchLine(t.Context(), election, backend.Line{})) })
		_, err = sa.Join(t.Context(), "app/other", "a", "")
		ok(t, "Join elsewhere", err)
		p.blocks(t, "WatchLine of an empty line")
		join(t, sa, "a")
		ok(t, "WatchLine", p.returned(t, "WatchLine"))
		ok(t, "WatchLine of a line with members", second(sb.WatchLine(t.Context(), election, backend.Line{})))
		if w := c.Wakeups().Of("b", memory.OpWatchLine); w != 1 {
			t.Fatalf("b was woken %d times, want once", w)
		}
	})
}

// A context that ends ends the call, whatever the coordinator does.
func TestContextEnds(t *testing.T) {
	for name, fault := range map[string]func(*memory.Coordinator, *memory.Backend){
		"healthy": func(*memory.Coordinator, *memory.Backend) {},
		"cut":     func(_ *memory.Coordinator, b *memory.Backend) { b.Cut() },
		"paused":  func(c *memory.Coordinator, _ *memory.Backend) { c.Pause() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *memory.Coordinator) {
				b, s := client(t, c, "a")
				m := join(t, s, "a")
				fault(c, b)
				began := time.Now()
				is(t, "Gone", s.Gone(timeout(t, time.Second), m), context.DeadlineExceeded)
				_, err := s.Watch(timeout(t, time.Second), "r", backend.Absent)
				is(t, "Watch", err, context.DeadlineExceeded)
				if d := time.Since(began); d != 2*time.Second {
					t.Fatalf("two calls with a second each took %v", d)
				}
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				before := c.Requests()
				_, err = s.Join(ctx, election, "b", "")
				is(t, "Join", err, context.Canceled)
				_, err = b.Session(ctx)
				is(t, "Session", err, context.Canceled)
				if r := c.Requests().Since(before); r.Total() != 0 {
					t.Fatalf("calls whose context had ended were sent: %v", r)
				}
				c.Resume()
			})
		})
	}
}

// Lines names those that somebody stands in, and no records.
func TestLines(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		b, s := client(t, c, "a")
		lines := func() map[string]int {
			t.Helper()
			all, err := s.Lines(t.Context())
			ok(t, "Lines", err)
			return all
		}
		m := join(t, s, "a")
		join(t, s, "b")
		_, err := s.Append(t.Context(), "items", "x")
		ok(t, "Append", err)
		_, err = s.Put(t.Context(), "record", nil, nil)
		ok(t, "Put", err)
		if got, want := lines(), map[string]int{election: 2, "items": 1}; !maps.Equal(got, want) {
			t.Errorf("the lines are %v; want %v", got, want)
		}
		ok(t, "Leave", s.Leave(t.Context(), m))
		if got, want := lines(), map[string]int{election: 1, "items": 1}; !maps.Equal(got, want) {
			t.Errorf("after one has left the lines are %v; want %v", got, want)
		}
		ok(t, "Close", b.Close())
		_, err = s.Lines(t.Context())
		is(t, "Lines", err, backend.ErrSessionEnded)
	})
}

// Two lines of which one continues the other's name cannot both be used on etcd, so they cannot here.
func TestNesting(t *testing.T) {
	for _, names := range [][2]string{{"svc/a", "svc/a/b"}, {"svc/a/b", "svc/a"}} {
		bubble(t, func(t *testing.T, c *memory.Coordinator) {
			_, s := client(t, c, "a")
			first, err := s.Join(t.Context(), names[0], "a", "")
			ok(t, "Join", err)
			_, err = s.Join(t.Context(), names[1], "b", "")
			is(t, "Join below or above a line", err, backend.ErrInvalid)
			_, err = s.Join(t.Context(), "svc/ab", "b", "")
			ok(t, "Join beside it", err)
			ok(t, "Leave", s.Leave(t.Context(), first.Member))
			_, err = s.Join(t.Context(), names[1], "b", "")
			ok(t, "Join where nobody stands", err)
		})
	}
}
