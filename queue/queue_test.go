package queue_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/queue"
)

const ttl = 10 * time.Second

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bubble runs f in virtual time against a coordinator of its own.
func bubble(t *testing.T, f func(t *testing.T, c *memory.Coordinator)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, memory.New(&memory.Options{TTL: ttl})) })
}

func client(t *testing.T, c *memory.Coordinator, name string) *memory.Backend {
	t.Helper()
	b := c.Client(name)
	t.Cleanup(func() { b.Close() })
	return b
}

// of returns a handle of a new client on the queue of all tests.
func of(t *testing.T, c *memory.Coordinator, name string) *queue.Queue {
	t.Helper()
	return named(client(t, c, name), name)
}

func named(b backend.Backend, id string) *queue.Queue {
	return queue.New(b, "jobs", &queue.Options{Options: elect.Options{ID: id}})
}

// must returns v, and ends the test if there is an error.
func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func want(t *testing.T, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("got %v, want %v", err, target)
	}
}

func put(t *testing.T, q *queue.Queue, values ...string) {
	t.Helper()
	for _, v := range values {
		if err := q.Put(t.Context(), v); err != nil {
			t.Fatal(err)
		}
	}
}

// takes takes an item, which must be this one, at once.
func takes(t *testing.T, q *queue.Queue, value string) *queue.Item {
	t.Helper()
	item := must[*queue.Item](t)(q.TryTake(t.Context()))
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
	for _, e := range must[[]queue.Entry](t)(q.List(t.Context())) {
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
	if n := must[int](t)(q.Len(t.Context())); n != len(values) {
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
type taking struct {
	item *queue.Item
	err  error
	done chan struct{}
}

func take(ctx context.Context, q *queue.Queue) *taking {
	a := &taking{done: make(chan struct{})}
	go func() {
		a.item, a.err = q.Take(ctx)
		close(a.done)
	}()
	synctest.Wait()
	return a
}

// got reports whether the call has returned with an item.
func (a *taking) got(t *testing.T) bool {
	t.Helper()
	synctest.Wait()
	select {
	case <-a.done:
		if a.err != nil {
			t.Fatal(a.err)
		}
		return true
	default:
		return false
	}
}

func TestFirstInFirstOut(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		p, q := client(t, c, "producer"), of(t, c, "consumer")
		put(t, named(p, "producer"), "one", "two", "", "four")
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		lists(t, q, "one", "two", "", "four")
		ids, last := make(map[string]bool), uint64(0)
		for _, value := range []string{"one", "two", "", "four"} {
			item := takes(t, q, value)
			lists(t, q, slices.Concat([]string{value + "*"}, map[string][]string{"one": {"two", "", "four"}, "two": {"", "four"}, "": {"four"}}[value])...)
			entry := must[[]queue.Entry](t)(q.List(t.Context()))[0]
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
		want(t, err, queue.ErrEmpty)
		lists(t, q)
		abandoned(t, c)
	})
}

// What is taken is not free, and is again, at its place, when it is returned.
func TestReturn(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		a, b := of(t, c, "a"), of(t, c, "b")
		put(t, a, "one", "two", "three")
		one, two := takes(t, a, "one"), takes(t, b, "two")
		lists(t, a, "one*", "two*", "three")
		for range 2 {
			if err := one.Return(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		want(t, one.Check(), elect.ErrResigned)
		want(t, one.Done(t.Context()), queue.ErrLost)
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

// slow is a session whose second Remove waits, and whose first waits for the second to begin.
type slow struct {
	backend.Session
	calls        atomic.Int32
	begun, until chan struct{}
}

func (s *slow) Remove(ctx context.Context, m, by backend.Member) error {
	if s.calls.Add(1) == 1 {
		<-s.begun
	} else {
		close(s.begun)
		<-s.until
	}
	return s.Session.Remove(ctx, m, by)
}

// Of two calls of Done at once both succeed, also where the second request comes after the claim
// has gone.
func TestDoneTwiceAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		s := &slow{Session: must[backend.Session](t)(client(t, c, "a").Session(t.Context())), begun: make(chan struct{}), until: make(chan struct{})}
		q := named(wrapped{client(t, c, "b"), func(backend.Session) backend.Session { return s }}, "a")
		put(t, q, "one")
		item := takes(t, q, "one")
		results := make(chan error, 2)
		for range 2 {
			go func() { results <- item.Done(t.Context()) }()
		}
		err := <-results
		close(s.until)
		if err := errors.Join(err, <-results); err != nil {
			t.Error(err)
		}
	})
}

// Those who wait get items in the order in which they came. Each item wakes one of them, and the
// one whose turn is next.
func TestTakeWaits(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
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
				if call.got(t) != (k <= i) {
					t.Fatalf("after item %d call %d has returned: %v", i, k, call.got(t))
				}
			}
			if v := calls[i].item.Value; v != fmt.Sprint(i) {
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
		time.Sleep(ttl / 4)
		if n := c.Requests().Since(idle); n.Total() != n.Total(memory.OpHeartbeat) {
			t.Errorf("while nothing happens they send %v", n)
		}
		for _, call := range calls {
			done(t, call.item)
		}
		abandoned(t, c)
	})
}

// A process that gives no ID has one all the same, by which all that it takes can be told.
func TestTaker(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		q := queue.New(client(t, c, "a"), "jobs", nil)
		put(t, q, "one", "two")
		for _, value := range []string{"one", "two"} {
			defer takes(t, q, value).Return(t.Context())
		}
		if l := must[[]queue.Entry](t)(q.List(t.Context())); l[0].Taker == "" || l[0].Taker != l[1].Taker || l[0].Token == l[1].Token {
			t.Errorf("%+v", l)
		}
	})
}

// What Put, Take and Done cost, as the package comment says it.
func TestRequests(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		b := client(t, c, "a")
		q, limited := named(b, "a"), queue.New(b, "jobs", &queue.Options{Limit: 10})
		put(t, q, "first")
		watches := []memory.Op{memory.OpHeartbeat, memory.OpGone, memory.OpWatch, memory.OpWatchLine, memory.OpWatchPlace}
		var item *queue.Item
		for _, call := range []struct {
			what string
			n    int
			f    func() error
		}{
			{"Put", 1, func() error { return q.Put(t.Context(), "x") }},
			{"Put with a Limit", 3, func() error { return limited.Put(t.Context(), "x") }},
			{"Take", 11, func() (err error) { item, err = q.Take(t.Context()); return err }},
			{"Done", 2, func() error { return item.Done(t.Context()) }},
			{"TryTake", 7, func() (err error) { item, err = q.TryTake(t.Context()); return err }},
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
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		enough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		b := client(t, c, "cut off")
		first, second := take(ctx, of(t, c, "first")), take(ctx, of(t, c, "second"))
		b.Cut()
		third := take(ctx, named(b, "cut off"))
		cancel(enough)
		for _, call := range []*taking{first, second, third} {
			<-call.done
			if call.item != nil {
				t.Error("it has got an item")
			}
			want(t, call.err, enough)
		}
		synctest.Wait()
		abandoned(t, c)
	})
}

// A waiter whose turn is lost waits on, and gets an item.
func TestTurnIsLost(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		b := client(t, c, "a")
		call := take(t.Context(), named(b, "a"))
		c.Remove("jobs-turn", c.Members("jobs-turn")[0].Key)
		time.Sleep(time.Second)
		if n := len(c.Members("jobs-turn")); call.got(t) || n != 1 {
			t.Fatalf("%d wait for their turn", n)
		}
		b.Expire()
		time.Sleep(ttl)
		if n := len(c.Members("jobs-turn")); call.got(t) || n != 1 {
			t.Fatalf("%d wait for their turn", n)
		}
		put(t, of(t, c, "producer"), "one")
		if !call.got(t) {
			t.Fatal("it does not get the item")
		}
		done(t, call.item)
		abandoned(t, c)
	})
}

// takeover has a taker of the first item lose its claim in some way, and checks that the next one
// gets that item, in front of what was put later, after the first has lost it.
func takeover(t *testing.T, c *memory.Coordinator, lose func(b *memory.Backend, item *queue.Item)) {
	t.Helper()
	b, q := client(t, c, "loses"), of(t, c, "next")
	put(t, q, "one")
	old := takes(t, named(b, "loses"), "one")
	put(t, q, "two")
	two := takes(t, q, "two")
	put(t, q, "three")
	next := take(t.Context(), of(t, c, "quick"))
	if !next.got(t) || next.item.Value != "three" {
		t.Fatal("the free item is not taken")
	}
	waits := take(t.Context(), q)
	lost := make(chan time.Time, 1)
	context.AfterFunc(old.Context(), func() { lost <- time.Now() })
	lose(b, old)
	<-waits.done
	now := time.Now()
	if !waits.got(t) || waits.item.ID != old.ID || waits.item.Token() <= old.Token() {
		t.Fatalf("the next has got the item %+v; want that which was lost, %+v, with a larger token", waits.item, old)
	}
	if at := <-lost; at.After(now) {
		t.Error("another has the item before the claim is lost")
	}
	want(t, old.Check(), elect.ErrLost)
	b.Heal()
	want(t, old.Done(t.Context()), queue.ErrLost)
	lists(t, q, "one*", "two*", "three*")
	done(t, waits.item)
	want(t, old.Done(t.Context()), queue.ErrLost)
	for _, item := range []*queue.Item{two, next.item} {
		done(t, item)
	}
	lists(t, q)
	abandoned(t, c)
}

func TestTakerIsKilled(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		takeover(t, c, func(b *memory.Backend, _ *queue.Item) { b.Kill() })
	})
}

func TestTakerIsCutOff(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		takeover(t, c, func(b *memory.Backend, _ *queue.Item) { b.Cut() })
	})
}

func TestTakerExpires(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		takeover(t, c, func(b *memory.Backend, _ *queue.Item) { b.Expire() })
	})
}

func TestClaimIsRemoved(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		takeover(t, c, func(_ *memory.Backend, item *queue.Item) { c.Remove("jobs-claims", item.Member().Key) })
	})
}

// An item that was put is there once, and confirmed once, if answers or requests are lost.
func TestLostAnswers(t *testing.T) {
	for name, lose := range map[string]func(*memory.Backend, ...memory.Op){
		"answer":  (*memory.Backend).LoseAnswer,
		"request": (*memory.Backend).LoseRequest,
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *memory.Coordinator) {
				b := client(t, c, "a")
				q := named(b, "a")
				lose(b, memory.OpAppend)
				put(t, q, "one")
				lists(t, q, "one")
				for _, op := range []memory.Op{memory.OpJoin, memory.OpAhead, memory.OpLine, memory.OpLeave} {
					lose(b, op)
				}
				call := take(t.Context(), q)
				<-call.done
				if !call.got(t) {
					t.Fatal("it is not taken")
				}
				lists(t, q, "one*")
				lose(b, memory.OpRemove)
				done(t, call.item)
				lists(t, q)
				abandoned(t, c)
			})
		})
	}
}

// While the coordinator cannot be reached, Put and TryTake wait for it.
func TestWaitForTheCoordinator(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		b := client(t, c, "a")
		q := named(b, "a")
		put(t, q, "one")
		b.Hide()
		for _, call := range []func(context.Context) error{
			func(ctx context.Context) error { return q.Put(ctx, "two") },
			func(ctx context.Context) error { _, err := q.TryTake(ctx); return err },
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			want(t, call(ctx), context.DeadlineExceeded)
			cancel()
		}
		time.AfterFunc(time.Minute, b.Heal)
		put(t, q, "three")
		item := takes(t, q, "one")
		done(t, item)
	})
}

// Done that is not answered gives up with its context, and can be called again.
func TestDoneWithoutAnAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		b := client(t, c, "a")
		q := named(b, "a")
		put(t, q, "one")
		item := takes(t, q, "one")
		b.CutAnswers()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := item.Done(ctx)
		want(t, err, context.DeadlineExceeded)
		if errors.Is(err, queue.ErrLost) || item.Check() != nil {
			t.Errorf("%v: the claim is not lost", err)
		}
		b.Heal()
		done(t, item)
		lists(t, q)
		abandoned(t, c)
	})
}

func TestLimit(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		const limit = 3
		limited := func(name string) *queue.Queue {
			b := client(t, c, name)
			b.Delay(time.Millisecond, time.Millisecond)
			return queue.New(b, "jobs", &queue.Options{Limit: limit})
		}
		results := make(chan error, 8)
		for i := range cap(results) {
			go func() { results <- limited(fmt.Sprint(i)).Put(t.Context(), fmt.Sprint(i)) }()
		}
		accepted := 0
		for range cap(results) {
			if err := <-results; err == nil {
				accepted++
			} else {
				want(t, err, queue.ErrFull)
			}
		}
		q := limited("another")
		if n := must[int](t)(q.Len(t.Context())); accepted != limit || n != limit {
			t.Errorf("%d puts have succeeded and %d items stand, with a limit of %d", accepted, n, limit)
		}
		abandoned(t, c)
		item := must[*queue.Item](t)(q.TryTake(t.Context()))
		before := c.Requests()
		want(t, q.Put(t.Context(), "too many"), queue.ErrFull)
		if n := c.Requests().Since(before).Total(memory.OpAppend); n != 0 {
			t.Errorf("Put has appended %d items to a full queue", n)
		}
		done(t, item)
		put(t, q, "the next")
	})
}

// An item beyond the limit that somebody has taken counts as put.
func TestLimitOfWhatIsTaken(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		a := client(t, c, "a")
		first := queue.New(a, "jobs", &queue.Options{Limit: 1})
		b := client(t, c, "b")
		slow := queue.New(b, "jobs", &queue.Options{Limit: 1})
		must[backend.Session](t)(b.Session(t.Context()))
		call := take(t.Context(), of(t, c, "taker"))
		b.Delay(time.Second, 0)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		result := make(chan error)
		go func() { result <- slow.Put(ctx, "slow") }()
		time.Sleep(3 * time.Second / 2) // it has seen that there is room
		put(t, first, "first")
		if !call.got(t) || call.item.Value != "first" {
			t.Fatal("the first is not taken")
		}
		next := take(t.Context(), of(t, c, "next"))
		if err := <-result; err != nil {
			t.Errorf("the item has been taken, and Put says %v", err)
		}
		if !next.got(t) || next.item.Value != "slow" {
			t.Fatal("the second is not taken")
		}
		done(t, next.item)
		done(t, call.item)
	})
}

func TestArguments(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		b := client(t, c, "a")
		q := queue.New(b, "jobs", nil)
		put(t, q, strings.Repeat("x", queue.MaxValue))
		for what, err := range map[string]error{
			fmt.Sprint(queue.MaxValue): q.Put(t.Context(), strings.Repeat("x", queue.MaxValue+1)),
			"UTF-8":                    q.Put(t.Context(), "\xff"),
			"no//name":                 queue.New(b, "no//name", nil).Put(t.Context(), "x"),
			"empty":                    queue.New(b, "", nil).Put(t.Context(), "x"),
			"at most":                  queue.New(b, strings.Repeat("x", backend.MaxName), nil).Put(t.Context(), "x"),
			"Limit -1":                 queue.New(b, "jobs", &queue.Options{Limit: -1}).Put(t.Context(), "x"),
			"Value":                    queue.New(b, "jobs", &queue.Options{Options: elect.Options{Value: "x"}}).Put(t.Context(), "x"),
			"ID":                       func() error { _, err := named(b, "two\nlines").Take(t.Context()); return err }(),
		} {
			want(t, err, backend.ErrInvalid)
			if !strings.Contains(fmt.Sprint(err), what) {
				t.Errorf("%v does not say %s", err, what)
			}
		}
		bad := queue.New(b, "no//name", nil)
		_, err := bad.Take(t.Context())
		want(t, err, backend.ErrInvalid)
		_, err = bad.TryTake(t.Context())
		want(t, err, backend.ErrInvalid)
		_, err = bad.Len(t.Context())
		want(t, err, backend.ErrInvalid)
		_, err = bad.List(t.Context())
		want(t, err, backend.ErrInvalid)
		if n := must[int](t)(q.Len(t.Context())); n != 1 {
			t.Errorf("%d items stand, want the one that is allowed", n)
		}
	})
}

// What is no item or no claim is named, and is left alone.
func TestForeignMembers(t *testing.T) {
	for name, join := range map[string]func(context.Context, backend.Session) (backend.Member, error){
		"candidate among the items": func(ctx context.Context, s backend.Session) (backend.Member, error) {
			return s.Join(ctx, "jobs-items", strings.Repeat("x", 26)+"\nx")
		},
		"other item": func(ctx context.Context, s backend.Session) (backend.Member, error) {
			return s.Append(ctx, "jobs-items", "x")
		},
		"candidate among the claims": func(ctx context.Context, s backend.Session) (backend.Member, error) {
			return s.Join(ctx, "jobs-claims", "x\ny")
		},
		"reader among the claims": func(ctx context.Context, s backend.Session) (backend.Member, error) {
			return s.JoinShared(ctx, "jobs-claims", "x")
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *memory.Coordinator) {
				q := of(t, c, "a")
				put(t, q, "one")
				s := must[backend.Session](t)(client(t, c, "stranger").Session(t.Context()))
				m := must[backend.Member](t)(join(t.Context(), s))
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
type wrapped struct {
	backend.Backend
	wrap func(backend.Session) backend.Session
}

func (b wrapped) Session(ctx context.Context) (backend.Session, error) {
	s, err := b.Backend.Session(ctx)
	if err != nil {
		return nil, err
	}
	return b.wrap(s), nil
}

// Of methods with the same name the one that is embedded less deeply counts.
type (
	rest         struct{ deep }
	deep         struct{ backend.Session }
	withoutItems struct {
		backend.NoItems
		rest
	}
	withoutShares struct {
		backend.NoShares
		rest
	}
)

// Where the backend lacks something, it is said so, also by a call that would wait for ever.
func TestLackingBackends(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		b := client(t, c, "a")
		unsupported := func(err error, what string) {
			t.Helper()
			want(t, err, errors.ErrUnsupported)
			if !strings.Contains(fmt.Sprint(err), what) || !strings.Contains(fmt.Sprint(err), "use ") {
				t.Errorf("%v does not say what to do", err)
			}
		}
		q := named(wrapped{b, func(s backend.Session) backend.Session { return withoutItems{rest: rest{deep{s}}} }}, "a")
		unsupported(q.Put(ctx, "one"), "no items")
		_, err := q.Take(ctx)
		unsupported(err, "no items")
		_, err = q.TryTake(ctx)
		unsupported(err, "no items")

		q = named(wrapped{b, func(s backend.Session) backend.Session { return withoutShares{rest: rest{deep{s}}} }}, "a")
		put(t, q, "one")
		_, err = q.Take(ctx)
		unsupported(err, "no shared members")
		lists(t, named(b, "a"), "one")
		abandoned(t, c)
	})
}

// Done of what is lost ends the work here too: nobody is warned that it goes on.
func TestDoneReleasesWhatIsLost(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		b, log := client(t, c, "a"), new(strings.Builder)
		q := queue.New(b, "jobs", &queue.Options{Options: elect.Options{Logger: slog.New(slog.NewTextHandler(log, nil))}})
		put(t, q, "one")
		item := takes(t, q, "one")
		b.Expire()
		<-item.Context().Done()
		want(t, item.Done(t.Context()), queue.ErrLost)
		time.Sleep(time.Hour)
		if strings.Contains(log.String(), "WARN") {
			t.Errorf("the log says %s", log)
		}
	})
}
