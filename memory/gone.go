package memory

import (
	"context"
	"slices"

	"github.com/succession-dev/succession/backend"
)

// Gone blocks until m has gone; see [backend.Session].
func (s *session) Gone(ctx context.Context, m backend.Member) error {
	on := topic{event: eventMember, name: m.Line, at: m.Position}
	_, err := ask[any](ctx, s, OpGone, m.Line, nil, func() *call {
		return s.poll(OpGone, poll{topic: on}, func() (any, error) { return nil, s.b.c.store.gone(m) })
	})
	return err
}

// WatchLine blocks until other members stand in the line than in after; see [backend.Session].
func (s *session) WatchLine(ctx context.Context, line string, after backend.Line) (backend.Line, error) {
	on := poll{topic: topic{event: eventLine, name: line}, members: len(after.Members)}
	if on.members > 0 {
		on.last = after.Members[on.members-1].Position
	}
	l, err := ask[backend.Line](ctx, s, OpWatchLine, line, nil, func() *call {
		return s.poll(OpWatchLine, on, func() (any, error) { return s.b.c.store.watchLine(line, after) })
	})
	l.Members = slices.Clone(l.Members) // others may have waited for the same
	return l, err
}

// A poll says what a blocking call waits for.
type poll struct {
	topic   topic
	after   backend.Version // of a record
	members int             // of a line
	last    uint64          // the position of the last of them
	place   backend.Place   // of a member
}

// poll sends a call that the coordinator answers once f no longer returns errWait. All waiters for
// the same thing share one call. It stays when they go, and the next waiter for the same thing
// finds it, so calls do not pile up. An event of one of the others wakes the call too.
func (s *session) poll(op Op, p poll, f func() (any, error), others ...topic) *call {
	if cl := s.polls[p]; cl != nil {
		return cl
	}
	cl := s.send(op, lostAgain, func(*lease) (any, error) { return f() })
	cl.topics = append(others, p.topic)
	cl.then = func(any, error) { delete(s.polls, p) }
	s.polls[p] = cl
	return cl
}
