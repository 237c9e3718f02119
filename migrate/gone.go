package migrate

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/backoff"
)

// Gone blocks until m has gone; see [backend.Session]. A leader that waits for its own
// member, as elect has it, waits for both of its members, and meanwhile does the cutover
// when an operator asks for it.
func (s *session) Gone(ctx context.Context, m backend.Member) error {
	return s.told("gone", m.Line, s.gone(ctx, m))
}

func (s *session) gone(ctx context.Context, m backend.Member) error {
	p := s.owned(m)
	if p == nil {
		return s.strangerGone(ctx, m)
	}
	wait := backoff.New(ctx)
	for {
		sd := sideFrom
		if s.isOnlyTo(p) {
			sd = sideTo
		}
		half, err := s.half(sd)
		if err != nil {
			return err
		}
		mine := p.member(sd)
		if mine.Key == "" {
			return nil
		}
		switch {
		case sd == sideFrom && p.isAlone():
			return s.goneOrBegun(ctx, p)
		case sd == sideTo || p.member(sideTo).Key == "":
			return half.Gone(ctx, mine)
		}
		decided, err := s.eitherGone(ctx, p)
		if err != nil || !decided {
			return err
		}
		gone, err := s.obeyWhileStanding(ctx, p)
		if gone {
			return nil
		}
		if err != nil {
			s.b.log.Warn("could not do what the record asks for, trying again", "election", p.line, "err", err)
			if err := wait.Sleep(ctx); err != nil {
				return err
			}
			continue
		}
		wait.Reset()
	}
}

// strangerGone waits for a member that this session did not join. A wait on To is that of
// a place that is first on From, and has no longer than its patience.
func (s *session) strangerGone(ctx context.Context, m backend.Member) error {
	line := m.Line
	m, sd := untag(m)
	half, err := s.half(sd)
	if err != nil {
		return err
	}
	if until := s.patientUntil(line); sd == sideTo && !until.IsZero() {
		patient, cancel := context.WithDeadline(ctx, until)
		defer cancel()
		if err = half.Gone(patient, m); patient.Err() != nil && ctx.Err() == nil {
			return nil // the next Ahead tells
		}
		return err
	}
	return half.Gone(ctx, m)
}

// patientUntil returns when the first of the session's places in the line loses its
// patience; zero for never.
func (s *session) patientUntil(line string) (until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.places {
		p.mu.Lock()
		if p.line == line && !p.until.IsZero() && (until.IsZero() || p.until.Before(until)) {
			until = p.until
		}
		p.mu.Unlock()
	}
	return until
}

// goneOrBegun is for p, which leads by From alone, as the migration was aborted. It
// blocks until p's member has gone, or the migration was begun again: then the next Ahead
// says that p has to join again. That is told once: others of this process who wait
// behind p wait on, until its leader has left.
func (s *session) goneOrBegun(ctx context.Context, p *place) error {
	if p.isOutdated() {
		return s.with(sideFrom).Gone(ctx, p.member(sideFrom))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() {
		// Where that cannot be seen now, it is looked at again with the next Gone.
		if s.begunAgain(ctx, p) == nil {
			p.outdate()
			cancel()
		}
	})
	err := s.with(sideFrom).Gone(ctx, p.member(sideFrom))
	cancel()
	wg.Wait()
	if p.isOutdated() {
		return nil
	}
	return err
}

// begunAgain blocks until To's record asks for a place on both coordinators, for another
// migration than the one that was aborted: the record may be read from a server that lags.
func (s *session) begunAgain(ctx context.Context, p *place) error {
	p.mu.Lock()
	aborted := p.aborted
	p.mu.Unlock()
	var seen backend.Version
	for {
		r, err := s.sub[sideTo].Watch(ctx, p.line, seen)
		if err != nil {
			return err
		}
		seen = r.Version
		h, err := backend.ParseHeader(r.Value)
		if err != nil {
			continue
		}
		if rule, err := s.b.rule(backend.Header{}, h); err == nil && rule.both && h.Migration.ID != aborted {
			return nil
		}
	}
}

// eitherGone blocks until one of p's two members has gone, or To's record asks p to
// do something.
func (s *session) eitherGone(ctx context.Context, p *place) (decided bool, err error) {
	type result struct {
		decided bool
		err     error
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan result, 3)
	var wg sync.WaitGroup
	for sd := range s.sub {
		half, m := s.with(side(sd)), p.member(side(sd))
		if m.Key == "" {
			return true, nil
		}
		wg.Go(func() {
			err := half.Gone(ctx, m)
			if err == nil && side(sd) == sideTo {
				p.lose()
			}
			results <- result{err: err}
		})
	}
	wg.Go(func() {
		err := s.asked(ctx, p.line)
		results <- result{err == nil, err}
	})
	first := <-results
	cancel()
	wg.Wait()
	return first.decided, first.err
}

// obeyWhileStanding is obey, until one of p's members has gone: the other coordinator
// may be slow to answer. From the seal on it is To alone that says who leads.
func (s *session) obeyWhileStanding(ctx context.Context, p *place) (gone bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var lost [2]bool
	var wg sync.WaitGroup
	for sd := range s.sub {
		half, m := s.with(side(sd)), p.member(side(sd))
		wg.Go(func() {
			if half.Gone(ctx, m) != nil || side(sd) == sideFrom && s.sealing(ctx, p) {
				return
			}
			if lost[sd] = true; side(sd) == sideTo {
				p.lose()
			}
			cancel()
		})
	}
	err = s.obey(ctx, p)
	cancel()
	wg.Wait()
	return lost[sideFrom] || lost[sideTo], err
}

// sealing reports whether p's member on From is the seal by now, and waits for one
// that is under way: to be pinned may look like having gone.
func (s *session) sealing(ctx context.Context, p *place) bool {
	if p.writes.lock(ctx) == nil {
		defer p.writes.unlock()
	}
	return ctx.Err() != nil || s.isOnlyTo(p) || s.checkSeal(ctx, p) == nil
}

// asked blocks until To's record asks for the seal, says that it has been set, or says
// that the migration was aborted. A record that cannot be read asks for nothing.
func (s *session) asked(ctx context.Context, line string) error {
	var seen backend.Version
	for {
		r, err := s.sub[sideTo].Watch(ctx, line, seen)
		if err != nil {
			return err
		}
		seen = r.Version
		h, err := backend.ParseHeader(r.Value)
		if err == nil && (h.Migration.Step == stepAsked || h.Migration.Step == stepMoved || h.Sealed != "") {
			return nil
		}
	}
}

// passing reports whether trying again may help.
func passing(err error) bool {
	return errors.Is(err, backend.ErrUnavailable) || errors.Is(err, backend.ErrVersion)
}
