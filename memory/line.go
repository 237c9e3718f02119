package memory

import (
	"context"

	"github.com/succession-dev/succession/backend"
)

// Join adds a member at the end of the line; see [backend.Session]. A lost answer
// is resolved by the call's number, under which the coordinator remembers it. A
// caller whose ctx ends first has not joined: the session removes the member as
// soon as it learns of it.
func (s *session) Join(ctx context.Context, line, value string) (backend.Member, error) {
	err := backend.CheckName(line)
	if err == nil {
		err = backend.CheckValue(value)
	}
	if err != nil {
		return backend.Member{}, wrap(OpJoin, line, err)
	}
	return ask[backend.Member](ctx, s, OpJoin, line, func() *call {
		cl := s.send(OpJoin, lostResolve, func(l *lease) (any, error) {
			m := s.b.c.store.join(line, value, l.id)
			l.members = append(l.members, m)
			return m, nil
		})
		cl.then = func(v any, err error) {
			if cl.abandoned && err == nil {
				s.leave(v.(backend.Member))
			}
		}
		return cl
	})
}

// Ahead says who stands just in front of m; see [backend.Session]. It is one
// request: heartbeats go by themselves.
func (s *session) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	return ask[backend.Place](ctx, s, OpAhead, m.Line, func() *call {
		return s.send(OpAhead, lostAgain, func(*lease) (any, error) {
			return s.b.c.store.ahead(m)
		})
	})
}

// Leave removes m; see [backend.Session]. A member that another session joined is
// refused with [backend.ErrDenied].
func (s *session) Leave(ctx context.Context, m backend.Member) error {
	_, err := ask[any](ctx, s, OpLeave, m.Line, func() *call { return s.leave(m) })
	return err
}

func (s *session) leave(m backend.Member) *call {
	return s.send(OpLeave, lostResolve, func(l *lease) (any, error) {
		return nil, s.b.c.leave(m, l)
	})
}

// Pin makes m permanent and writes its election's record in one step; see
// [backend.Session]. Where m is pinned and the record is h already, nothing is
// left to do, whatever the version. A member that another session joined is
// refused with [backend.ErrDenied].
func (s *session) Pin(ctx context.Context, m backend.Member, h backend.Header, at backend.Version) error {
	_, err := ask[any](ctx, s, OpPin, m.Line, func() *call {
		return s.send(OpPin, lostResolve, func(l *lease) (any, error) {
			err := s.b.c.store.pin(m, l.id, h, at)
			if err == nil {
				l.disown(m)
			}
			return nil, err
		})
	})
	return err
}

// Line returns the whole line in order; see [backend.Session].
func (s *session) Line(ctx context.Context, line string) (backend.Line, error) {
	if err := backend.CheckName(line); err != nil {
		return backend.Line{}, wrap(OpLine, line, err)
	}
	return ask[backend.Line](ctx, s, OpLine, line, func() *call {
		return s.send(OpLine, lostAgain, func(*lease) (any, error) {
			return s.b.c.store.line(line)
		})
	})
}

// Gone blocks until m has gone; see [backend.Session].
func (s *session) Gone(ctx context.Context, m backend.Member) error {
	on := topic{event: eventGone, name: m.Line, at: m.Position}
	_, err := ask[any](ctx, s, OpGone, m.Line, func() *call {
		return s.poll(OpGone, poll{topic: on}, func() (any, error) { return nil, s.b.c.store.gone(m) })
	})
	return err
}

// Joined blocks until somebody stands in the line; see [backend.Session].
func (s *session) Joined(ctx context.Context, line string) error {
	if err := backend.CheckName(line); err != nil {
		return wrap(OpJoined, line, err)
	}
	on := topic{event: eventJoined, name: line}
	_, err := ask[any](ctx, s, OpJoined, line, func() *call {
		return s.poll(OpJoined, poll{topic: on}, func() (any, error) { return nil, s.b.c.store.joined(line) })
	})
	return err
}

// A poll is what a blocking call waits for.
type poll struct {
	topic topic
	after backend.Version // of a record
}

// poll sends a call that the coordinator answers when f no longer says errWait.
// All who wait for the same share one call, and it stays when they go: whoever
// waits for the same again finds it, and it piles nothing up.
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
