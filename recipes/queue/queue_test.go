package queue_test

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
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/recipes/queue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// of returns a handle of a new client on the queue of all tests.
func of(t *testing.T, c *memory.Coordinator, name string) *queue.Queue {
	t.Helper()
	return named(bubble.Client(t, c, name), name)
}

func named(b backend.Backend, id string) *queue.Queue {
	return queue.New(b, "jobs", &queue.Options{Options: elect.Options{ID: id}})
}

// errOf returns the error of a Put.
func errOf(_ string, err error) error { return err }

func put(t *testing.T, q *queue.Queue, values ...string) {
	t.Helper()
	for _, v := range values {
		if _, err := q.Put(t.Context(), v); err != nil {
			t.Fatal(err)
		}
	}
}

// takes takes an item, which must be this one, at once.
func takes(t *testing.T, q *queue.Queue, value string) *queue.Item {
	t.Helper()
	item := bubble.Must[*queue.Item](t)(q.TryTake(t.Context()))
	if item.Value != value {
		t.Fatalf("got the item %q, want %q", item.Value, value)
	}
	return item
}

func done(t *testing.T, item *queue.Item) {
	t.Helper()
	if err := item.Done(t.Context()); err != nil {
		t.Error(err)
	}
}

// lists checks which items stand. A star behind a value says that it is taken.
func lists(t *testing.T, q *queue.Queue, values ...string) {
	t.Helper()
	var got []string
	for _, e := range bubble.Must[[]queue.Entry](t)(q.List(t.Context())) {
		if (e.Taker == "") != (e.Token == 0) {
			t.Errorf("%+v", e)
		}
		if e.Taker != "" {
			e.Value += "*"
		}
		got = append(got, e.Value)
	}
	if !slices.Equal(got, values) {
		t.Errorf("the queue is %q, want %q", got, values)
	}
	if n := bubble.Must[int](t)(q.Len(t.Context())); n != len(values) {
		t.Errorf("its length is %d, want %d", n, len(values))
	}
}

// abandoned checks that nobody claims an item or waits for one.
func abandoned(t *testing.T, c *memory.Coordinator) {
	t.Helper()
	for _, line := range []string{"jobs-claims", "jobs-turn"} {
		if n := len(c.Members(line)); n != 0 {
			t.Errorf("%d stand in the line %s", n, line)
		}
	}
}

// taking is a call of Take in the background.
type taking = bubble.Call[*queue.Item]

func take(ctx context.Context, q *queue.Queue) *taking {
	return bubble.Go(func() (*queue.Item, error) { return q.Take(ctx) })
}

func TestFirstInFirstOut(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		p, q := bubble.Client(t, c, "producer"), of(t, c, "consumer")
		put(t, named(p, "producer"), "one", "two", "", "four")
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		lists(t, q, "one", "two", "", "four")
		ids, last := make(map[string]bool), uint64(0)
		for _, value := range []string{"one", "two", "", "four"} {
			item := takes(t, q, value)
			lists(t, q, slices.Concat([]string{value + "*"}, map[string][]string{"one": {"two", "", "four"}, "two": {"", "four"}, "": {"four"}}[value])...)
			entry := bubble.Must[[]queue.Entry](t)(q.List(t.Context()))[0]
			if entry != (queue.Entry{ID: item.ID, Value: value, Position: item.Position, Taker: "consumer", Token: item.Token()}) {
				t.Errorf("%+v of the item %s at %d with token %d", entry, item.ID, item.Position, item.Token())
			}
			if ids[item.ID] || item.Token() <= last {
				t.Errorf("the item %q has the ID %s and the token %d, after %d", value, item.ID, item.Token(), last)
			}
			ids[item.ID], last = true, item.Token()
			done(t, item)
		}
		_, err := q.TryTake(t.Context())
		bubble.Want(t, err, queue.ErrEmpty)
		lists(t, q)
		id := bubble.Must[string](t)(q.Put(t.Context(), "five"))
		if item := takes(t, q, "five"); item.ID != id {
			t.Errorf("Put says that the item has the ID %q, and its taker %q", id, item.ID)
		} else {
			done(t, item)
		}
		abandoned(t, c)
	})
}

// The options of a queue are checked as those of an election are.
func TestCheck(t *testing.T) {
	for _, o := range []*queue.Options{{Limit: -1}, {Options: elect.Options{Value: "x"}}, {Options: elect.Options{Priority: 1}}, {Options: elect.Options{ID: "\n"}}} {
		if err := o.Check(); !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("Check of %+v: %v, want ErrInvalid", o, err)
		}
	}
	for _, o := range []*queue.Options{nil, {}, {Limit: 3}} {
		if err := o.Check(); err != nil {
			t.Errorf("Check of %+v: %v", o, err)
		}
	}
}

// What is taken is not free, and is again, at its place, when it is returned.
func TestReturn(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		a, b := of(t, c, "a"), of(t, c, "b")
		put(t, a, "one", "two", "three")
		one, two := takes(t, a, "one"), takes(t, b, "two")
		lists(t, a, "one*", "two*", "three")
		for range 2 {
			if err := one.Return(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		bubble.Want(t, one.Check(), elect.ErrResigned)
		bubble.Want(t, one.Done(t.Context()), queue.ErrLost)
		lists(t, a, "one", "two*", "three")
		again := takes(t, b, "one")
		if again.ID != one.ID || again.Token() <= one.Token() {
			t.Errorf("the item %s with token %d is later the item %s with token %d", one.ID, one.Token(), again.ID, again.Token())
		}
		for range 2 {
			done(t, again)
		}
		if err := errors.Join(again.Return(t.Context()), two.Check()); err != nil {
			t.Error(err)
		}
		lists(t, a, "two*", "three")
		done(t, two)
		done(t, takes(t, a, "three"))
		abandoned(t, c)
	})
}

// An item whose work fails each time keeps nobody from the others if it is returned after a pause; and it is there again
// when that is over, or its taker has gone.
func TestReturnAfter(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		client := bubble.Client(t, c, "a")
		a, b := named(client, "a"), of(t, c, "b")
		put(t, a, "poison", "two", "three")
		began := time.Now()
		takes(t, a, "poison").ReturnAfter(time.Minute)
		done(t, takes(t, a, "two"))
		lists(t, a, "poison*", "three")
		three := takes(t, b, "three")
		again := bubble.Must[*queue.Item](t)(b.Take(t.Context()))
		if again.Value != "poison" || time.Since(began) != time.Minute {
			t.Errorf("after %v there is %q again; want the one that was returned after a minute", time.Since(began), again.Value)
		}
		done(t, three)

		// Who ends it before the pause is over has ended it.
		again.ReturnAfter(time.Minute)
		done(t, again)
		time.Sleep(2 * time.Minute)
		lists(t, a)
		put(t, a, "four")
		four := takes(t, a, "four")
		four.ReturnAfter(time.Hour)
		if err := four.Return(t.Context()); err != nil {
			t.Error(err)
		}
		lists(t, b, "four")

		// A process that ends returns what it holds.
		takes(t, a, "four").ReturnAfter(time.Hour)
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		done(t, takes(t, b, "four"))
		abandoned(t, c)
	})
}

// Who finds a free item waits for nobody, and stands in no line for it. Who finds that another was quicker takes the next one.
func TestTakeSideBySide(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		b := bubble.Client(t, c, "slow")
		slow := named(b, "slow")
		put(t, slow, "one", "two", "three")
		b.Delay(time.Second, 0)
		call := take(t.Context(), slow)
		time.Sleep(3 * time.Second / 2) // it has found the first one, and not claimed it
		for _, value := range []string{"one", "two"} {
			quick := take(t.Context(), of(t, c, value))
			if !quick.Returned(t) || quick.Value.Value != value {
				t.Fatalf("%q is free, and is not taken", value)
			}
			defer done(t, quick.Value)
		}
		if <-call.Done; !call.Returned(t) || call.Value.Value != "three" {
			t.Fatal("the slow one has not got the item that was left")
		}
		if sent := c.Requests(); sent.Total(memory.OpJoin) != 0 {
			t.Errorf("somebody has waited for a turn: %v", sent)
		}
		done(t, call.Value)
	})
}

// Those who wait get items in the order in which they came. Each item wakes one of them, and the
// one whose turn is next.
func TestTakeWaits(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		const waiters = 10
		var calls []*taking
		for i := range waiters {
			calls = append(calls, take(t.Context(), of(t, c, fmt.Sprint("c", i))))
		}
		p := of(t, c, "producer")
		for i := range waiters {
			before := c.Requests()
			put(t, p, fmt.Sprint(i))
			for k, call := range calls {
				if call.Returned(t) != (k <= i) {
					t.Fatalf("after item %d call %d has returned: %v", i, k, call.Returned(t))
				}
			}
			if v := calls[i].Value.Value; v != fmt.Sprint(i) {
				t.Errorf("call %d has got item %s", i, v)
			}
			sent := c.Requests().Since(before)
			for k := i + 2; k < waiters; k++ {
				if n := sent.Of(fmt.Sprint("c", k)); n != 0 {
					t.Errorf("item %d has made waiter %d send %d requests", i, k, n)
				}
			}
		}
		idle := c.Requests()
		time.Sleep(bubble.TTL / 4)
		if n := c.Requests().Since(idle); n.Total() != n.Total(memory.OpHeartbeat) {
			t.Errorf("while nothing happens they send %v", n)
		}
		for _, call := range calls {
			done(t, call.Value)
		}
		abandoned(t, c)
	})
}

// While others take and confirm, the one who waits looks whether an item is free, and reads no line again.
func TestWaitReadsNothingAgain(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		const changes = 5
		busy := of(t, c, "busy")
		put(t, busy, "a", "b", "c", "d", "e")
		var held []*queue.Item
		for _, v := range []string{"a", "b", "c", "d", "e"} {
			held = append(held, takes(t, busy, v))
		}
		waits := take(t.Context(), of(t, c, "waits"))
		if waits.Returned(t) {
			t.Fatal("it has an item")
		}
		before := c.Requests()
		for _, item := range held {
			done(t, item)
			synctest.Wait()
		}
		sent := c.Requests().Since(before)
		if n := sent.Of("waits", memory.OpLine); n > 0 {
			t.Errorf("%d changes have made it read %d lines: %v", changes, n, sent)
		}
		if sent.Of("waits", memory.OpFree) == 0 {
			t.Errorf("it has not looked: %v", sent)
		}
	})
}

// A process that gives no ID has one all the same, by which all that it takes can be told.
func TestTaker(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		q := queue.New(bubble.Client(t, c, "a"), "jobs", nil)
		put(t, q, "one", "two")
		for _, value := range []string{"one", "two"} {
			defer takes(t, q, value).Return(t.Context())
		}
		if l := bubble.Must[[]queue.Entry](t)(q.List(t.Context())); l[0].Taker == "" || l[0].Taker != l[1].Taker || l[0].Token == l[1].Token {
			t.Errorf("%+v", l)
		}
	})
}

// TryTake whose server lags behind finds what was put before.
func TestTryTakeWhereServerLags(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		b := bubble.Lags(bubble.Client(t, c, "a"))
		q := named(b, "a")
		_, err := q.TryTake(t.Context())
		bubble.Want(t, err, queue.ErrEmpty)
		put(t, of(t, c, "producer"), "one")
		b.Lag()
		item := bubble.Must[*queue.Item](t)(q.TryTake(t.Context()))
		bubble.Want(t, item.Done(t.Context()), nil)
	})
}

// What Put, Take and Done cost, as the package comment says it.
func TestRequests(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		b := bubble.Client(t, c, "a")
		q, limited := named(b, "a"), queue.New(b, "jobs", &queue.Options{Limit: 10})
		put(t, q, "first")
		watches := []memory.Op{memory.OpHeartbeat, memory.OpGone, memory.OpWatch, memory.OpWatchLine, memory.OpWatchPlace}
		var item *queue.Item
		for _, call := range []struct {
			what string
			n    int
			f    func() error
		}{
			{"Put", 1, func() error { _, err := q.Put(t.Context(), "x"); return err }},
			{"Put with a Limit", 3, func() error { _, err := limited.Put(t.Context(), "x"); return err }},
			{"Put with a Limit, when the one before has found room", 2, func() error { _, err := limited.Put(t.Context(), "x"); return err }},
			{"Take", 2, func() (err error) { item, err = q.Take(t.Context()); return err }},
			{"Done", 2, func() error { return item.Done(t.Context()) }},
			{"TryTake", 2, func() (err error) { item, err = q.TryTake(t.Context()); return err }},
			{"Return", 1, func() error { return item.Return(t.Context()) }},
			{"Len", 1, func() error { _, err := q.Len(t.Context()); return err }},
			{"List", 2, func() error { _, err := q.List(t.Context()); return err }},
		} {
			before := c.Requests()
			if err := call.f(); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			sent := c.Requests().Since(before)
			if n := sent.Total() - sent.Total(watches...); n != call.n {
				t.Errorf("%s costs %d requests, want %d: %v", call.what, n, call.n, sent)
			}
		}
	})
}

// If the context ends, nobody is left in any line, whatever the call was waiting for.
func TestTakeEndsWithItsContext(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		enough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		b := bubble.Client(t, c, "cut off")
		first, second := take(ctx, of(t, c, "first")), take(ctx, of(t, c, "second"))
		b.Cut()
		third := take(ctx, named(b, "cut off"))
		cancel(enough)
		for _, call := range []*taking{first, second, third} {
			<-call.Done
			if call.Value != nil {
				t.Error("it has got an item")
			}
			bubble.Want(t, call.Err, enough)
		}
		synctest.Wait()
		abandoned(t, c)
	})
}
