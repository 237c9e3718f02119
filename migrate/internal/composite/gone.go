package composite

import (
	"context"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/backoff"
	"github.com/succession-dev/succession/migrate/internal/protocol"
)

// Gone blocks until m has gone; see [backend.Session]. A leader that waits for its own
// member, as elect has it, waits for both of its members, and meanwhile does the cutover
// when an operator asks for it.
func (s *session) Gone(ctx context.Context, m backend.Member) error {
	return s.told("gone", m.Line, s.gone(ctx, m))
}

func (s *session) gone(ctx context.Context, m backend.Member) error {
	e := s.owned(m)
	if e == nil {
		return s.strangerGone(ctx, m)
	}
	wait := backoff.New(ctx)
	for {
		sd := e.side()
		part, err := s.use(sd)
		if err != nil {
			return err
		}
		mine := e.member(sd)
		if mine.Key == "" {
			return nil
		}
		switch {
		case sd == protocol.From && e.isFromOnly():
			return s.goneOrBegun(ctx, e)
		case sd == protocol.To || e.member(protocol.To).Key == "":
			return part.Gone(ctx, mine)
		}
		asked, err := s.goneOrAsked(ctx, e)
		if err != nil || !asked {
			return err
		}
		gone, err := s.goneOrObeyed(ctx, e)
		if gone {
			return nil
		}
		if err != nil {
			s.b.o.Log.Warn("could not do what the record asks for, trying again", "election", e.line, "err", err)
			if err := wait.Sleep(ctx); err != nil {
				return err
			}
			continue
		}
		wait.Reset()
	}
}

// strangerGone waits for a member that this session did not join. A wait on To is that of
// an entry that is first on From, and ends with its patience.
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

// patientUntil returns when the first of the session's entries in the line loses its
// patience; zero for never.
func (s *session) patientUntil(line string) (until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.entries {
		if e.line == line && !e.until.IsZero() && (until.IsZero() || e.until.Before(until)) {
			until = e.until
		}
	}
	return until
}

// goneOrBegun is for an entry that is on From alone, as the migration was aborted. It
// blocks until its member has gone, or the migration was begun again: then the next Ahead
// says that it has to join again. That is told once: others of this process who wait
// behind it wait on, until its leader has left.
func (s *session) goneOrBegun(ctx context.Context, e *entry) error {
	from, m := s.part(protocol.From), e.member(protocol.From)
	if e.now() == outdated {
		return from.Gone(ctx, m)
	}
	_, err := first(ctx,
		func(ctx context.Context) error { return from.Gone(ctx, m) },
		func(ctx context.Context) error {
			if s.begunAgain(ctx, e) != nil {
				<-ctx.Done() // the next Gone looks at it again
				return context.Cause(ctx)
			}
			e.begunAgain()
			return nil
		})
	if e.now() == outdated {
		return nil
	}
	return err
}

// begunAgain blocks until To's record asks for a member on both coordinators, for another
// migration than the one that was aborted: the record may be read from a server that lags.
func (s *session) begunAgain(ctx context.Context, e *entry) error {
	e.mu.Lock()
	aborted := e.aborted
	e.mu.Unlock()
	return s.untilTo(ctx, e.line, func(h backend.Header) bool {
		phase, _ := s.b.o.Route.PhaseByTo(h)
		return phase.NeedsBoth() && h.Migration.ID != aborted
	})
}

// untilTo blocks until To's record is as says. One that cannot be read says nothing.
func (s *session) untilTo(ctx context.Context, line string, is func(backend.Header) bool) error {
	var seen backend.Version
	for {
		r, err := s.to().Watch(ctx, line, seen)
		if err != nil {
			return err
		}
		seen = r.Version
		if h, err := backend.ParseHeader(r.Value); err == nil && is(h) {
			return nil
		}
	}
}

// goneOrAsked blocks until one of the entry's two members has gone, or To's record asks
// for the seal, says that it has been set, or says that the migration was aborted.
func (s *session) goneOrAsked(ctx context.Context, e *entry) (asked bool, err error) {
	var m [2]backend.Member
	for i := range m {
		if m[i] = e.member(protocol.Side(i)); m[i].Key == "" {
			return true, nil
		}
	}
	from, to := s.part(protocol.From), s.to()
	i, err := first(ctx,
		func(ctx context.Context) error { return from.Gone(ctx, m[protocol.From]) },
		func(ctx context.Context) error {
			err := to.Gone(ctx, m[protocol.To])
			if err == nil {
				e.lose()
			}
			return err
		},
		func(ctx context.Context) error {
			return s.untilTo(ctx, e.line, func(h backend.Header) bool {
				return h.Migration.Step == protocol.StepAsked || h.Migration.Step == protocol.StepMoved || h.Sealed != ""
			})
		})
	return i == 2 && err == nil, err
}

// goneOrObeyed does what To's record asks for, which it gives up when one of the entry's
// members has gone: the other coordinator may be slow to answer. From the seal on it is To
// alone that says who leads.
func (s *session) goneOrObeyed(ctx context.Context, e *entry) (gone bool, err error) {
	goes := func(sd protocol.Side) func(context.Context) error {
		part, m := s.part(sd), e.member(sd)
		return func(ctx context.Context) error {
			if part.Gone(ctx, m) != nil || sd == protocol.From && s.sealing(ctx, e) {
				<-ctx.Done()
				return context.Cause(ctx)
			}
			if sd == protocol.To {
				e.lose()
			}
			return nil
		}
	}
	i, err := first(ctx, goes(protocol.From), goes(protocol.To),
		func(ctx context.Context) error { return s.obey(ctx, e) })
	return i < 2, err
}

// sealing reports whether the entry's member on From is the seal by now, and waits for one
// that is under way: to be pinned may look like having gone.
func (s *session) sealing(ctx context.Context, e *entry) bool {
	if e.writing.take(ctx) == nil {
		defer e.writing.release()
	}
	return ctx.Err() != nil || e.side() == protocol.To || s.checkSeal(ctx, e) == nil
}
