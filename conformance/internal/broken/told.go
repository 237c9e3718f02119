package broken

import (
	"context"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/election"
	"github.com/succession-dev/succession/elect"
)

var toldFlaws = []Flaw{
	{
		Name:    "released first",
		Breaks:  "G7: a session that is closed is released at the coordinator before it has ended here",
		Must:    "G7.released",
		May:     "L5 L6",
		session: releasedFirst,
	},
	{
		Name:     "looks once in a while",
		Breaks:   "G7: a leader has no watches, it looks for its member and its election's record once in a session time",
		Must:     "G7.removed G7.dropped G7.asked",
		May:      "G8.waiter-removed G10.asked Fault",
		election: candidates(func(c *candidate) backend.Session { return &looksOnceInAWhile{c} }),
	},
	{
		Name:     "blind to its place",
		Breaks:   "G7: a leader does not look after its own member",
		Must:     "G7.removed G7.dropped",
		May:      "G8.waiter-removed Fault G7.asked G10.asked",
		election: candidates(func(c *candidate) backend.Session { return &blind{c} }),
	},
	{
		Name:   "no margin",
		Breaks: "G7: a term ends at its session's deadline, and not a margin before it",
		Must:   "G7.margin G7.longest",
		election: func(b backend.Backend, name string, o *elect.Options) election.Election {
			narrow := elect.Options{Margin: 1}
			if o != nil {
				narrow = *o
				narrow.Margin = 1
			}
			return election.New(b, name, &narrow)
		},
	},
}

type looksOnceInAWhile struct{ *candidate }

func (s *looksOnceInAWhile) Gone(ctx context.Context, m backend.Member) error {
	if m != s.own {
		return s.Session.Gone(ctx, m)
	}
	return s.idle(ctx)
}

func (s *looksOnceInAWhile) Watch(ctx context.Context, name string, after backend.Version) (backend.Record, error) {
	if after == 0 {
		return s.Session.Watch(ctx, name, after)
	}
	return backend.Record{}, s.idle(ctx)
}

type blind struct{ *candidate }

func (s *blind) Gone(ctx context.Context, m backend.Member) error {
	if m != s.own {
		return s.Session.Gone(ctx, m)
	}
	return s.idle(ctx)
}

func (s *blind) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	if s.leads {
		return backend.Place{First: true}, nil
	}
	return s.candidate.Ahead(ctx, m)
}

// releasedFirst returns a session that its client believes alive for a little longer than it lives.
func releasedFirst(b *Backend, s backend.Session) backend.Session {
	return endsLate(s, func() {
		<-s.Done()
		select {
		case <-time.After(s.TTL() / 100):
		case <-b.release:
		}
	})
}
