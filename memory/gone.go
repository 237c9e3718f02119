package memory

import (
	"context"

	"github.com/succession-dev/succession/backend"
)

// Gone blocks until m has gone; see [backend.Session].
func (s *session) Gone(ctx context.Context, m backend.Member) error {
	on := topic{event: eventGone, name: m.Line, at: m.Position}
	_, err := ask[any](ctx, s, OpGone, m.Line, nil, func() *call {
		return s.poll(OpGone, poll{topic: on}, func() (any, error) { return nil, s.b.c.store.gone(m) })
	})
	return err
}

// Joined blocks until a member stands in the line; see [backend.Session].
func (s *session) Joined(ctx context.Context, line string) error {
	on := topic{event: eventJoined, name: line}
	_, err := ask[any](ctx, s, OpJoined, line, nil, func() *call {
		return s.poll(OpJoined, poll{topic: on}, func() (any, error) { return nil, s.b.c.store.joined(line) })
	})
	return err
}

// A poll says what a blocking call waits for.
type poll struct {
	topic topic
	after backend.Version // of a record
}

// poll sends a call that the coordinator answers once f no longer returns errWait. All who
// wait for the same share one call. It stays when they go, and whoever waits for the same
// again finds it: so calls do not pile up.
func (s *session) poll(op Op, p poll, f func() (any, error)) *call {
	if cl := s.polls[p]; cl != nil {
		return cl
	}
	cl := s.send(op, lostAgain, func(*lease) (any, error) { return f() })
	cl.topic = p.topic
	cl.then = func(any, error) { delete(s.polls, p) }
	s.polls[p] = cl
	return cl
}
