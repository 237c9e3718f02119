package wire

import (
	"time"

	"github.com/succession-dev/succession/internal/clock"
)

// touches says from when a connection's deadline counts.
//
// A server that is cut off from the ensemble's leader answers pings and reads for
// syncLimit ticks, while the leader ends the session: an answer alone proves
// nothing. The rule is therefore: when a quorum write is acknowledged that was
// sent at s, the deadline counts from the newest request that had been answered
// at s - relay. Its server had noted it by then. In the time relay the leader
// asks each server at least once which sessions it has heard from (Leader.java:
// every half tick), and the server answers on the same stream on which it then
// forwards the write. So the leader that committed the write had heard of that
// request before.
//
// The connect request needs no such time: the leader itself renews the session
// for it (Leader.revalidateSession, PrepRequestProcessor createSession).
type touches struct {
	relay   time.Duration
	connect clock.Instant // when the connect request was sent
	list    []touch       // oldest first
}

// defaultRelay returns the relay time for a session of the given time, which is at least
// two ticks (minSessionTimeout by default): a leader that asks every half tick may be a
// tenth of a tick late. It costs nothing: the newest heartbeat that counts is the one a
// third of a session before, as it would be with a quarter.
func defaultRelay(ttl time.Duration) time.Duration { return ttl * 3 / 10 }

// A touch is a request that was answered.
type touch struct{ sent, answered clock.Instant }

// maxTouches bounds the list. Touches closer together than an eighth of relay are
// taken as one, so that many calls do not push out the one that is needed.
const maxTouches = 32

// answered notes a request that was sent at sent and answered at at.
func (t *touches) answered(sent, at clock.Instant) {
	if n := len(t.list); n > 0 && at.Sub(t.list[n-1].answered) < t.relay/8 {
		return
	}
	if len(t.list) == maxTouches {
		t.list = append(t.list[:0], t.list[1:]...)
	}
	t.list = append(t.list, touch{sent, at})
}

// anchor returns from when the deadline counts after a quorum write that was sent
// at sent has been acknowledged.
func (t *touches) anchor(sent clock.Instant) clock.Instant {
	for i := len(t.list) - 1; i >= 0; i-- {
		if sent.Sub(t.list[i].answered) >= t.relay {
			return t.list[i].sent
		}
	}
	return t.connect
}
