package barrier_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/rig/bubble"
	"github.com/succession-dev/succession/internal/view"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/recipes/barrier"
)

// A twice session joins as two members. So it is with one whose session has ended for the process,
// and not for the coordinator.
type twice struct{ backend.Session }

func (s twice) JoinShared(ctx context.Context, line, value, record string) (backend.Joined, error) {
	if m, err := s.Session.JoinShared(ctx, line, value, ""); err != nil {
		return m, err
	}
	return s.Session.JoinShared(ctx, line, value, "")
}

// A member that outlives its session is neither counted beside its successor nor waited for.
func TestNotCountedTwice(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		b := view.Of(bubble.Client(t, c, "a"), func(s backend.Session) backend.Session { return twice{s} })
		all := []*call{start(t, nil, func(ctx context.Context, _ *call) error { return barrier.New(b, "start", 3, nil).Wait(ctx) })}
		for i := range 5 {
			passed(t, fmt.Sprint(len(all), " have come"), all, []int{0, 1, 2}[:len(all)/3*3]...)
			all = append(all, waits(t, c, fmt.Sprint("c", i), 3))
		}
		passed(t, "six have come", all, 0, 1, 2, 3, 4, 5)
		if n := len(c.Members("start-arrivals")); n != 1 {
			t.Fatalf("%d stand in line, want the member that nobody keeps", n)
		}
	})
}

// A hookedSession calls before in front of some of its calls.
type hookedSession struct {
	backend.Session
	before func(op memory.Op)
}

func (s hookedSession) Line(ctx context.Context, line string) (backend.Line, error) {
	s.before(memory.OpLine)
	return s.Session.Line(ctx, line)
}

func (s hookedSession) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	s.before(memory.OpPut)
	return s.Session.Put(ctx, name, value, cond)
}

func (s hookedSession) JoinShared(ctx context.Context, line, value, record string) (backend.Joined, error) {
	s.before(memory.OpJoin)
	return s.Session.JoinShared(ctx, line, value, record)
}

// once returns what calls f before the first call of op.
func once(op memory.Op, f func()) func(memory.Op) {
	done := false
	return func(o memory.Op) {
		if o == op && !done {
			done = true
			f()
		}
	}
}

// hookedEnters is enters with a client that is hooked.
func hookedEnters(t *testing.T, b *memory.Backend, n int, before func(memory.Op)) *call {
	return start(t, b, func(ctx context.Context, k *call) (err error) {
		k.in, err = barrier.NewDouble(view.Of(b, func(s backend.Session) backend.Session { return hookedSession{s, before} }), "start", n, nil).Enter(ctx)
		return err
	})
}

// pass has so many calls pass the barrier of 2 that the calls before them are forgotten.
func pass(t *testing.T, c *memory.Coordinator) {
	t.Helper()
	b := bubble.Client(t, c, "others")
	wait := func(ctx context.Context, _ *call) error { return barrier.New(b, "start", 2, nil).Wait(ctx) }
	for range 128 {
		passed(t, "another round", []*call{start(t, b, wait), start(t, b, wait)}, 0, 1)
	}
}

// One whose session ends before it has joined passes with the next ones, however many have passed before it came.
func TestNotCountedBeforeItJoins(t *testing.T) {
	for name, at := range map[string]memory.Op{"when it comes": "", "when it joins": memory.OpJoin} {
		t.Run(name, func(t *testing.T) {
			bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
				pass(t, c)
				waits(t, c, "a", 2)
				waits(t, c, "b", 2) // the first calls are forgotten now
				b := bubble.Client(t, c, "cut")
				bubble.Must[backend.Session](t)(b.Session(t.Context()))
				if at == "" {
					b.Cut()
				}
				cut := hookedEnters(t, b, 2, once(at, b.Cut))
				time.Sleep(2 * bubble.TTL)
				b.Heal()
				time.Sleep(bubble.TTL)
				d := enters(t, c, "d", 2)
				passed(t, "two have come", []*call{cut, d}, 0, 1)
			})
		})
	}
}

// A losing session loses the answer to its first join, and removes the member that it finds.
type losing struct {
	backend.Session
	joined, left func()
	lost         *bool
}

func (s losing) JoinShared(ctx context.Context, line, value, record string) (backend.Joined, error) {
	j, err := s.Session.JoinShared(ctx, line, value, record)
	if err != nil || *s.lost {
		return j, err
	}
	*s.lost = true
	s.joined()
	if err := s.Leave(ctx, j.Member); err != nil {
		return j, err
	}
	s.left()
	return backend.Joined{}, backend.ErrUnavailable
}

// One that lost the answer to its join may have been counted, also if its session goes on.
func TestCountedBeforeItKnowsThatItHasJoined(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		b, lost := bubble.Client(t, c, "a"), false
		counted := func() { time.Sleep(time.Second) }
		z := waits(t, c, "z", 2)
		a := start(t, b, func(ctx context.Context, _ *call) error {
			return barrier.New(view.Of(b, func(s backend.Session) backend.Session { return losing{s, counted, func() { pass(t, c) }, &lost} }), "start", 2, nil).Wait(ctx)
		})
		ends(t, a)
		bubble.Want(t, a.err, elect.ErrLost)
		passed(t, "two have come", []*call{z}, 0)
	})
}

// One who takes itself for the one who counts, because the barrier has just opened for it, does not
// open it again.
func TestCountsTooLate(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		joined, look := make(chan bool), make(chan bool)
		a := hookedEnters(t, bubble.Client(t, c, "a"), 2, once(memory.OpPut, func() { <-joined }))
		b := hookedEnters(t, bubble.Client(t, c, "b"), 2, once(memory.OpLine, func() {
			close(joined)
			<-look
		}))
		<-joined // b has joined, and has read the record, before a writes it
		ends(t, a)
		late := waits(t, c, "late", 2)
		close(look)
		time.Sleep(time.Second)
		passed(t, "three have come", []*call{a, b, late}, 0, 1)
	})
}

// An expiring session ends as soon as its first write is done.
type expiring struct {
	backend.Session
	expire func()
}

func (s expiring) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	v, err := s.Session.Put(ctx, name, value, cond)
	s.expire()
	<-s.Done()
	return v, err
}

// One who opens the barrier, and whose session ends before it knows that it leads, is not inside: its next member was not counted.
func TestEndsAsItCounts(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		client := bubble.Client(t, c, "a")
		a := start(t, client, func(ctx context.Context, k *call) (err error) {
			k.in, err = barrier.NewDouble(view.Of(client, func(s backend.Session) backend.Session { return expiring{s, client.Expire} }), "start", 2, nil).Enter(ctx)
			return err
		})
		b := enters(t, c, "b", 2)
		ends(t, a)
		bubble.Want(t, a.err, elect.ErrLost)
		passed(t, "two have come", []*call{b}, 0)
		if left := leaves(t, b); !left.returned() || left.err != nil {
			t.Errorf("the other one has left: %v, %v", left.returned(), left.err)
		}
		empty(t, c)
	})
}

// One who has gone by the time that it writes opens for nobody.
func TestWriterMustStand(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		a := hookedEnters(t, bubble.Client(t, c, "a"), 2, once(memory.OpPut, func() { c.Remove("start-arrivals", c.Members("start-arrivals")[0].Key) }))
		b := enters(t, c, "b", 2)
		time.Sleep(time.Second)
		passed(t, "two have come", []*call{a, b}, 0, 1)
		if err := errors.Join(a.in.Check(), b.in.Check()); err != nil {
			t.Error(err)
		}
	})
}

// After a write that was lost, whoever counts looks again at who stands.
func TestCountsAgain(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		first := bubble.Client(t, c, "a")
		first.LoseRequest(memory.OpPut)
		a := hookedEnters(t, first, 2, once(memory.OpPut, func() {
			c.Remove("start-arrivals", c.Members("start-arrivals")[1].Key)
		}))
		b := enters(t, c, "b", 2)
		time.Sleep(2 * bubble.TTL) // b does not learn at once that it was removed
		passed(t, "two have come", []*call{a, b}, 0, 1)
		if err := errors.Join(a.in.Check(), b.in.Check()); err != nil {
			t.Error(err)
		}
	})
}
