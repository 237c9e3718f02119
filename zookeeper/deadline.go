package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/backend/kit/clock"
)

// maxBeat bounds the members that one heartbeat checks. If there are more, it checks some
// of them: each also has a watch of its own.
const maxBeat = 64

// keep runs from when the session is established until it ends. It sends heartbeats as
// long as a member stands among the first of a line. It ends the session when the deadline passes
// while a member leads, and when no server has been heard from for two session times.
//
// The library pings by itself. That keeps the session alive, and proves nothing about it
// (see touches.go in internal/wire).
func (s *session) keep() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var last clock.Instant // when the last heartbeat was to be sent
	beating := make(chan struct{}, 1)
	for {
		select {
		case <-s.Context().Done():
			return
		case <-s.kick:
		case <-timer.C:
		}
		ttl := s.TTL()
		silent, problem := s.link.Silence()
		if silent > 2*ttl {
			s.link.Kill(silence(silent, problem))
			return
		}
		wait := 2*ttl - silent
		held, left := s.link.Lease.Held()
		if held && left <= 0 {
			s.link.Kill(errors.New("its deadline has passed: no write was acknowledged in time"))
			return
		}
		if held {
			wait = min(wait, left)
		}
		if near := s.near(); len(near) > 0 {
			interval := ttl / 6
			if last.IsZero() || clock.Since(last) >= interval {
				last = clock.Now()
				s.pulse(beating, near)
			}
			wait = min(wait, interval-clock.Since(last))
		}
		timer.Reset(max(wait, time.Millisecond))
	}
}

func silence(silent time.Duration, problem error) error {
	err := fmt.Errorf("no server was heard from for %v", silent.Round(time.Millisecond))
	if problem != nil {
		err = fmt.Errorf("%w: %w", err, problem)
	}
	return err
}

// pulse sends a heartbeat, unless the last one is still under way.
func (s *session) pulse(beating chan struct{}, paths []string) {
	select {
	case beating <- struct{}{}:
	default:
		return
	}
	if !s.spawn(func() {
		defer func() { <-beating }()
		s.beat(s.Context(), paths)
	}) {
		<-beating
	}
}

// beat sends a heartbeat, again if its connection breaks, and returns when it is answered. It waits
// for no other request. Members that it finds missing are forgotten.
func (s *session) beat(ctx context.Context, paths []string) error {
	ops := make([]any, len(paths))
	for i, p := range paths {
		ops[i] = check(p)
	}
	results, err := kit.Retry(ctx, pauses(), isLost, func(ctx context.Context) ([]zk.MultiResponse, error) {
		c, err := startAtOnce(ctx, s, multiResults(ops))
		if err != nil {
			return nil, err
		}
		return c.wait(ctx)
	})
	if err != nil {
		return err
	}
	for i, r := range results {
		if i < len(paths) && r.Error == zk.ErrNoNode {
			s.mu.Lock()
			o := s.members[paths[i]]
			s.mu.Unlock()
			if o != nil {
				s.forget(o)
			}
		}
	}
	return nil
}

// multiResults is multi for callers to whom a failed operation is an answer like any other.
func multiResults(ops []any) func(*zk.Conn) ([]zk.MultiResponse, error) {
	return func(c *zk.Conn) ([]zk.MultiResponse, error) {
		results, err := c.Multi(ops...)
		if lost := classify(err); errors.Is(lost, errLost) || errors.Is(lost, backend.ErrSessionEnded) {
			return nil, err
		}
		return results, nil
	}
}

// MaxMargin implements [backend.Session]. One heartbeat is sent in each sixth of the TTL,
// and the deadline counts from the newest one that was answered at least the relay time before
// another one was sent. A twelfth of the TTL is held back for a heartbeat with a slow answer. With
// the default relay time MaxMargin is 0.28 of the TTL.
func (s *session) MaxMargin() time.Duration {
	return max(0, s.TTL()*7/12-s.link.Relay())
}

// Deadline implements [backend.Session].
func (s *session) Deadline() time.Time { return s.link.Lease.Deadline() }
