package broken

import (
	"context"
	"sync"

	"github.com/succession-dev/succession/backend"
)

var goneFlaws = []Flaw{
	{
		Name:    "herd",
		Breaks:  "L3: Gone wakes for every departure from the line",
		Must:    "L3.alone G5.one",
		May:     "L2.churn",
		session: func(_ *Backend, s backend.Session) backend.Session { return &herd{s} },
	},
	{
		Name:    "late watch",
		Breaks:  "L3: Gone of a member that has gone waits for its departure",
		Must:    "L3.past L3.same-key",
		May:     "L2 L3 L4.dropped Pin G2 G4 G8 G10 Run",
		session: func(_ *Backend, s backend.Session) backend.Session { return &lateWatch{s} },
	},
	{
		Name:    "nil on cancel",
		Breaks:  "L3: a cancelled Gone returns nil, which means that the member has gone",
		Must:    "L3.cancel L3.again G9.ended-context",
		May:     "L3.many G9.cut-context",
		session: func(_ *Backend, s backend.Session) backend.Session { return &nilOnCancel{s} },
	},
}

type herd struct{ backend.Session }

func (s *herd) Gone(ctx context.Context, m backend.Member) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	line, err := s.Session.Line(ctx, m.Line)
	if err != nil {
		return err
	}
	var waits sync.WaitGroup
	defer waits.Wait()
	defer cancel(nil)
	gone := make(chan error, len(line.Members)+1)
	for _, other := range append(line.Members, m) {
		waits.Go(func() { gone <- s.Session.Gone(ctx, other) })
	}
	return <-gone
}

type lateWatch struct{ backend.Session }

func (s *lateWatch) Gone(ctx context.Context, m backend.Member) error {
	line, err := s.Session.Line(ctx, m.Line)
	if err != nil {
		return err
	}
	for _, o := range line.Members {
		if o.Key == m.Key {
			return s.Session.Gone(ctx, m)
		}
	}
	select { // nothing will come
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.Done():
		return s.Err()
	}
}

type nilOnCancel struct{ backend.Session }

func (s *nilOnCancel) Gone(ctx context.Context, m backend.Member) error {
	err := s.Session.Gone(ctx, m)
	if ctx.Err() != nil {
		return nil
	}
	return err
}
