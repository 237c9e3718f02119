package kit_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
)

// Whoever traces heartbeats is told of each, from when it asks until it stops, and nobody holds up the driver.
func TestHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(0, 0)
		defer c.sessions.Close()
		s := open(t, c).Session.(*session)
		var mu sync.Mutex
		told := make(map[string][]time.Duration)
		var numbers []uint64
		trace := func(name string) func(backend.Heartbeat) {
			return func(h backend.Heartbeat) {
				mu.Lock()
				defer mu.Unlock()
				told[name] = append(told[name], h.RoundTrip)
				numbers = append(numbers, h.Number)
				if h.Slack != h.RoundTrip+1 {
					t.Errorf("%+v", h)
				}
			}
		}
		beat := func(n time.Duration) {
			s.Beat(n, n+1)
			synctest.Wait()
		}
		expect := func(name string, want ...time.Duration) {
			t.Helper()
			if !slices.Equal(told[name], want) {
				t.Errorf("%s was told of %v, want %v", name, told[name], want)
			}
		}
		beat(1)
		stopA := s.TraceHeartbeats(trace("a"))
		beat(2)
		stopB := s.TraceHeartbeats(trace("b"))
		beat(3)
		stopA()
		stopA() // does nothing, as somebody else still traces
		beat(4)
		stopB()
		beat(5)
		stopB()
		stopC := s.TraceHeartbeats(trace("c"))
		beat(6)
		expect("a", 2, 3)
		expect("b", 3, 4)
		expect("c", 6)
		if len(numbers) != 5 || numbers[0] >= numbers[1] || numbers[1] != numbers[2] || numbers[2] >= numbers[3] || numbers[3] >= numbers[4] {
			t.Errorf("the numbers are %v, want one for each heartbeat", numbers)
		}

		// Who is slow misses some, and the driver waits for nobody.
		stopC()
		stop := s.TraceHeartbeats(func(h backend.Heartbeat) {
			time.Sleep(time.Second / 10)
			trace("slow")(h)
		})
		began := time.Now()
		for n := range time.Duration(100) {
			s.Beat(n, n+1)
		}
		if d := time.Since(began); d != 0 {
			t.Errorf("100 heartbeats took %v", d)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if n := len(told["slow"]); n < 16 || n > 17 || told["slow"][0] != 0 {
			t.Errorf("who is slow was told of %v, want of 16, or of 17", told["slow"])
		}
		stop()
	})
}

// The end of the session ends the trace, without a stop.
func TestHeartbeatsOfASessionThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(0, 0)
		s := open(t, c).Session.(*session)
		s.TraceHeartbeats(func(backend.Heartbeat) { t.Error("told of a heartbeat") })
		if err := c.sessions.Close(); err != nil { // and it waits for the goroutine
			t.Error(err)
		}
	})
}
