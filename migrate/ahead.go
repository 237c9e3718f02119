package migrate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/backoff"
	"github.com/succession-dev/succession/internal/header"
)

// Ahead says who stands in front of m; see [backend.Session]. Behind others it costs a
// round trip. A member that is first
// on From takes its place on To, which costs several, and says that it is first when it
// has both. It then waits for whoever stands behind the gate on To: those are
// members of a former leader. Where To cannot be had within [Options] Patience, it
// gives its place on From back and fails with [backend.ErrNotMember], as it does where
// the election has moved meanwhile: join again.
func (s *session) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	pl, err := s.ahead(ctx, m)
	return pl, s.told("ahead", m.Line, err)
}

func (s *session) ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p := s.owned(m)
	if p == nil {
		return s.strangerAhead(ctx, m)
	}
	if p.isLost() { // From may be slow to answer, and this is certain
		s.quitLater(p)
		return backend.Place{}, errLostTo
	}
	if p.isOutdated() { // it stands until its leader leaves, when the work has ended
		return backend.Place{}, errMovedOn
	}
	if err := p.take.lock(ctx); err != nil {
		return backend.Place{}, err
	}
	defer p.take.unlock()
	sd := sideFrom
	if s.isOnlyTo(p) {
		sd = sideTo
	}
	pl, err := s.aheadOn(ctx, p, sd)
	if err != nil {
		return backend.Place{}, s.rejoin(ctx, p, err)
	}
	if sd == sideFrom && pl.First && !p.isAlone() {
		pl, err = s.takeTo(ctx, p, pl)
		return pl, s.rejoin(ctx, p, err)
	}
	p.leads(pl.First && sd == sideFrom, pl.First && sd == sideTo)
	return pl, nil
}

// aheadOn asks one coordinator. For a member that waits behind others the record tells
// whether the election has become about to move here, which no seal tells.
func (s *session) aheadOn(ctx context.Context, p *place, sd side) (backend.Place, error) {
	half, err := s.half(sd)
	if err != nil {
		return backend.Place{}, err
	}
	m := p.member(sd)
	if m.Key == "" {
		return backend.Place{}, backend.ErrNotMember
	}
	pl, err := half.Ahead(ctx, m)
	if err != nil || pl.First {
		return pl, err
	}
	if gated(pl.Header) {
		// A leader that has sealed leads already, while the gate is being taken away.
		if l, err := half.Line(ctx, p.line); err != nil {
			return backend.Place{}, err
		} else if p.unsealed(sd) {
			return backend.Place{}, errMovedOn
		} else if behindGate(l, m) {
			return backend.Place{First: true, Token: l.Token(l.Members[1]), Header: l.Header}, nil
		}
	}
	pl.Ahead = sd.tag(pl.Ahead)
	return pl, nil
}

// unsealed reports whether p is not one that has sealed From and leads on by To.
func (p *place) unsealed(sd side) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return sd == sideFrom || p.at[sideFrom].Key == ""
}

// errMovedOn says that a place is not where the election is any more.
var errMovedOn = fmt.Errorf("%w: the election is being moved; join again", backend.ErrNotMember)

// rejoin gives up the place where err says that the election is elsewhere, and
// makes err one after which a candidate joins again, when the other coordinator is
// where it went.
func (s *session) rejoin(ctx context.Context, p *place, err error) error {
	var sealed *backend.SealedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &sealed) && (sameAddress(sealed.To, s.b.o.From) || sameAddress(sealed.To, s.b.o.To)):
		err = fmt.Errorf("%w: the election has moved to %s; join again", backend.ErrNotMember, sealed.To)
		s.forgetMoved(p.line)
	case errors.Is(err, errMovedOn):
		s.forgetMoved(p.line)
	case errors.Is(err, backend.ErrNotMember):
	default:
		return err
	}
	if p.isLeader() { // it must know at once, and To may be slow to answer
		s.quitLater(p)
		return err
	}
	// One coordinator that cannot be reached must not keep the place on the other.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeBound)
	defer cancel()
	if qerr := s.quit(ctx, p); qerr != nil {
		s.end(fmt.Errorf("%w: a place could not be given back: %w", backend.ErrSessionEnded, qerr))
	}
	return err
}

var errLostTo = fmt.Errorf("%w: its member on the coordinator that the election moves to has gone", backend.ErrNotMember)

// quitLater gives up the place without having the caller wait. The session's watcher
// waits for it.
func (s *session) quitLater(p *place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil || p.quitting {
		return // it goes with the session
	}
	p.quitting = true
	s.behind.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeBound)
		defer cancel()
		err := p.take.lock(ctx)
		if err == nil {
			err = s.quit(ctx, p)
			p.take.unlock()
		}
		if err != nil {
			s.end(fmt.Errorf("%w: a place could not be given back: %w", backend.ErrSessionEnded, err))
		}
	})
}

// strangerAhead asks for a member that this session did not join.
func (s *session) strangerAhead(ctx context.Context, m backend.Member) (backend.Place, error) {
	m, sd := untag(m)
	half, err := s.half(sd)
	if err != nil {
		return backend.Place{}, err
	}
	pl, err := half.Ahead(ctx, m)
	pl.Ahead = sd.tag(pl.Ahead)
	return pl, err
}

// takeTo is for p, which is first on From, as pl says: it gets its place on To, and
// leads when it has it. The caller holds p.
func (s *session) takeTo(ctx context.Context, p *place, pl backend.Place) (backend.Place, error) {
	to := s.sub[sideTo]
	until := p.tries(s.b.patience(to.TTL()))
	ctx, cancel := context.WithDeadlineCause(ctx, until, errPatience)
	defer cancel()
	pl, err := s.tryTo(ctx, p, pl)
	if err == nil && pl.First {
		p.has()
		p.leads(true, !p.isAlone())
		return pl, nil
	}
	if !time.Now().Before(until) && s.alive() == nil {
		why := err
		if why == nil {
			why = fmt.Errorf("%s stands in front there, behind the gate; if it is a process with %s alone, it was started too soon: stop it until the cutover", pl.Ahead.Key, s.b.o.To)
		}
		s.b.log.Warn("first on the old coordinator, without a place on the new one; giving it back", "election", p.line, "err", why)
		return backend.Place{}, fmt.Errorf("%w: %w: %w", backend.ErrNotMember, errPatience, why)
	}
	return pl, err
}

// tries returns until when p, which is first on From, tries to get To.
func (p *place) tries(patience time.Duration) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.until.IsZero() {
		p.until = time.Now().Add(patience)
	}
	return p.until
}

func (p *place) has() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until = time.Time{}
}

var errPatience = errors.New("a place on the coordinator that the election moves to was not to be had in time; gave the other one back")

func (s *session) tryTo(ctx context.Context, p *place, pl backend.Place) (backend.Place, error) {
	to, err := s.half(sideTo)
	if err != nil {
		return backend.Place{}, err
	}
	from := s.with(sideFrom)
	wait := backoff.New(ctx)
	for fenced := false; ; {
		m := p.member(sideTo)
		if m.Key != "" && !fenced {
			err := header.Restore(ctx, to, m)
			if err != nil && !passing(err) {
				return backend.Place{}, err
			}
			if fenced = err == nil; !fenced { // an answer that was lost costs no place
				if stop := wait.Sleep(ctx); stop != nil {
					return backend.Place{}, fmt.Errorf("%w: %w", stop, err)
				}
				continue
			}
		}
		l, err := to.Line(ctx, p.line)
		if err != nil {
			return backend.Place{}, err
		}
		r, err := s.b.rule(backend.Header{}, l.Header) // From is not sealed: p is first there
		switch {
		case err != nil:
			return backend.Place{}, err
		case !r.both && r.alone == sideTo:
			return backend.Place{}, errMovedOn
		case !r.both: // aborted: it leads by From alone
			return pl, s.dropTo(ctx, p, l.Header.Migration.ID)
		}
		if _, ok := gate(l); !ok {
			return backend.Place{}, fmt.Errorf("%w: the gate on %s is gone, though the migration goes on; begin it again", ErrRefused, s.b.o.To)
		}
		if m.Key == "" {
			if m, err = to.Join(ctx, p.line, p.value); err != nil {
				return backend.Place{}, err
			}
			p.set(sideTo, m)
			s.mark(ctx, p, sideTo)
			continue
		}
		// Not for what it says, but so that the deadline is a leader's from here on.
		if _, err := to.Ahead(ctx, m); err != nil {
			return backend.Place{}, err
		}
		i := index(l, m)
		switch {
		case i < 0:
			return backend.Place{}, fmt.Errorf("%w: its member on %s has gone", backend.ErrNotMember, s.b.o.To)
		case i > 1:
			return backend.Place{Ahead: sideTo.tag(l.Members[i-1])}, nil
		}
		sumFrom, sumTo := pl.Token, l.Token(m)
		switch {
		case sumFrom < sumTo:
			if err := raise(ctx, from, p.member(sideFrom), sumTo); err != nil {
				return backend.Place{}, err
			}
		case sumTo < sumFrom:
			if err := raise(ctx, to, m, sumFrom); err != nil {
				return backend.Place{}, err
			}
		default:
			return pl, nil
		}
		if pl, err = from.Ahead(ctx, p.member(sideFrom)); err != nil {
			return backend.Place{}, err
		}
		if !pl.First {
			return backend.Place{}, fmt.Errorf("%w: it was first and is not any more", backend.ErrLine)
		}
	}
}

// raise raises the fence of m's election so that its token there is at least token,
// on condition that m stands. It never lowers it.
func raise(ctx context.Context, half backend.Session, m backend.Member, token uint64) error {
	r, err := half.Get(ctx, m.Line)
	if err != nil {
		return err
	}
	h, err := backend.ParseHeader(r.Value)
	if err != nil {
		return err
	}
	if h.Fence+m.Position >= token {
		return nil
	}
	return header.Raise(ctx, half, m.Line, m, token-m.Position)
}
