package migrate

import (
	"context"
	"errors"
	"fmt"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/backoff"
)

// obey does what To's record asks of p, which leads by both: to seal From, or to go
// on by From alone.
func (s *session) obey(ctx context.Context, p *place) error {
	if err := p.take.lock(ctx); err != nil {
		return err
	}
	sealed, err := s.decide(ctx, p)
	p.take.unlock()
	if err != nil || sealed == nil {
		return err
	}
	s.setMoved(p.line)
	s.b.log.Info("sealed the old coordinator; leading on by the new one alone", "election", p.line, "to", s.b.o.To)
	// Anybody may do the rest, but nobody is nearer.
	wait := backoff.New(ctx)
	for {
		err := s.b.finish(ctx, s.sub[sideTo], p.line, *sealed)
		if err == nil || !passing(err) {
			return err
		}
		if err := wait.Sleep(ctx); err != nil {
			return err
		}
	}
}

// decide returns the seal, if it has been set. The caller holds p.
func (s *session) decide(ctx context.Context, p *place) (*backend.Header, error) {
	from, to := s.with(sideFrom), s.sub[sideTo]
	for refused := false; ; {
		if err := s.alive(); err != nil {
			return nil, err
		}
		// From's record before To's is confirmed: the seal is refused when From's has been
		// touched since, and an abort touches it after it has written To's.
		r, err := from.Get(ctx, p.line)
		if err != nil {
			return nil, err
		}
		h, err := backend.ParseHeader(r.Value)
		if err != nil {
			return nil, err
		}
		l, err := to.Line(ctx, p.line)
		if err != nil {
			return nil, err
		}
		mig := l.Header.Migration
		rule, err := s.b.rule(backend.Header{}, l.Header)
		mine := p.member(sideTo)
		switch {
		case err != nil:
			return nil, err
		case h.Sealed != "":
			// Perhaps it is p's own, whose answer was lost. Then p's member is what is pinned.
			if err := s.checkSeal(ctx, p); err != nil {
				return nil, err
			}
			s.seal(p)
			return &h, nil
		case !rule.both && rule.alone == sideFrom:
			if err := s.dropTo(ctx, p, mig.ID); err != nil {
				return nil, err
			}
			s.b.log.Info("the migration was aborted; leading on by the old coordinator alone", "election", p.line)
			return nil, nil
		case !rule.both || mig.Step != stepAsked:
			return nil, nil
		case !behindGate(l, mine):
			return nil, fmt.Errorf("%w: it does not stand first behind the gate on %s", ErrRefused, s.b.o.To)
		}
		if refused { // one that named an earlier version can never be set any more
			p.unsure = false
		}
		if sum := h.Fence + p.member(sideFrom).Position; l.Token(mine) < sum {
			if err := raise(ctx, to, mine, sum); err != nil {
				return nil, err
			}
			continue
		}
		// To's may have been read from a server that lags behind. That it still is so is
		// certain when a write of the same, which names its version, succeeds.
		_, err = to.Put(ctx, p.line, l.Header.Encode(), &backend.If{Version: l.Version, Member: mine})
		if errors.Is(err, backend.ErrVersion) {
			continue
		}
		if err != nil {
			return nil, err
		}
		h.Sealed = mig.To
		h.Migration = backend.Migration{ID: mig.ID, From: mig.From, To: mig.To, Step: stepSealed}
		if err := p.writes.lock(ctx); err != nil {
			return nil, err
		}
		was := p.unsure
		p.unsure = true
		err = from.Pin(ctx, p.member(sideFrom), h, r.Version)
		if err == nil {
			s.seal(p)
		}
		p.writes.unlock()
		switch {
		case err == nil:
			return &h, nil
		case errors.Is(err, backend.ErrVersion):
			// Also where it has been set, the answer was lost, and somebody else has written
			// the record since.
			refused = true
			continue
		case errors.Is(err, backend.ErrNotMember), errors.Is(err, backend.ErrDenied):
			p.unsure = was
		}
		return nil, err
	}
}

// checkSeal returns nil if it is p that has sealed From.
func (s *session) checkSeal(ctx context.Context, p *place) error {
	l, err := s.with(sideFrom).Line(ctx, p.line)
	if err != nil {
		return err
	}
	if index(l, p.member(sideFrom)) != 0 || !l.Members[0].Pinned {
		return fmt.Errorf("%w: %s is sealed, and not by this process", backend.ErrHeader, s.b.o.From)
	}
	return nil
}

// dropTo has p go on by From alone: the migration with the ID was aborted. The caller
// holds p.
func (s *session) dropTo(ctx context.Context, p *place, id string) error {
	p.mu.Lock()
	p.dropping = true
	p.mu.Unlock()
	if err := s.quitSide(ctx, p, sideTo); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.alone, p.lost, p.aborted = true, false, id
	return nil
}

// seal makes p one that hangs on To alone.
func (s *session) seal(p *place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.onlyTo = true
	p.leads(false, true)
}

// finish is the second step of the cutover: it takes the gate away, where the
// election on the other coordinator has been sealed by the same migration, as its
// record from says, and then writes down that the election is here. Anybody may do it,
// at any time and again.
func (b *Backend) finish(ctx context.Context, to backend.Session, line string, from backend.Header) error {
	if from.Sealed == "" || from.Migration.ID == "" {
		return nil
	}
	for {
		l, err := to.Line(ctx, line)
		if err != nil {
			return err
		}
		h := l.Header
		if !gated(h) || h.Migration.ID != from.Migration.ID {
			return nil
		}
		if g, ok := gate(l); ok {
			if err := to.Leave(ctx, g); err != nil {
				return err
			}
		}
		h.Migration.Step, h.Migration.Gate = stepMoved, 0
		h.Acknowledged = max(h.Acknowledged, from.Acknowledged)
		h.Resign = max(h.Resign, from.Resign)
		_, err = to.Put(ctx, line, h.Encode(), &backend.If{Version: l.Version})
		if errors.Is(err, backend.ErrVersion) {
			continue
		}
		return err
	}
}
