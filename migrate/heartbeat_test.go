package migrate_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/migrate"
)

// Round trips to the two coordinators, by which a heartbeat says of which it is.
var roundTrips = [2]time.Duration{4 * time.Millisecond, 10 * time.Millisecond}

// beats counts heartbeats.
type beats struct {
	w  *world
	mu sync.Mutex
	n  [2]int // by side
}

func (b *beats) trace(ev trace.Event) {
	if ev.Kind != trace.Heartbeat {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for side, d := range roundTrips {
		if ev.RoundTrip == d {
			b.n[side]++
			if ev.Slack < ttl/2 || ev.Slack > 2*ttl/3 {
				b.w.t.Errorf("a heartbeat with a slack of %v; want nearly two thirds of %v", ev.Slack, ttl)
			}
			return
		}
	}
	b.w.t.Errorf("a heartbeat of neither coordinator: %+v", ev)
}

// tells checks of which sides heartbeats are told from now on: about three in a session time, from each.
func (b *beats) tells(when string, want [2]bool) {
	b.w.t.Helper()
	time.Sleep(ttl) // what happened before is told
	b.mu.Lock()
	b.n = [2]int{}
	b.mu.Unlock()
	time.Sleep(2 * ttl)
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	for side, told := range want {
		if n := b.n[side]; told && (n < 5 || n > 7) || !told && n != 0 {
			b.w.t.Errorf("%s: told of %v heartbeats of the old and the new coordinator in two session times; want some: %v", when, b.n, want)
			return
		}
	}
}

// both is a process that knows both coordinators, and its clients there.
func (w *world) both(name string) (*migrate.Backend, [2]*memory.Backend) {
	b, sub := w.backend(onBoth, name)
	for side, d := range roundTrips {
		sub[side].Delay(d/2, d/2)
	}
	w.t.Cleanup(func() { b.Close() })
	return b.(*migrate.Backend), sub
}

// A process hears of the heartbeats by which its session lives, and of no others.
func TestHeartbeatsOfAMigration(t *testing.T) {
	inWorld(t, func(w *world) {
		op := w.begun(onBoth)
		leader, sub := w.both("leader")
		led := &beats{w: w}
		term, err := elect.New(leader, election, &elect.Options{Trace: led.trace}).Campaign(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		waiter, _ := w.both("waiter")
		waited := &beats{w: w}
		w.wg.Go(func() {
			term, err := elect.New(waiter, election, &elect.Options{Trace: waited.trace}).Campaign(w.ctx)
			if err == nil {
				term.Resign(w.ctx)
			}
		})
		led.tells("who leads by both", [2]bool{true, true})
		waited.tells("who waits on the old one", [2]bool{true, false})

		w.do(op.Cutover, migrate.Moved)
		led.tells("who leads by the new one", [2]bool{false, true})
		waited.tells("who waits on the new one", [2]bool{false, true})

		// Another election, which has not moved, on another session with the old one.
		const another = "another"
		if _, err := op.Begin(w.ctx, another); err != nil {
			t.Fatal(err)
		}
		sub[0].Expire()
		second, err := elect.New(leader, another, nil).Campaign(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := term.Check(); err != nil {
			t.Fatalf("the term has ended: %v", err)
		}
		led.tells("who leads by both again", [2]bool{true, true})

		if err := second.Resign(w.ctx); err != nil {
			t.Error(err)
		}
		if err := term.Resign(w.ctx); err != nil {
			t.Error(err)
		}
		led.tells("who has left", [2]bool{})
	})
}

// A session tells all who ask, each until it has enough.
func TestHeartbeatsAreToldToAllWhoAsk(t *testing.T) {
	inWorld(t, func(w *world) {
		w.begun(onBoth)
		b, _ := w.both("a")
		s, m := leading(w.ctx, t, b)
		h := s
		var mu sync.Mutex
		told := map[string]int{}
		count := func(who string) func(backend.Heartbeat) {
			return func(backend.Heartbeat) {
				mu.Lock()
				defer mu.Unlock()
				told[who]++
			}
		}
		stop, stopOther := h.TraceHeartbeats(count("one")), h.TraceHeartbeats(count("other"))
		time.Sleep(ttl)
		synctest.Wait()
		stop()
		synctest.Wait()
		mu.Lock()
		one, other := told["one"], told["other"]
		mu.Unlock()
		if one == 0 || one != other {
			t.Errorf("one was told %d times, the other %d times; want the same", one, other)
		}
		time.Sleep(ttl)
		synctest.Wait()
		stopOther()
		mu.Lock()
		defer mu.Unlock()
		if told["one"] != one || told["other"] == other {
			t.Errorf("after one has stopped: one %d times, the other %d; before %d and %d", told["one"], told["other"], one, other)
		}
		if err := s.Leave(w.ctx, m); err != nil {
			t.Error(err)
		}
	})
}

// The margin of a candidacy fits both coordinators, also after another election of the process has moved.
func TestMarginAfterAnotherHasMoved(t *testing.T) {
	inWorld(t, func(w *world) {
		w.c[0] = memory.New(&memory.Options{TTL: 5 * time.Second})
		w.c[1] = memory.New(&memory.Options{TTL: time.Minute, Index: 500})
		op, b := w.begun(onBoth), migrate.New(w.c[0].Client("p"), w.c[1].Client("p"), &migrate.Options{From: oldURL, To: newURL, Begin: true})
		defer b.Close()
		ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
		defer cancel()
		for _, name := range []string{election, "another"} {
			term, err := elect.New(b, name, nil).Campaign(ctx)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if name == election {
				w.do(op.Cutover, migrate.Moved)
			}
			defer term.Resign(w.ctx)
		}
	})
}
