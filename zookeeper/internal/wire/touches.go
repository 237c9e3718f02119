package wire

import (
	"time"

	"github.com/succession-dev/succession/backend/kit/clock"
)

// touches says from when the session's deadline counts, by what one connection has seen.
//
// A server that is cut off from the ensemble's leader answers pings and reads for syncLimit
// ticks, while the leader ends the session: an answer alone proves nothing. The rule is
// therefore this. When a quorum write that was sent at the time s is acknowledged, the
// deadline counts from when an earlier request was sent: the newest that had been answered
// at s - relay. The server had noted that request by then. Within the time relay the leader
// asks each server at least once which sessions it has heard from (Leader.java: every half
// tick), and the server answers on the same stream on which it then forwards the write. So
// the leader that committed the write had heard of that request before.
//
// The connect request needs no such time: the leader itself renews the session for it
// (Leader.revalidateSession, PrepRequestProcessor createSession).
type touches struct {
	relay   time.Duration
	connect clock.Instant // when the connect request was sent
	list    []touch       // oldest first
}

// defaultRelay returns the relay time for a session time, which is at least two ticks
// (minSessionTimeout by default). A leader asks every half tick, which is a quarter of that;
// 0.3 allows it to be a tenth of a tick late. The rest costs nothing: the newest heartbeat
// that counts is that of a third of a session time before, as it would be with a quarter.
func defaultRelay(ttl time.Duration) time.Duration { return ttl * 3 / 10 }

// A touch is a request that was answered.
type touch struct{ sent, answered clock.Instant }

// maxTouches bounds the list. A touch that comes less than an eighth of relay after the last
// one is left out, so that many calls do not push out the one that is needed.
const maxTouches = 32

// answered notes a request with the times at which it was sent and answered.
func (t *touches) answered(sent, at clock.Instant) {
	if n := len(t.list); n > 0 && at.Sub(t.list[n-1].answered) < t.relay/8 {
		return
	}
	if len(t.list) == maxTouches {
		t.list = append(t.list[:0], t.list[1:]...)
	}
	t.list = append(t.list, touch{sent, at})
}

// anchor returns from when the deadline counts once a quorum write that was sent at the
// time sent has been acknowledged.
func (t *touches) anchor(sent clock.Instant) clock.Instant {
	for i := len(t.list) - 1; i >= 0; i-- {
		if sent.Sub(t.list[i].answered) >= t.relay {
			return t.list[i].sent
		}
	}
	return t.connect
}
