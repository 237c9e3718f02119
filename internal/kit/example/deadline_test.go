package example

import (
	"fmt"
	"time"

	"github.com/succession-dev/succession/internal/backoff"
)

// The server ends a session a TTL after the newest request that named it has come. No
// request comes before it is sent: a TTL after the newest answered one was sent, the server
// cannot have ended the session yet. That is the deadline ([session.send]). It is kept ahead
// for every session, whether it stands in a line or not, and when it has passed the session
// is over.

func (s *session) Deadline() time.Time { return s.lease.Deadline() }

func (s *session) TTL() time.Duration { return s.b.ttl }

// MaxMargin leaves a quarter of the TTL for slow answers, beside that between heartbeats.
func (s *session) MaxMargin() time.Duration { return s.b.ttl / 2 }

// over returns why the session is over, and nil while it is not.
func (s *session) over() error {
	if s.lease.Left() > 0 {
		return nil
	}
	return fmt.Errorf("the server has not answered for %v", s.b.ttl)
}

// keepAlive sends a heartbeat where no request of the last quarter of a TTL was answered.
func (s *session) keepAlive() {
	for backoff.Sleep(s.Context(), s.lease.Left()-s.b.ttl*3/4) == nil {
		_, _ = s.do(s.Context(), repeat, "renew", request{}) // an error has ended the session
	}
}
