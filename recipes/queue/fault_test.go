package queue_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/rig/bubble"
	"github.com/succession-dev/succession/internal/view"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/recipes/queue"
)

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
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		s := &slow{Session: bubble.Must[backend.Session](t)(bubble.Client(t, c, "a").Session(t.Context())), begun: make(chan struct{}), until: make(chan struct{})}
		q := named(view.Of(bubble.Client(t, c, "b"), func(backend.Session) backend.Session { return s }), "a")
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

// A waiter whose turn is lost waits on, and gets an item.
func TestTurnIsLost(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		b := bubble.Client(t, c, "a")
		call := take(t.Context(), named(b, "a"))
		c.Remove("jobs-turn", c.Members("jobs-turn")[0].Key)
		time.Sleep(time.Second)
		if n := len(c.Members("jobs-turn")); call.Returned(t) || n != 1 {
			t.Fatalf("%d wait for their turn", n)
		}
		b.Expire()
		time.Sleep(bubble.TTL)
		if n := len(c.Members("jobs-turn")); call.Returned(t) || n != 1 {
			t.Fatalf("%d wait for their turn", n)
		}
		put(t, of(t, c, "producer"), "one")
		if !call.Returned(t) {
			t.Fatal("it does not get the item")
		}
		done(t, call.Value)
		abandoned(t, c)
	})
}

// takeover has a taker of the first item lose its claim in some way, and checks that the next one
// gets that item, in front of what was put later, after the first has lost it.
func takeover(t *testing.T, c *memory.Coordinator, lose func(b *memory.Backend, item *queue.Item)) {
	t.Helper()
	b, q := bubble.Client(t, c, "loses"), of(t, c, "next")
	put(t, q, "one")
	old := takes(t, named(b, "loses"), "one")
	put(t, q, "two")
	two := takes(t, q, "two")
	put(t, q, "three")
	next := take(t.Context(), of(t, c, "quick"))
	if !next.Returned(t) || next.Value.Value != "three" {
		t.Fatal("the free item is not taken")
	}
	waits := take(t.Context(), q)
	lost := make(chan time.Time, 1)
	context.AfterFunc(old.Context(), func() { lost <- time.Now() })
	lose(b, old)
	<-waits.Done
	now := time.Now()
	if !waits.Returned(t) || waits.Value.ID != old.ID || waits.Value.Token() <= old.Token() {
		t.Fatalf("the next has got the item %+v; want that which was lost, %+v, with a larger token", waits.Value, old)
	}
	if at := <-lost; at.After(now) {
		t.Error("another has the item before the claim is lost")
	}
	bubble.Want(t, old.Check(), elect.ErrLost)
	b.Heal()
	bubble.Want(t, old.Done(t.Context()), queue.ErrLost)
	lists(t, q, "one*", "two*", "three*")
	done(t, waits.Value)
	bubble.Want(t, old.Done(t.Context()), queue.ErrLost)
	for _, item := range []*queue.Item{two, next.Value} {
		done(t, item)
	}
	lists(t, q)
	abandoned(t, c)
}

func TestTakerIsKilled(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		takeover(t, c, func(b *memory.Backend, _ *queue.Item) { b.Kill() })
	})
}

func TestTakerIsCutOff(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		takeover(t, c, func(b *memory.Backend, _ *queue.Item) { b.Cut() })
	})
}

func TestTakerExpires(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		takeover(t, c, func(b *memory.Backend, _ *queue.Item) { b.Expire() })
	})
}

func TestClaimIsRemoved(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		takeover(t, c, func(_ *memory.Backend, item *queue.Item) { c.Remove("jobs-claims", item.Term().Member().Key) })
	})
}

// An item that was put is there once, and confirmed once, if answers or requests are lost.
func TestLostAnswers(t *testing.T) {
	for name, lose := range map[string]func(*memory.Backend, ...memory.Op){
		"answer":  (*memory.Backend).LoseAnswer,
		"request": (*memory.Backend).LoseRequest,
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
				b := bubble.Client(t, c, "a")
				q := named(b, "a")
				lose(b, memory.OpAppend)
				put(t, q, "one")
				lists(t, q, "one")
				for _, op := range []memory.Op{memory.OpFree, memory.OpClaim} {
					lose(b, op)
				}
				call := take(t.Context(), q)
				<-call.Done
				if !call.Returned(t) {
					t.Fatal("it is not taken")
				}
				lists(t, q, "one*")
				lose(b, memory.OpRemove)
				done(t, call.Value)
				lists(t, q)

				// So it is for one that waits for its turn, and then for an item.
				for _, op := range []memory.Op{memory.OpJoin, memory.OpAhead, memory.OpLine, memory.OpLeave} {
					lose(b, op)
				}
				call = take(t.Context(), q)
				time.Sleep(bubble.TTL)
				put(t, of(t, c, "producer"), "two")
				<-call.Done
				if !call.Returned(t) {
					t.Fatal("it is not taken")
				}
				done(t, call.Value)
				lists(t, q)
				abandoned(t, c)
			})
		})
	}
}

// While the coordinator cannot be reached, Put and TryTake wait for it.
func TestWaitForTheCoordinator(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		b := bubble.Client(t, c, "a")
		q := named(b, "a")
		put(t, q, "one")
		b.Hide()
		for _, call := range []func(context.Context) error{
			func(ctx context.Context) error { _, err := q.Put(ctx, "two"); return err },
			func(ctx context.Context) error { _, err := q.TryTake(ctx); return err },
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			bubble.Want(t, call(ctx), context.DeadlineExceeded)
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
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		b := bubble.Client(t, c, "a")
		q := named(b, "a")
		put(t, q, "one")
		item := takes(t, q, "one")
		b.CutAnswers()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := item.Done(ctx)
		bubble.Want(t, err, context.DeadlineExceeded)
		if errors.Is(err, queue.ErrLost) || item.Check() != nil {
			t.Errorf("%v: the claim is not lost", err)
		}
		b.Heal()
		done(t, item)
		lists(t, q)
		abandoned(t, c)
	})
}

// Done of what is lost ends the work here too: nobody is warned that it goes on.
func TestDoneReleasesWhatIsLost(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		b, log := bubble.Client(t, c, "a"), new(strings.Builder)
		q := queue.New(b, "jobs", &queue.Options{Options: elect.Options{Logger: slog.New(slog.NewTextHandler(log, nil))}})
		put(t, q, "one")
		item := takes(t, q, "one")
		b.Expire()
		<-item.Context().Done()
		bubble.Want(t, item.Done(t.Context()), queue.ErrLost)
		time.Sleep(time.Hour)
		if strings.Contains(log.String(), "WARN") {
			t.Errorf("the log says %s", log)
		}
	})
}

// Who gives up just as it claims an item, and cannot reach the coordinator, leaves both lines within one ResignTimeout.
func TestGivingUpTakesOneResignTimeout(t *testing.T) {
	bubble.Run(t, func(t *testing.T, _ *memory.Coordinator) {
		c := memory.New(&memory.Options{TTL: time.Hour}) // longer than the test
		b := bubble.Client(t, c, "a")
		q := queue.New(view.Of(b, func(s backend.Session) backend.Session { return cutAfterClaim{s, b} }), "jobs", nil)
		ctx, cancel := context.WithCancelCause(t.Context())
		item := take(ctx, q)
		put(t, of(t, c, "other"), "one")
		synctest.Wait()
		if n := len(c.Members("jobs-claims")); n != 1 {
			t.Fatalf("%d claims stand", n)
		}
		enough, began := errors.New("enough"), time.Now()
		cancel(enough)
		<-item.Done
		bubble.Want(t, item.Err, enough)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// A cutAfterClaim cannot reach the coordinator any more once it has claimed an item, and does not know its place.
type cutAfterClaim struct {
	backend.Session
	b *memory.Backend
}

func (s cutAfterClaim) Claim(ctx context.Context, line, value, record string, item backend.Member) (backend.Joined, error) {
	j, err := s.Session.Claim(ctx, line, value, record, item)
	s.b.Cut()
	return backend.Joined{Member: j.Member}, err
}
