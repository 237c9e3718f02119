package zookeeper

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
)

// A relay time may fit the TTL that was asked for, and not the one that the servers grant. The session is not opened then: its
// deadline would pass between two heartbeats.
func TestRelayAboveGranted(t *testing.T) {
	for relay, refused := range map[time.Duration]bool{5 * second: true, 2001 * time.Millisecond: true, 2 * second: false} {
		b := open(t, Options{TTL: 10 * second, Relay: relay, Dialer: fakeServerThat(
			func() time.Duration { return 4 * second },
			func(xid, _ int, _ string) []byte { return multiOK(xid) })})
		switch _, err := b.Session(t.Context()); {
		case !refused && err != nil:
			t.Errorf("relay %v: %v", relay, err)
		case refused && (!errors.Is(err, backend.ErrInvalid) || errors.Is(err, backend.ErrSessionEnded) || !strings.Contains(err.Error(), "at most 2s")):
			t.Errorf("relay %v: %v", relay, err)
		}
	}
}

// How long a server may take to greet does not depend on the TTL that is asked for: the servers may grant more.
func TestSlowGreeting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Options{TTL: second / 2, Dialer: fakeServerThat(
			func() time.Duration { time.Sleep(second); return 4 * second },
			func(xid, _ int, _ string) []byte { return multiOK(xid) })})
		if _, err := b.Session(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
