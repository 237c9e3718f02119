package kubernetes

import (
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

// renew renews the session when a quarter of its time has passed since it was last written, by this or by something else. As often it
// has the watches prove that they live.
func (s *session) renew() {
	pause := s.b.o.backoff()
	var versions [3]int64 // of the session, a quarter of its time apart, the newest first
	var proved time.Time
	for {
		d := s.lease.Left() - s.b.o.TTL*3/4
		if d <= 0 {
			err := s.write(s.Context(), "")
			s.mu.Lock()
			s.unrenewed = err
			s.mu.Unlock()
			if err != nil {
				d = pause.Failed(err)
			} else {
				pause.Reset()
				d = s.lease.Left() - s.b.o.TTL*3/4
			}
		}
		if now := time.Now(); s.lease.Left() > s.b.o.TTL/2 && now.Sub(proved) >= s.b.o.TTL/4 {
			proved = now
			s.edit.Lock()
			version, _ := versionOf(s.version)
			s.edit.Unlock()
			versions = [3]int64{version, versions[0], versions[1]}
			s.hub.prove(versions[2])
		}
		if backoff.Sleep(s.Context(), max(d, time.Millisecond)) != nil {
			return
		}
	}
}
