package broken

import (
	"context"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

var lineFlaws = []Flaw{
	{
		Name:    "look at the line now and then",
		Short:   true,
		Breaks:  "L3: WatchLine looks once in a TTL, and does not watch",
		Must:    "L3.line Barrier.opens",
		May:     "G10 L3.line-crash",
		session: func(_ *Backend, s backend.Session) backend.Session { return &lineNowAndThen{s} },
	},
	{
		Name:    "joins alone",
		Breaks:  "L3: WatchLine does not see that somebody has left",
		Must:    "L3.line L3.line-past L3.line-crash Task.workers",
		session: func(_ *Backend, s backend.Session) backend.Session { return &joinsAlone{s} },
	},
	{
		Name:    "from now on",
		Breaks:  "L3: WatchLine waits for a change after its call, whatever has changed before",
		Must:    "L3.line-past",
		May:     "L3.line G10",
		session: func(_ *Backend, s backend.Session) backend.Session { return &fromNowOn{s} },
	},
	{
		Name:    "restless line",
		Breaks:  "L3: WatchLine returns soon in any case",
		Must:    "L3.line Group.woken",
		May:     "L3.line-crash L5.blocked Records.watch-cancel G9.blocked",
		session: func(_ *Backend, s backend.Session) backend.Session { return &restlessLine{s} },
	},
	{
		Name:    "line read by member",
		Breaks:  "L3: WatchLine asks for each member of the line",
		Must:    "Group.cost",
		session: func(_ *Backend, s backend.Session) backend.Session { return &lineByMember{s} },
	},
}

// linger waits for d, or until ctx or the session ends.
func linger(ctx context.Context, s backend.Session, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.Done():
		return s.Err()
	}
}

type lineByMember struct{ backend.Session }

func (s *lineByMember) WatchLine(ctx context.Context, line string, after backend.Line) (backend.Line, error) {
	l, err := s.Session.WatchLine(ctx, line, after)
	for range l.Members {
		if _, err := s.Head(ctx, line); err != nil {
			return l, err
		}
	}
	return l, err
}

type lineNowAndThen struct{ backend.Session }

func (s *lineNowAndThen) WatchLine(ctx context.Context, line string, after backend.Line) (backend.Line, error) {
	for {
		l, err := s.Line(ctx, line)
		if err != nil || !kit.SameMembers(l, after) {
			return l, err
		}
		if err := linger(ctx, s, s.TTL()); err != nil {
			return backend.Line{}, err
		}
	}
}

type joinsAlone struct{ backend.Session }

func (s *joinsAlone) WatchLine(ctx context.Context, line string, after backend.Line) (backend.Line, error) {
	for known := after; ; {
		l, err := s.Session.WatchLine(ctx, line, known)
		if n := len(l.Members); err != nil || n > 0 && (len(after.Members) == 0 || l.Members[n-1].Position > after.Members[len(after.Members)-1].Position) {
			return l, err
		}
		known = l
	}
}

type fromNowOn struct{ backend.Session }

func (s *fromNowOn) WatchLine(ctx context.Context, line string, _ backend.Line) (backend.Line, error) {
	l, err := s.Line(ctx, line)
	if err != nil {
		return l, err
	}
	return s.Session.WatchLine(ctx, line, l)
}

type restlessLine struct{ backend.Session }

func (s *restlessLine) WatchLine(ctx context.Context, line string, after backend.Line) (backend.Line, error) {
	bounded, cancel := context.WithTimeout(ctx, s.TTL()/20)
	defer cancel()
	l, err := s.Session.WatchLine(bounded, line, after)
	if bounded.Err() != nil && ctx.Err() == nil {
		return s.Line(ctx, line)
	}
	return l, err
}
