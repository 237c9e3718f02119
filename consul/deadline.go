package consul

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend/kit/clock"
)

// MaxMargin is the TTL minus the third between two renewals, and minus a sixth for a renewal with a
// slow answer; see [backend.Session].
func (s *session) MaxMargin() time.Duration { return s.TTL() / 2 }

// Deadline lies a TTL after the newest renewal that counts was sent; see
// [backend.Session]. Every session keeps it in the future, whether it has a member in
// line or not.
func (s *session) Deadline() time.Time { return s.lease.Deadline() }

// keepAlive renews the session until it ends.
//
// Consul counts twice the TTL from when its leader handled the newest renewal, and a new
// leader counts anew (agent/consul/session_ttl.go). So the TTL from when a renewal was
// sent ends earlier. But every server that believes to be the leader answers a renewal, without a
// quorum. If the answer comes after the present deadline, it proves nothing, and does not count. It
// also does not count if Consul has another leader than when the session was created; see
// [tenancy]. If there are many [ghosts], another session of Consul takes over, too.
//
// An answer is good as long as the session lives, however slow it is. So if a renewal has not been
// answered, the next one goes out beside it, and does not replace it: a server without a leader
// holds requests for up to seven seconds (rpc_hold_timeout).
//
// When something makes the session doubt that it lives, or that its connection works, a renewal
// goes out at once. There is only one such renewal at a time, because queries may break one after
// the other while it is under way.
func (s *session) keepAlive() {
	ttl := s.b.o.TTL
	wait := s.b.o.backoff()
	timer := time.NewTimer(max(0, s.lease.Left()-2*ttl/3))
	defer timer.Stop()
	type answer struct {
		err   error
		early bool // the renewal went out because of a doubt
	}
	answers := make(chan answer)
	var running sync.WaitGroup
	defer running.Wait()
	var newest clock.Instant
	send := func(early bool) {
		sent := clock.Now()
		running.Go(func() {
			err := s.renew(sent)
			select {
			case answers <- answer{err, early}:
			case <-s.Context().Done():
			}
		})
		newest = sent
	}
	doubted := s.doubted // nil while an early renewal is under way: a new doubt waits in s.doubted
	for {
		pause := ttl / 3
		select {
		case <-s.Context().Done():
			return
		case <-doubted:
			doubted = nil
			send(true)
		case <-timer.C:
			send(false)
		case a := <-answers:
			if a.early {
				doubted = s.doubted
			}
			if a.err == nil {
				wait.Reset()
				pause = ttl/3 - clock.Since(newest)
			} else {
				s.b.o.Logger.Warn("the session could not be renewed, trying again", "session", s.present().id, "left", s.lease.Left(), "err", a.err)
				pause = wait.Next()
			}
		}
		timer.Reset(max(0, pause))
	}
}

// renew sends one renewal. If it counts, it moves the deadline.
func (s *session) renew(sent clock.Instant) error {
	ctx, cancel := context.WithTimeout(s.Context(), s.b.o.TTL)
	defer cancel()
	id, begun := s.present().id, time.Now()
	entry, err := s.b.c.renew(ctx, id)
	if err == nil {
		s.connected(begun)
	}
	if err == nil && entry == nil {
		// A server that has only just become the leader may not have read all of its log: it then
		// knows no session from the rest of the log. A consistent read waits for that.
		var known bool
		if known, err = s.b.c.knows(ctx, id); err == nil && !known {
			return s.unknown(id)
		}
		err = cmp.Or(err, errUnsettled)
	}
	var leader string
	if err == nil {
		leader, err = s.b.c.leader(ctx)
	}
	now := s.present()
	switch {
	case err == nil && leader == "":
		err = errUnsettled
	case err == nil && (leader != now.leader || now.moving || id != now.id):
		err = s.relet(ctx, id, leader)
	case err == nil && !s.lease.Extend(sent, s.b.o.TTL):
		return s.Alive() // which ends it
	case err == nil && s.haunted():
		err = s.relet(ctx, id, leader)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = err
	return err
}

// over returns why the session is over once its deadline has passed, and nil before that.
func (s *session) over() error {
	if s.lease.Left() > 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	why := fmt.Errorf("it was last confirmed by Consul more than %v ago", s.b.o.TTL)
	if s.refused != nil {
		why = fmt.Errorf("%w (%v)", why, s.refused)
	}
	return why
}
