package composite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/internal/again"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/migrate/internal/protocol"
)

var errPatience = errors.New("a place on the coordinator that the election moves to was not to be had in time; gave the other one back")

// takeTo is for a candidacy that is first on From, as pl says: it gets a member on To, and
// leads when that is first as well. The caller has the candidacy's turn.
func (s *session) takeTo(ctx context.Context, c *candidacy, pl backend.Place) (backend.Place, error) {
	patience := s.b.patience(s.to().TTL())
	c.change(func(st *standing) { st.try(patience) })
	until := c.now().until
	ctx, cancel := context.WithDeadlineCause(ctx, until, errPatience)
	defer cancel()
	first := pl
	err := again.Try(ctx, s.abortedMeanwhile, func() (err error) {
		pl, err = s.tryTo(ctx, c, first)
		return err
	})
	if err == nil && pl.First {
		c.change((*standing).succeed)
		return pl, nil
	}
	if !time.Now().Before(until) && s.alive() == nil {
		why := err
		if why != nil && c.now().leads[protocol.To] { // it has both places: whoever answers slowly takes none away
			if errors.Is(err, errPatience) {
				err = fmt.Errorf("%w: %s has not answered in time", backend.ErrUnavailable, s.route.To)
			}
			return pl, err
		}
		if why == nil {
			why = fmt.Errorf("%s stands in front there, behind the gate; if it is a process with %s alone, it was started too soon: stop it until the cutover", pl.Ahead.Key, s.route.To)
		}
		s.log.Warn("first on the old coordinator, without a place on the new one; giving it back", "election", c.line, "err", why)
		return backend.Place{}, fmt.Errorf("%w: %w: %w", backend.ErrNotMember, errPatience, why)
	}
	return pl, err
}

// abortedMeanwhile reports that a call to To has failed because the migration was aborted after To's line was read: what is aborted
// there is sealed, and names From. The next look finds that, and the candidacy goes on by From.
func (s *session) abortedMeanwhile(err error) bool {
	var sealed *backend.SealedError
	return errors.As(err, &sealed) && protocol.SameAddress(sealed.To, s.route.From)
}

func (s *session) tryTo(ctx context.Context, c *candidacy, pl backend.Place) (backend.Place, error) {
	to, err := s.use(protocol.To)
	if err != nil {
		return backend.Place{}, err
	}
	from := s.part(protocol.From)
	wait := backoff.New(ctx)
	for fenced := false; ; {
		m := c.now().at[protocol.To]
		if m.Key != "" && !fenced {
			err := header.Restore(ctx, to, m)
			if err != nil && !passing(err) {
				return backend.Place{}, err
			}
			if fenced = err == nil; !fenced { // an answer that was lost does not cost the member on From
				if err := wait.After(ctx, err); err != nil {
					return backend.Place{}, err
				}
				continue
			}
		}
		l, err := LineOn(ctx, to, c.line)
		if err != nil {
			return backend.Place{}, err
		}
		choice, err := s.route.Take(pl.Token, l, m)
		switch {
		case err != nil:
			return backend.Place{}, err
		case choice == protocol.Rejoin:
			return backend.Place{}, errMovedOn
		case choice == protocol.StayOnFrom:
			return pl, s.leaveTo(ctx, c, l.Header.Migration.ID)
		case choice == protocol.JoinTo:
			j, err := to.Join(ctx, c.line, c.value, "")
			if err != nil {
				return backend.Place{}, err
			}
			m = j.Member
			c.change(func(st *standing) { st.at[protocol.To] = m })
			s.mark(ctx, c, protocol.To)
			continue
		}
		// The answer does not matter: from this call on the deadline is kept as for a leader.
		if _, err := to.Ahead(ctx, m); err != nil {
			return backend.Place{}, err
		}
		switch choice {
		case protocol.LostTo:
			return backend.Place{}, fmt.Errorf("%w: its member on %s has gone", backend.ErrNotMember, s.route.To)
		case protocol.WaitOnTo:
			return backend.Place{Ahead: tag(protocol.To, l.Members[protocol.Index(l.Members, m)-1])}, nil
		case protocol.LeadByBoth:
			return pl, nil
		case protocol.RaiseFrom:
			err = raise(ctx, from, c.now().at[protocol.From], l.Token(m))
		case protocol.RaiseTo:
			err = raise(ctx, to, m, pl.Token)
		}
		if err != nil {
			return backend.Place{}, err
		}
		if pl, err = from.Ahead(ctx, c.now().at[protocol.From]); err != nil {
			return backend.Place{}, err
		}
		if !pl.First {
			return backend.Place{}, fmt.Errorf("%w: it was first and is not any more", backend.ErrLine)
		}
	}
}

// leaveTo makes the candidacy go on by From alone, because the migration with the ID was aborted.
// The caller has the candidacy's turn.
func (s *session) leaveTo(ctx context.Context, c *candidacy, id string) error {
	c.change((*standing).leave)
	if err := s.quitSide(ctx, c, protocol.To); err != nil {
		return err
	}
	c.change(func(st *standing) { st.left(id) })
	return nil
}

// raise raises the fence of m's election so that its token there is at least token,
// on condition that m stands. It never lowers it.
func raise(ctx context.Context, part backend.Session, m backend.Member, token uint64) error {
	r, err := part.Get(ctx, m.Line)
	if err != nil {
		return err
	}
	h, err := backend.ParseHeader(r.Value)
	if err != nil {
		return err
	}
	if now, err := h.Token(m.Position); err != nil || now >= token {
		return err
	}
	return header.Raise(ctx, part, m.Line, m, token-m.Position)
}

// passing reports whether another try may help.
func passing(err error) bool {
	return errors.Is(err, backend.ErrUnavailable) || errors.Is(err, backend.ErrVersion)
}
