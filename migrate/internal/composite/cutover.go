package composite

import (
	"context"
	"errors"
	"fmt"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/backoff"
	"github.com/succession-dev/succession/migrate/internal/protocol"
)

// obey does what To's record asks of a candidacy that leads by both: to seal From, or to go
// on by From alone.
func (s *session) obey(ctx context.Context, c *candidacy) error {
	if err := c.turn.take(ctx); err != nil {
		return err
	}
	seal, err := s.decide(ctx, c)
	c.turn.release()
	if err != nil || seal == nil {
		return err
	}
	s.setMoved(c.line, true)
	s.log.Info("sealed the old coordinator; leading on by the new one alone", "election", c.line, "to", s.route.To)
	// Anybody may do the rest, but nobody is nearer.
	wait := backoff.New(ctx)
	for {
		err := EndMove(ctx, s.to(), c.line, *seal)
		if err == nil || !passing(err) {
			return err
		}
		if err := wait.Sleep(ctx); err != nil {
			return err
		}
	}
}

// decide does what the records ask for. It returns From's record if that is sealed. The
// caller has the candidacy's turn.
func (s *session) decide(ctx context.Context, c *candidacy) (*backend.Header, error) {
	from, to := s.part(protocol.From), s.to()
	for refused := false; ; {
		if err := s.alive(); err != nil {
			return nil, err
		}
		// From's record before To's is confirmed: the seal is refused when From's has been
		// touched since, and an abort touches it after it has written To's.
		r, err := from.Get(ctx, c.line)
		if err != nil {
			return nil, err
		}
		h, err := backend.ParseHeader(r.Value)
		if err != nil {
			return nil, err
		}
		l, err := to.Line(ctx, c.line)
		if err != nil {
			return nil, err
		}
		own := c.now().at
		choice, err := s.route.Lead(h, l, own)
		switch {
		case err != nil:
			return nil, err
		case choice == protocol.SealedFrom:
			// Perhaps by this candidacy, and the answer was lost. Then its member is what is pinned.
			own, err := s.isSeal(ctx, c)
			if err != nil {
				return nil, err
			}
			if !own {
				return nil, fmt.Errorf("%w: %s is sealed, and not by this process", backend.ErrHeader, s.route.From)
			}
			c.change((*standing).seal)
			return &h, nil
		case choice == protocol.StayOnFrom:
			if err := s.leaveTo(ctx, c, l.Header.Migration.ID); err != nil {
				return nil, err
			}
			s.log.Info("the migration was aborted; leading on by the old coordinator alone", "election", c.line)
			return nil, nil
		case choice == protocol.GoOn:
			return nil, nil
		}
		if refused { // one that named an earlier version can never be set any more
			c.sealSent = false
		}
		if choice == protocol.RaiseTo {
			if err := raise(ctx, to, own[protocol.To], h.Fence+own[protocol.From].Position); err != nil {
				return nil, err
			}
			continue
		}
		// To's may have been read from a server that lags behind. That it still is so is
		// certain when a write of the same, which names its version, succeeds.
		_, err = to.Put(ctx, c.line, l.Header.Encode(), &backend.If{Version: l.Version, Member: own[protocol.To]})
		if errors.Is(err, backend.ErrVersion) {
			continue
		}
		if err != nil {
			return nil, err
		}
		h = protocol.SealOf(h, l.Header.Migration)
		err = s.sendSeal(ctx, c, h, r.Version)
		switch {
		case err == nil:
			return &h, nil
		case errors.Is(err, backend.ErrVersion):
			// Also where it has been set, the answer was lost, and somebody else has written
			// the record since.
			refused = true
		default:
			return nil, err
		}
	}
}

// sendSeal seals From, whose record becomes h where it still has the version.
func (s *session) sendSeal(ctx context.Context, c *candidacy, h backend.Header, at backend.Version) error {
	if err := c.writing.take(ctx); err != nil {
		return err
	}
	defer c.writing.release()
	was := c.sealSent
	c.sealSent = true
	err := s.part(protocol.From).Pin(ctx, c.now().at[protocol.From], h, at)
	switch {
	case err == nil:
		c.change((*standing).seal)
	case errors.Is(err, backend.ErrNotMember), errors.Is(err, backend.ErrDenied):
		c.sealSent = was
	}
	return err
}

// isSeal reports whether the candidacy's member is what From is sealed by.
func (s *session) isSeal(ctx context.Context, c *candidacy) (bool, error) {
	l, err := s.part(protocol.From).Line(ctx, c.line)
	return err == nil && protocol.Index(l, c.now().at[protocol.From]) == 0 && l.Members[0].Pinned, err
}

// EndMove is the second step of the cutover: it takes the gate away, where the
// election on the other coordinator has been sealed by the same migration, as its
// record from says, and then writes down that the election is here. Anybody may do it,
// at any time and again.
func EndMove(ctx context.Context, to backend.Session, line string, from backend.Header) error {
	for {
		l, err := to.Line(ctx, line)
		if err != nil {
			return err
		}
		h, goes := protocol.MovedOf(from, l.Header)
		if !goes {
			return nil
		}
		if gate, stands := protocol.Gate(l); stands {
			if err := to.Leave(ctx, gate); err != nil {
				return err
			}
		}
		_, err = to.Put(ctx, line, h.Encode(), &backend.If{Version: l.Version})
		if !errors.Is(err, backend.ErrVersion) {
			return err
		}
	}
}
