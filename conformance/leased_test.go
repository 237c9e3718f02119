package conformance_test

import (
	"context"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/clock"
	"github.com/succession-dev/succession/backend/kit/lease"
)

// A leased backend adds a lease to the sessions of a backend without a session time. The lease
// ends them by the client's own clock.
type leased struct {
	backend.Backend
	ttl time.Duration

	mu  sync.Mutex
	now *leasedSession
}

func (b *leased) Session(ctx context.Context) (backend.Session, error) {
	s, err := b.Backend.Session(ctx)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.now == nil || b.now.Session != s {
		b.now = &leasedSession{Session: s, ttl: b.ttl}
		b.now.lease.Extend(clock.Now(), b.ttl)
		b.now.lease.Hold(true)
		go b.now.keep()
	}
	return b.now, nil
}

type leasedSession struct {
	backend.Session
	ttl   time.Duration
	lease lease.Lease
}

// keep extends the lease until its deadline has passed, or the session has ended.
func (s *leasedSession) keep() {
	defer s.lease.End()
	beat := time.NewTicker(s.ttl / 3)
	defer beat.Stop()
	for s.lease.Extend(clock.Now(), s.ttl) {
		select {
		case <-beat.C:
		case <-s.Done():
			return
		}
	}
	s.Session.Close(context.Background())
}

func (s *leasedSession) TTL() time.Duration       { return s.ttl }
func (s *leasedSession) MaxMargin() time.Duration { return s.ttl / 2 }
func (s *leasedSession) Deadline() time.Time      { return s.lease.Deadline() }
