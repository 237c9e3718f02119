package broken

import (
	"context"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/election"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/view"
)

// A candidate is a session of one attempt to lead, which joins once. The backend below it is sound:
// a flaw here changes only what the candidate makes of its answers.
type candidate struct {
	backend.Session
	campaign context.Context // the context with which Campaign or Run was called
	own      backend.Member  // what it has joined
	leads    bool            // it has been told that it is first
}

func (c *candidate) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	m, err := c.Session.Join(ctx, line, value, record)
	c.own = m.Member
	return m, err
}

func (c *candidate) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := c.Session.Ahead(ctx, m)
	c.leads = c.leads || p.First
	return p, err
}

// idle waits until ctx or the session ends.
func (c *candidate) idle(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.Done():
		return c.Err()
	}
}

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// candidates makes elections whose candidates have sessions with a flaw. Observers and
// operators do not.
func candidates(flaw func(c *candidate) backend.Session) election.Maker {
	return func(b backend.Backend, name string, o *elect.Options) election.Election {
		return &standing{
			Election: election.New(b, name, o),
			stand: func(ctx context.Context) election.Election {
				return election.New(sessions{b, func(s backend.Session) backend.Session {
					return flaw(&candidate{Session: s, campaign: ctx})
				}}, name, o)
			},
		}
	}
}

// A standing is an election that is made anew for each candidate.
type standing struct {
	election.Election
	stand func(ctx context.Context) election.Election
}

func (e *standing) Campaign(ctx context.Context) (election.Term, error) {
	return e.stand(ctx).Campaign(ctx)
}

func (e *standing) Run(ctx context.Context, fn func(context.Context, election.Term) error) error {
	return e.stand(ctx).Run(ctx, fn)
}

// sessions is a backend that wraps its session anew for each caller.
type sessions struct {
	backend.Backend
	wrap func(backend.Session) backend.Session
}

func (b sessions) Session(ctx context.Context) (backend.Session, error) {
	s, err := b.Backend.Session(ctx)
	if err != nil {
		return nil, err
	}
	return &view.Asked{Session: b.wrap(s)}, nil
}

// terms makes elections whose terms are wrapped.
func terms(wrap func(b backend.Backend, t election.Term) election.Term) election.Maker {
	return func(b backend.Backend, name string, o *elect.Options) election.Election {
		return &leading{election.New(b, name, o), func(t election.Term) election.Term { return wrap(b, t) }}
	}
}

type leading struct {
	election.Election
	wrap func(election.Term) election.Term
}

func (e *leading) Campaign(ctx context.Context) (election.Term, error) {
	t, err := e.Election.Campaign(ctx)
	if err != nil {
		return nil, err
	}
	return e.wrap(t), nil
}

func (e *leading) Run(ctx context.Context, fn func(context.Context, election.Term) error) error {
	return e.Election.Run(ctx, func(ctx context.Context, t election.Term) error { return fn(ctx, e.wrap(t)) })
}

// elections makes elections that are wrapped.
func elections(wrap func(e election.Election, b backend.Backend, name string) election.Election) election.Maker {
	return func(b backend.Backend, name string, o *elect.Options) election.Election {
		return wrap(election.New(b, name, o), b, name)
	}
}
