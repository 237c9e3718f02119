package elect_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/memory"
)

// told collects events.
type told struct {
	mu     sync.Mutex
	events []trace.Event
}

func (l *told) trace(ev trace.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, ev)
}

func (l *told) kinds(of ...trace.Kind) (out []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, ev := range l.events {
		if slices.Contains(of, ev.Kind) {
			out = append(out, ev.Kind.String())
		}
	}
	return out
}

func (l *told) all(of trace.Kind) (out []trace.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, ev := range l.events {
		if ev.Kind == of {
			out = append(out, ev)
		}
	}
	return out
}

func TestTraceTellsOfSessions(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		a := client(t, c, "a")
		a.Delay(20*time.Millisecond, 20*time.Millisecond)
		var l told
		e := elect.New(a, "reports", &elect.Options{Trace: l.trace})
		term, err := e.Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(ttl)
		a.Expire()
		<-term.Context().Done()
		term.Resign(t.Context())
		if term, err = e.Campaign(t.Context()); err != nil {
			t.Fatal(err)
		}
		term.Resign(t.Context())
		if term, err = e.Campaign(t.Context()); err != nil {
			t.Fatal(err)
		}
		term.Resign(t.Context())
		got := l.kinds(trace.SessionOpened, trace.Joined, trace.Elected, trace.SessionLost, trace.Ended, trace.Left)
		want := []string{"session opened", "joined", "elected", "session lost", "ended", "left",
			"session opened", "joined", "elected", "ended", "left", "joined", "elected", "ended", "left"}
		if !slices.Equal(got, want) {
			t.Errorf("told of %q\nwant %q", got, want)
		}
		if ev := l.all(trace.SessionOpened)[0]; ev.TTL != ttl {
			t.Errorf("the session was opened with %v, want %v", ev.TTL, ttl)
		}
		if ev := l.all(trace.SessionLost)[0]; !errors.Is(ev.Err, backend.ErrSessionEnded) || ev.Member.Key == "" {
			t.Errorf("the session was lost: %+v", ev)
		}
		beats := l.all(trace.Heartbeat)
		if len(beats) == 0 {
			t.Fatal("told of no heartbeat")
		}
		for _, ev := range beats {
			// A heartbeat is sent a third of the session time after the one before.
			if ev.RoundTrip != 40*time.Millisecond || ev.Slack < ttl/2 || ev.Slack > 2*ttl/3 || ev.Member.Key == "" {
				t.Errorf("heartbeat %+v; want 40ms, with a slack of nearly two thirds of %v", ev, ttl)
			}
		}
		n := len(beats)
		time.Sleep(ttl)
		synctest.Wait()
		if got := len(l.all(trace.Heartbeat)); got > n+1 {
			t.Errorf("told of %d heartbeats after the member had left", got-n)
		}
	})
}

func TestTraceTellsThatTheWorkGoesOn(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		a := client(t, c, "a")
		var l told
		term, err := elect.New(a, "reports", &elect.Options{Trace: l.trace}).Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c.Remove("reports", term.Member().Key)
		<-term.Context().Done()
		time.Sleep(10 * time.Second)
		term.Resign(t.Context())
		time.Sleep(time.Hour)
		var worked []time.Duration
		for _, ev := range l.all(trace.Working) {
			if ev.Token != term.Token() {
				t.Errorf("%+v names another term than %d", ev, term.Token())
			}
			worked = append(worked, ev.Worked.Round(time.Second))
		}
		if want := []time.Duration{time.Second, 3 * time.Second, 7 * time.Second}; !slices.Equal(worked, want) {
			t.Errorf("told after %v, want %v", worked, want)
		}
	})
}

func TestTeeCallsAllInTurn(t *testing.T) {
	var got []string
	name := func(s string) func(trace.Event) {
		return func(ev trace.Event) { got = append(got, s+" "+ev.Kind.String()) }
	}
	trace.Tee(nil, name("a"), nil, name("b"))(trace.Event{Kind: trace.Joined})
	if want := []string{"a joined", "b joined"}; !slices.Equal(got, want) {
		t.Errorf("Tee made %q, want %q", got, want)
	}
	if trace.Tee(nil, nil) != nil {
		t.Error("Tee of nothing is not nil: a Trace would be paid for")
	}
}
