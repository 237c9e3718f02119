package kubernetes

import (
	"errors"
	"fmt"
	"time"

	"github.com/succession-dev/succession/backend/kit/backoff"
)

// Deadline lies a TTL after the newest renewal that was answered was sent; the package comment says why nobody ends the session
// before that. Every session keeps it in the future, whether it has a member in line or not. Beside client-go it is that of a lock
// which the session holds, if that is earlier.
func (s *session) Deadline() time.Time { return time.Now().Add(s.left()) }

func (s *session) TTL() time.Duration { return s.b.o.TTL }

// MaxMargin leaves a quarter of the TTL between renewals, and another for one that is answered slowly; see [backend.Session].
func (s *session) MaxMargin() time.Duration { return s.b.o.TTL / 2 }

// over returns why the session is over once its deadline has passed, and nil before that.
func (s *session) over() error {
	if s.lease.Left() > 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unrenewed != nil {
		return fmt.Errorf("the API server has confirmed no renewal for %v: %v", s.b.o.TTL, s.unrenewed)
	}
	return fmt.Errorf("the API server has confirmed no renewal for %v", s.b.o.TTL)
}

// renew renews the session when a quarter of its time has passed since it was last written.
func (s *session) renew() {
	pause, sick := s.b.o.backoff(), 0
	var versions [3]int64 // after the last renewals, the newest first
	for {
		d := s.lease.Left() - s.b.o.TTL*3/4
		if d <= 0 {
			err := s.write(s.Context(), "")
			s.mu.Lock()
			s.unrenewed = err
			s.mu.Unlock()
			if err != nil {
				if why := (*sickError)(nil); errors.As(err, &why) {
					if sick++; sick%2 == 0 {
						s.b.wire.conns.CloseAll() // another API server may be at the same address
					}
				}
				d = pause.Failed(err)
			} else {
				sick = 0
				pause.Reset()
				s.edit.Lock()
				now, _ := versionOf(s.version)
				s.edit.Unlock()
				versions = [3]int64{now, versions[0], versions[1]}
				s.hub.prove(versions[2])
				d = s.lease.Left() - s.b.o.TTL*3/4
			}
		}
		if backoff.Sleep(s.Context(), max(d, time.Millisecond)) != nil {
			return
		}
	}
}
