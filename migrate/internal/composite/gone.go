package composite

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/internal/again"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/migrate/internal/protocol"
)

// Gone blocks until m has gone; see [backend.Session]. A leader that waits for its own member waits
// for its members on both coordinators, and meanwhile does the cutover when an operator asks for
// it.
func (s *session) Gone(ctx context.Context, m backend.Member) (err error) {
	defer s.told("gone", m.Line, &err)
	c := s.owned(m)
	if c == nil {
		return s.strangerGone(ctx, m)
	}
	wait := backoff.New(ctx)
	for {
		st := c.now()
		sd := st.side()
		part, err := s.use(sd)
		if err != nil {
			return err
		}
		switch {
		case st.at[sd].Key == "":
			return nil
		case st.isFromOnly():
			return s.goneOrBegun(ctx, c)
		case sd == protocol.To && !st.mayBeGated() || st.at[protocol.To].Key == "":
			return part.Gone(ctx, st.at[sd])
		}
		gone := false
		if sd == protocol.To {
			gone, err = s.goneOrOpened(ctx, c)
		} else {
			var asked bool
			if asked, err = s.goneOrAsked(ctx, c); err != nil || !asked {
				return err
			}
			gone, err = s.goneOrObeyed(ctx, c)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if gone {
			return nil
		}
		if err != nil {
			s.log.Warn("could not do what the record asks for, trying again", "election", c.line, "err", err)
			if err := wait.Sleep(ctx); err != nil {
				return err
			}
			continue
		}
		wait.Reset()
	}
}

// strangerGone waits for a member that this session did not join. Only a candidacy that is first on
// From waits on To, and the wait ends with its patience.
func (s *session) strangerGone(ctx context.Context, m backend.Member) error {
	line := m.Line
	m, sd := untag(m)
	part, err := s.use(sd)
	if err != nil {
		return err
	}
	if until := s.patientUntil(line); sd == protocol.To && !until.IsZero() {
		patient, cancel := context.WithDeadline(ctx, until)
		defer cancel()
		if err = part.Gone(patient, m); patient.Err() != nil && ctx.Err() == nil {
			return nil // the next Ahead tells
		}
		return err
	}
	return part.Gone(ctx, m)
}

// patientUntil returns when the next of the session's candidacies in the line loses its
// patience; zero for never. One that has lost it does not count: Ahead has told it, and
// it may stay for as long as From cannot be reached. If it counted, the others would look without a pause.
func (s *session) patientUntil(line string) (until time.Time) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.candidacies {
		if c.line == line && c.st.until.After(now) && (until.IsZero() || c.st.until.Before(until)) {
			until = c.st.until
		}
	}
	return until
}

// goneOrBegun is for a candidacy that is on From alone because the migration was aborted. It blocks
// until its member has gone, or the migration was begun again: then the next Ahead says that it has
// to join again. It reports that once: members of this process that wait behind it wait on, until
// its leader has left.
func (s *session) goneOrBegun(ctx context.Context, c *candidacy) error {
	st, from := c.now(), s.part(protocol.From)
	m := st.at[protocol.From]
	if st.state == outdated {
		return from.Gone(ctx, m)
	}
	err := again.Either(ctx,
		func(ctx context.Context) error { return from.Gone(ctx, m) },
		func(ctx context.Context) error {
			if s.begunAgain(ctx, c) != nil {
				<-ctx.Done() // the next Gone looks at it again
				return context.Cause(ctx)
			}
			c.change((*standing).begunAgain)
			return nil
		})
	if c.now().state == outdated {
		return nil
	}
	return err
}

// begunAgain blocks until To's record asks for a member on both coordinators, for a migration with
// another ID than the aborted one: a server that lags behind may still show that one.
func (s *session) begunAgain(ctx context.Context, c *candidacy) error {
	aborted := c.now().aborted
	return s.untilTo(ctx, c.line, func(h header.Header) bool {
		phase, _ := s.route.PhaseByTo(h)
		return phase.NeedsBoth() && h.Migration.ID != aborted
	})
}

// untilTo blocks until is returns true for To's record. It passes over a record that cannot be
// read.
func (s *session) untilTo(ctx context.Context, line string, is func(header.Header) bool) error {
	var seen backend.Version
	for {
		r, err := s.to().Watch(ctx, line, seen)
		if err != nil {
			return err
		}
		seen = r.Version
		if h, err := header.Parse(r.Value); err == nil && is(h) {
			return nil
		}
	}
}

// goneOrAsked blocks until one of the candidacy's two members has gone, or To's record asks
// for the seal, says that it has been set, or says that the migration was aborted.
func (s *session) goneOrAsked(ctx context.Context, c *candidacy) (asked bool, err error) {
	m := c.now().at
	if m[protocol.From].Key == "" || m[protocol.To].Key == "" {
		return true, nil
	}
	from, to := s.part(protocol.From), s.to()
	i, err := again.First(ctx,
		func(ctx context.Context) error { return from.Gone(ctx, m[protocol.From]) },
		func(ctx context.Context) error {
			err := to.Gone(ctx, m[protocol.To])
			if err == nil {
				c.change((*standing).lose)
			}
			return err
		},
		func(ctx context.Context) error {
			return s.untilTo(ctx, c.line, func(h header.Header) bool {
				return h.Migration.Step == protocol.StepAsked || h.Migration.Step == protocol.StepMoved || h.Sealed != ""
			})
		})
	return i == 2 && err == nil, err
}

// goneOrObeyed does what To's record asks for. It gives that up when one of the candidacy's members
// has gone, because the other coordinator may be slow to answer. From the seal on, only To says who
// leads.
func (s *session) goneOrObeyed(ctx context.Context, c *candidacy) (gone bool, err error) {
	goes := func(sd protocol.Side) func(context.Context) error {
		part, m := s.part(sd), c.now().at[sd]
		return func(ctx context.Context) error {
			if part.Gone(ctx, m) != nil || sd == protocol.From && s.sealing(ctx, c) {
				<-ctx.Done()
				return context.Cause(ctx)
			}
			if sd == protocol.To {
				c.change((*standing).lose)
			}
			return nil
		}
	}
	i, err := again.First(ctx, goes(protocol.From), goes(protocol.To),
		func(ctx context.Context) error { return s.obey(ctx, c) })
	return i < 2, err
}

// sealing reports whether the candidacy's member on From is the seal by now, and waits for a seal
// that is under way: a member that is pinned may look like one that has gone.
func (s *session) sealing(ctx context.Context, c *candidacy) bool {
	if c.writing.take(ctx) == nil {
		defer c.writing.release()
	}
	if ctx.Err() != nil || c.now().side() == protocol.To {
		return true
	}
	own, _ := s.isSeal(ctx, c)
	return own // if it could not look, Ahead tells
}

// WatchPlace waits for the member in front, and asks again once in a session time, because m may
// have to wait on either coordinator; see [backend.Session]. A candidacy that waits in the line that it has joined
// wakes, too, when the one in front is pinned: then the election moves, and who leaves the line tells the next.
func (s *session) WatchPlace(ctx context.Context, m backend.Member, p *backend.Place) error {
	c := s.owned(m)
	front, sd := untag(p.Ahead)
	if c == nil || p.First || sd != c.now().side() {
		return again.WatchPlace(ctx, s, m, p)
	}
	part, err := s.use(sd)
	if err == nil {
		there := *p
		there.Ahead = front
		err = again.ForAWhile(ctx, s, backoff.JitterOf(ctx), func(ctx context.Context) error {
			return part.WatchPlace(ctx, c.now().at[sd], &there)
		})
	}
	if err != nil && !errors.Is(err, backend.ErrSealed) && !errors.Is(err, backend.ErrNotMember) && !errors.Is(err, backend.ErrDenied) {
		s.told("watch place", m.Line, &err)
		return err
	}
	return cmp.Or(again.Ahead(ctx, s, m, p), err)
}
