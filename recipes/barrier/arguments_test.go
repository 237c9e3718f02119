package barrier_test

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
	"github.com/succession-dev/succession/recipes/barrier"
	"github.com/succession-dev/succession/recipes/lock"
)

// All must give the same number. The first in line decides, and when nobody stands another one may.
func TestNumbersDiffer(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		all := []*call{waits(t, c, "a", 3)}
		wrong := waits(t, c, "wrong", 2)
		ends(t, wrong)
		bubble.Want(t, wrong.err, backend.ErrInvalid)
		for _, s := range []string{"start", ": 2", "says 3"} {
			if !strings.Contains(wrong.err.Error(), s) {
				t.Errorf("%q does not say %q", wrong.err, s)
			}
		}
		all = append(all, waits(t, c, "b", 3))
		passed(t, "two of three have come", all)
		all = append(all, waits(t, c, "c", 3))
		passed(t, "three of three have come", all, 0, 1, 2)
		two := []*call{waits(t, c, "d", 2), waits(t, c, "e", 2)}
		passed(t, "two of two have come", two, 0, 1)
		empty(t, c)
	})
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		enters(t, c, "a", 1)
		wrong := enters(t, c, "wrong", 2)
		ends(t, wrong)
		bubble.Want(t, wrong.err, backend.ErrInvalid)
	})
}

// Those who come all at once with two numbers are sorted out.
func TestNumbersDifferAtOnce(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		var all []*call
		for i := range 12 {
			b := bubble.Client(t, c, fmt.Sprint("c", i))
			b.Delay(time.Millisecond, 20*time.Millisecond)
			n := 3 + i%2
			all = append(all, start(t, b, func(ctx context.Context, _ *call) error { return barrier.New(b, "start", n, nil).Wait(ctx) }))
		}
		time.Sleep(time.Minute)
		waiting := make(map[int]int)
		for i, k := range all {
			switch {
			case !k.returned():
				waiting[3+i%2]++
			case k.err != nil:
				bubble.Want(t, k.err, backend.ErrInvalid)
			}
		}
		for n, left := range waiting {
			if left >= n || len(waiting) > 1 {
				t.Errorf("so many still wait, by their numbers: %v", waiting)
			}
		}
	})
}

// One with another number does not wait behind others, also if somebody with its own stands between.
func TestNumberOfSomebodyFarInFront(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		look := make(chan bool)
		defer close(look)
		slow := func() func(memory.Op) { return once(memory.OpLine, func() { <-look }) }
		waits(t, c, "a", 2)
		hookedEnters(t, bubble.Client(t, c, "b"), 3, slow())
		hookedEnters(t, bubble.Client(t, c, "c"), 2, slow()) // is counted with a
		wrong := waits(t, c, "wrong", 2)
		if !wrong.returned() {
			t.Fatal("it waits behind one with another number")
		}
		bubble.Want(t, wrong.err, backend.ErrInvalid)
	})
}

func TestForeignLine(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		b := bubble.Client(t, c, "a")
		for name, take := range map[string]func(context.Context) (*lock.Held, error){
			"mutex": lock.NewMutex(b, "start-arrivals", nil).Lock, "reader": lock.NewRWMutex(b, "start-arrivals", nil).RLock,
		} {
			held, err := take(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			k := waits(t, c, "b", 1)
			ends(t, k)
			bubble.Want(t, k.err, backend.ErrInvalid)
			if !strings.Contains(k.err.Error(), "line start-arrivals") {
				t.Errorf("%v does not name the line", k.err)
			}
			if held.Check() != nil || len(c.Members("start-arrivals")) != 1 {
				t.Errorf("%s: %v, %v", name, held.Check(), c.Members("start-arrivals"))
			}
			held.Unlock(t.Context())
		}
	})
}

func TestForeignRecord(t *testing.T) {
	for _, value := range []string{"", "x", `{"succession":2,"fence":7}`, `{"rounds":[{"a":1}]}{}`, `{"rounds":[{"a":"b"}]}`} {
		bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
			b := bubble.Client(t, c, "a")
			s, err := b.Session(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Put(t.Context(), "start-open", []byte(value), nil); err != nil {
				t.Fatal(err)
			}
			err = barrier.New(b, "start", 1, nil).Wait(t.Context())
			bubble.Want(t, err, backend.ErrInvalid)
			if err == nil || !strings.Contains(err.Error(), "start-open") {
				t.Errorf("%v does not name the record", err)
			}
			if r := c.Record("start-open"); string(r.Value) != value {
				t.Errorf("the record %q is now %q", value, r.Value)
			}
			empty(t, c)
		})
	}
}

func TestArguments(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		a := bubble.Client(t, c, "a")
		for _, n := range []int{0, -1, 5001} {
			err := barrier.New(a, "start", n, nil).Wait(t.Context())
			bubble.Want(t, err, backend.ErrInvalid)
			_, err = barrier.NewDouble(a, "start", n, nil).Enter(t.Context())
			bubble.Want(t, err, backend.ErrInvalid)
			if !strings.Contains(err.Error(), "start") || !strings.Contains(err.Error(), fmt.Sprint(n)) {
				t.Error(err)
			}
		}
		for _, name := range []string{"no//name", "", "jobs/", "jobs/.."} { // with a suffix most would be names
			bubble.Want(t, barrier.New(a, name, 1, nil).Wait(t.Context()), backend.ErrInvalid)
		}
		bubble.Want(t, barrier.New(a, "start", 2, &elect.Options{ID: "two\nlines"}).Wait(t.Context()), backend.ErrInvalid)
		bubble.Want(t, barrier.New(a, "start", 2, &elect.Options{Value: strings.Repeat("x", backend.MaxValue)}).Wait(t.Context()), backend.ErrInvalid)
		// What fits is as long as it may ever become: with the largest position of a first member.
		const added = len("id\nbarrier of 2: 0123456789ab\n since 18446744073709551615")
		for room, want := range map[int]error{0: context.DeadlineExceeded, 1: backend.ErrInvalid} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			bubble.Want(t, barrier.New(a, "start", 2, &elect.Options{ID: "id", Value: strings.Repeat("x", backend.MaxValue-added+room)}).Wait(ctx), want)
			cancel()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		bubble.Want(t, barrier.New(a, "start", 2, nil).Wait(ctx), context.DeadlineExceeded)
		empty(t, c)
	})
}

// The value of a participant is shown to others behind the number.
func TestValue(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		b := bubble.Client(t, c, "a")
		k := start(t, b, func(ctx context.Context, _ *call) error {
			return barrier.New(b, "start", 2, &elect.Options{ID: "me", Value: "here"}).Wait(ctx)
		})
		if got := c.Members("start-arrivals")[0].Value; !strings.HasPrefix(got, "me\nbarrier of 2: ") || !strings.HasSuffix(got, "\nhere") {
			t.Errorf("%q", got)
		}
		k.cancel()
		ends(t, k)
	})
}

func TestUnsupported(t *testing.T) {
	for what, without := range map[string]func(backend.Session) backend.Session{
		"shared members": bubble.NoShares,
		"records":        bubble.NoRecords,
	} {
		bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
			err := barrier.New(view.Of(bubble.Client(t, c, "a"), without), "start", 1, nil).Wait(t.Context())
			bubble.Want(t, err, errors.ErrUnsupported)
			if err == nil || !strings.Contains(err.Error(), "no "+what) {
				t.Errorf("%v does not say that there are no %s", err, what)
			}
			empty(t, c)
		})
	}
}
