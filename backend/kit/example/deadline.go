package example

import (
	"fmt"
	"time"

	"github.com/succession-dev/succession/backend/kit/backoff"
)

// The server ends a session when a TTL has passed since the newest request that names it has
// arrived. No request arrives before it is sent. So until a TTL after the newest answered
// request was sent, the server cannot have ended the session. That instant is the deadline;
// [session.send] moves it. The driver keeps the deadline of every session ahead, whether the
// session has members or not. When the deadline has passed, the session is over.

func (s *session) Deadline() time.Time { return s.lease.Deadline() }

func (s *session) TTL() time.Duration { return s.b.ttl }

// MaxMargin leaves a quarter of the TTL between heartbeats, and another for slow answers.
func (s *session) MaxMargin() time.Duration { return s.b.ttl / 2 }

// over returns nil until the deadline has passed, and then an error that says so.
func (s *session) over() error {
	if s.lease.Left() > 0 {
		return nil
	}
	return fmt.Errorf("the server has not answered for %v", s.b.ttl)
}

// keepAlive sends a heartbeat if no request of the last quarter of a TTL was answered.
func (s *session) keepAlive() {
	for backoff.Sleep(s.Context(), s.lease.Left()-s.b.ttl*3/4) == nil {
		_, _ = s.do(s.Context(), repeat, "renew", request{}) // if it fails, the session has ended
	}
}
