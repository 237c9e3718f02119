package composite

import (
	"context"
	"errors"
	"fmt"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/migrate/internal/protocol"
)

// errMovedOn says that the election has left the coordinator of the candidacy.
var errMovedOn = fmt.Errorf("%w: the election is being moved; join again", backend.ErrNotMember)

var errLostTo = fmt.Errorf("%w: its member on the coordinator that the election moves to has gone", backend.ErrNotMember)

// Ahead says who stands in front of m; see [backend.Session]. Behind others it costs a
// round trip. A candidacy that is first on From also gets a member on To, which costs several round
// trips; it is first when it has both. Until then it waits for the members behind the gate on To,
// which belong to a former leader. If it does not get To within [Options] Patience, or the election
// has moved meanwhile, it leaves From and fails with [backend.ErrNotMember]: join again. A leader keeps what it has until its Leave.
func (s *session) Ahead(ctx context.Context, m backend.Member) (pl backend.Place, err error) {
	defer s.told("ahead", m.Line, &err)
	c := s.owned(m)
	if c == nil {
		return s.strangerAhead(ctx, m)
	}
	switch st := c.now(); {
	case st.hasLost(): // From may be slow to answer, and this is certain
		return backend.Place{}, errLostTo
	case st.state == outdated: // it stands until its leader leaves, when the work has ended
		return backend.Place{}, errMovedOn
	}
	if err := c.turn.take(ctx); err != nil {
		return backend.Place{}, err
	}
	defer c.turn.release()
	if s.owned(m) == nil { // it has left meanwhile, or was pinned
		return s.strangerAhead(ctx, m)
	}
	sd := c.now().side()
	pl, err = s.aheadOn(ctx, c, sd)
	if err != nil {
		return backend.Place{}, s.rejoin(ctx, c, err)
	}
	if sd == protocol.From && pl.First && !c.now().isFromOnly() {
		pl, err = s.takeTo(ctx, c, pl)
		found, err := s.findSeal(ctx, c, err)
		if !found {
			return pl, s.rejoin(ctx, c, err)
		}
		sd = protocol.To
		if pl, err = s.aheadOn(ctx, c, sd); err != nil {
			return backend.Place{}, s.rejoin(ctx, c, err)
		}
	}
	c.change(func(st *standing) { st.leads = [2]bool{sd == protocol.From && pl.First, sd == protocol.To && pl.First} })
	return pl, nil
}

// findSeal is for a candidacy whose takeTo has failed with err because the election has moved. It
// looks for the candidacy's own seal, whose answer may have been lost. If it finds the seal, the
// candidacy leads by To alone. If not, it returns err, or why it could not look. The caller has the
// candidacy's turn.
func (s *session) findSeal(ctx context.Context, c *candidacy, err error) (found bool, _ error) {
	if !errors.Is(err, errMovedOn) || c.sealAt.Load() == 0 {
		return false, err
	}
	from := s.part(protocol.From)
	if why := from.Refresh(ctx); why != nil { // From may have told this process nothing since
		return false, why
	}
	switch own, why := s.isSeal(ctx, c); {
	case why != nil:
		return false, why
	case !own:
		return false, err
	}
	r, err := from.Get(ctx, c.line)
	if err != nil {
		return false, err
	}
	h, err := header.Parse(r.Value)
	if err != nil {
		return false, err
	}
	c.change(func(st *standing) { st.seal(h) })
	s.setMoved(c.line, true)
	s.log.Info("has sealed the old coordinator, as it finds only now; leading on by the new one alone", "election", c.line, "to", s.route.To)
	return true, nil
}

// aheadOn asks one coordinator.
func (s *session) aheadOn(ctx context.Context, c *candidacy, sd protocol.Side) (backend.Place, error) {
	part, err := s.use(sd)
	if err != nil {
		return backend.Place{}, err
	}
	m := c.now().at[sd]
	if m.Key == "" {
		return backend.Place{}, backend.ErrNotMember
	}
	pl, err := part.Ahead(ctx, m)
	if err != nil || pl.First {
		return pl, err
	}
	h, err := header.Of(pl.Header)
	if err != nil {
		return backend.Place{}, err
	}
	if protocol.BeingMoved(pl.First, h) {
		if !c.now().hasSealed() {
			return backend.Place{}, errMovedOn
		}
		// It leads already, while somebody takes the gate away.
		if l, err := LineOn(ctx, part, c.line); err != nil {
			return backend.Place{}, err
		} else if protocol.BehindGate(l, m) {
			return backend.Place{First: true, Token: l.Token(l.Members[1]), Header: l.Header.Stored()}, nil
		}
	}
	pl.Ahead = tag(sd, pl.Ahead)
	return pl, nil
}

// rejoin gives up the candidacy if err says that the election is elsewhere. If it went to the other
// coordinator, rejoin returns an error after which a candidate joins again. The caller has the
// candidacy's turn.
func (s *session) rejoin(ctx context.Context, c *candidacy, err error) error {
	var sealed *backend.SealedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &sealed) && (protocol.SameAddress(sealed.To, s.route.From) || protocol.SameAddress(sealed.To, s.route.To)):
		err = fmt.Errorf("%w: the election has moved to %s; join again", backend.ErrNotMember, sealed.To)
		s.setMoved(c.line, false)
	case errors.Is(err, errMovedOn):
		s.setMoved(c.line, false)
	case errors.Is(err, backend.ErrNotMember):
	default:
		return err
	}
	if c.now().leads != [2]bool{} {
		// The leader must know at once, and To may be slow to answer. It leaves when its work has ended, and nobody leads before.
		return err
	}
	// One coordinator that cannot be reached must not keep the member on the other.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeBound)
	defer cancel()
	if qerr := s.quit(ctx, c); qerr != nil {
		s.endNotGivenBack(qerr)
	}
	return err
}

// strangerAhead asks for a member that this session did not join.
func (s *session) strangerAhead(ctx context.Context, m backend.Member) (backend.Place, error) {
	m, sd := untag(m)
	part, err := s.use(sd)
	if err != nil {
		return backend.Place{}, err
	}
	pl, err := part.Ahead(ctx, m)
	pl.Ahead = tag(sd, pl.Ahead)
	return pl, err
}
