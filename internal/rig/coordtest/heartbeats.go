package coordtest

import (
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/trace"
)

// TracesHeartbeats checks that a leader on b is told of its heartbeats: each takes a round trip, and comes
// before the deadline that it moves.
func TracesHeartbeats(t *testing.T, b backend.Backend, election string) {
	t.Helper()
	beats := make(chan trace.Event, 100)
	term, err := elect.New(b, election, &elect.Options{Trace: func(ev trace.Event) {
		if ev.Kind == trace.Heartbeat {
			select {
			case beats <- ev:
			default:
			}
		}
	}}).Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer term.Resign(t.Context())
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		select {
		case ev := <-beats:
			if ev.Member.Key != term.Member().Key || ev.RoundTrip <= 0 || ev.RoundTrip >= s.TTL() || ev.Slack <= 0 || ev.Slack >= s.TTL() {
				t.Errorf("told of a heartbeat of %s after %v with a slack of %v; the session time is %v", ev.Member.Key, ev.RoundTrip, ev.Slack, s.TTL())
			}
		case <-time.After(time.Minute):
			t.Fatal("the leader was told of no heartbeat for a minute")
		}
	}
}
