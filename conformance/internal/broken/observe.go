package broken

import (
	"context"
	"iter"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/election"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/internal/header"
)

var observeFlaws = []Flaw{
	{
		Name:     "goes back",
		Breaks:   "G10: after each leader an observer is shown the one before once more",
		Must:     "G10.churn G10.sees G10.expired",
		May:      "Fault",
		election: observers(goesBack),
	},
	{
		Name:     "first tick",
		Breaks:   "G10: an observer looks for the first time when a session time has passed",
		Must:     "G10.sees",
		Short:    true,
		May:      "G9.blocked Fault",
		election: observers(firstTick),
	},
	{
		Name:     "ends with its session",
		Breaks:   "G10: an observation ends with the session that it began in",
		Must:     "G10.expired",
		election: observers(endsWithItsSession),
	},
	{
		Name:     "ends in silence",
		Breaks:   "G10: an observation whose context has ended does not say so",
		Must:     "G10.ends",
		election: observers(endsInSilence),
	},
	{
		Name:   "inherited acknowledgement",
		Breaks: "G10: that a leader has taken up its work is said of the next one, too",
		Must:   "G10.sees",
		election: func(b backend.Backend, name string, o *elect.Options) election.Election {
			return election.New(sessions{b, func(s backend.Session) backend.Session { return &inherited{s} }}, name, o)
		},
	},
	{
		Name:     "line without its leader",
		Breaks:   "G10: Line shows those who wait",
		Must:     "G10.line",
		election: elections(func(e election.Election, _ backend.Backend, _ string) election.Election { return &lineWithoutLeader{e} }),
	},
	{
		Name:   "history without ends",
		Breaks: "G10: the history says who led, and not why that ended",
		Must:   "G10.history",
		election: elections(func(e election.Election, _ backend.Backend, _ string) election.Election {
			return &historyWithoutEnds{e}
		}),
	},
	{
		Name:     "asked for ever",
		Breaks:   "G10: who is asked to resign is whoever leads, and not one leader",
		Must:     "G10.asked",
		election: candidates(func(c *candidate) backend.Session { return &askedForEver{c} }),
	},
	{
		Name:     "obeys any number",
		Breaks:   "G10: a number in the place of a request that is larger than the leader's token asks nobody to resign",
		Must:     "Choice.token",
		election: candidates(func(c *candidate) backend.Session { return &obeysAnyNumber{c} }),
	},
}

// observations is the type of what Observe returns.
type observations = iter.Seq2[elect.State, error]

// observers makes elections with another Observe.
func observers(observe func(ctx context.Context, e election.Election, b backend.Backend) observations) election.Maker {
	return elections(func(e election.Election, b backend.Backend, _ string) election.Election {
		return &observed{e, b, observe}
	})
}

type observed struct {
	election.Election
	b       backend.Backend
	observe func(context.Context, election.Election, backend.Backend) observations
}

func (e *observed) Observe(ctx context.Context) observations { return e.observe(ctx, e.Election, e.b) }

func goesBack(ctx context.Context, e election.Election, _ backend.Backend) observations {
	return func(yield func(elect.State, error) bool) {
		var last elect.State
		for l, err := range e.Observe(ctx) {
			if !yield(l, err) {
				return
			}
			if !last.Vacant() && err == nil && (!yield(last, nil) || !yield(l, nil)) {
				return
			}
			last = l
		}
	}
}

func firstTick(ctx context.Context, e election.Election, b backend.Backend) observations {
	return func(yield func(elect.State, error) bool) {
		s, err := b.Session(ctx)
		if err == nil {
			err = sleep(ctx, s.TTL())
		}
		if err != nil {
			yield(elect.State{}, err)
			return
		}
		e.Observe(ctx)(yield)
	}
}

func endsWithItsSession(ctx context.Context, e election.Election, b backend.Backend) observations {
	return func(yield func(elect.State, error) bool) {
		s, err := b.Session(ctx)
		if err != nil {
			yield(elect.State{}, err)
			return
		}
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		go func() {
			select {
			case <-s.Done():
				cancel(s.Err())
			case <-ctx.Done():
			}
		}()
		e.Observe(ctx)(yield)
	}
}

func endsInSilence(ctx context.Context, e election.Election, _ backend.Backend) observations {
	return func(yield func(elect.State, error) bool) {
		for l, err := range e.Observe(ctx) {
			if ctx.Err() != nil || !yield(l, err) {
				return
			}
		}
	}
}

type inherited struct{ backend.Session }

func (s *inherited) Line(ctx context.Context, line string) (backend.Line, error) {
	l, err := s.Session.Line(ctx, line)
	if err == nil && len(l.Members) > 0 {
		noted(&l.Header, func(h *header.Header) {
			if h.Acknowledged != 0 {
				h.Acknowledged = l.Token(l.Members[0])
			}
		})
	}
	return l, err
}

type lineWithoutLeader struct{ election.Election }

func (e *lineWithoutLeader) Line(ctx context.Context) (elect.State, []elect.Candidate, error) {
	s, line, err := e.Election.Line(ctx)
	return s, line[min(1, len(line)):], err
}

type historyWithoutEnds struct{ election.Election }

func (e *historyWithoutEnds) History(ctx context.Context) ([]operate.Past, error) {
	terms, err := e.Election.History(ctx)
	for i := range terms {
		terms[i].Why = ""
	}
	return terms, err
}

type askedForEver struct{ *candidate }

func (s *askedForEver) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.candidate.Ahead(ctx, m)
	noted(&p.Header, func(h *header.Header) {
		if h.Resign != 0 {
			h.Resign = p.Token
		}
	})
	return p, err
}

type obeysAnyNumber struct{ *candidate }

func (s *obeysAnyNumber) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.candidate.Ahead(ctx, m)
	noted(&p.Header, func(h *header.Header) {
		if p.First && h.Resign > p.Token {
			h.Resign = p.Token
		}
	})
	return p, err
}
