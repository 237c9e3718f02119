package composite

import (
	"context"
	"fmt"
	"slices"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/migrate/internal/protocol"
)

// Leave removes a member; see [backend.Session]. A candidacy on both coordinators leaves To first.
// A candidacy that has sealed From leaves only To, so that the seal stays.
func (s *session) Leave(ctx context.Context, m backend.Member) (err error) {
	defer s.told("leave", m.Line, &err)
	c := s.owned(m)
	if c == nil {
		return s.leaveStranger(ctx, m)
	}
	if err := c.turn.take(ctx); err != nil {
		return err
	}
	defer c.turn.release()
	return s.quit(ctx, c)
}

// leaveStranger removes a member that this session did not join. It does not remove the gate or the seal of
// a migration, which is the first that is pinned.
func (s *session) leaveStranger(ctx context.Context, m backend.Member) error {
	m, sd := untag(m)
	part, err := s.use(sd)
	if err != nil {
		return err
	}
	if err := part.Refresh(ctx); err != nil { // another session may have made it the gate or the seal just now
		return err
	}
	l, err := LineOn(ctx, part, m.Line)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(l.Members, func(o backend.Member) bool { return o.Pinned }); i >= 0 && protocol.Same(l.Members[i], m) {
		if gate, ok := protocol.Gate(l); l.Header.Sealed != "" || ok && protocol.Same(gate, m) {
			return fmt.Errorf("%w: %s is the gate or the seal of a migration; abort that instead", backend.ErrDenied, m.Key)
		}
	}
	return part.Leave(ctx, m)
}

// quit removes the candidacy's members and forgets it. The caller has its turn.
func (s *session) quit(ctx context.Context, c *candidacy) error {
	if err := s.quitSide(ctx, c, protocol.To); err != nil {
		return err
	}
	defer s.unmark(ctx, c)
	switch st := c.now(); {
	case st.hasSealed():
		return nil // the candidacy stays known, so that nobody takes the seal for an ordinary member
	case st.side() == protocol.To:
	default:
		if err := s.notSealing(ctx, c); err != nil {
			// The member may be the seal. If it is not, the end of its session takes it away.
			err := kit.SessionEnded(fmt.Errorf("its seal on %s may be under way, so the session had to end: %w", s.route.From, err))
			s.end(err)
			return err
		}
		if err := s.quitSide(ctx, c, protocol.From); err != nil {
			return err
		}
	}
	s.forget(c)
	return nil
}

// notSealing is unsealed for a caller that does not write.
func (s *session) notSealing(ctx context.Context, c *candidacy) error {
	if c.sealAt.Load() == 0 { // then it waits for no write
		return nil
	}
	if err := c.writing.take(ctx); err != nil {
		return err
	}
	defer c.writing.release()
	return s.unsealed(ctx, c)
}

// forget makes the candidacy's member one that is not the session's own. The caller has the candidacy's turn.
func (s *session) forget(c *candidacy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.candidacies, identity(c.as))
	s.needsChanged()
}

// quitSide removes the candidacy's member on one coordinator, if it has one there. If that is known to have gone, quitSide
// sends nothing: that coordinator may be slow to answer, while somebody waits on the other one.
func (s *session) quitSide(ctx context.Context, c *candidacy, sd protocol.Side) error {
	st := c.now()
	m := st.at[sd]
	if m.Key == "" {
		return nil
	}
	var err error
	if sd != protocol.To || !st.hasLost() {
		var part backend.Session
		if part, err = s.use(sd); err == nil {
			err = part.Leave(ctx, m)
		}
	}
	if err == nil {
		c.change(func(st *standing) { st.gone(sd) })
	}
	return err
}

func (s *session) endNotGivenBack(err error) {
	s.end(kit.SessionEnded(fmt.Errorf("a member could not be given back: %w", err)))
}

// Pin makes a member permanent where it stands; see [backend.Session]. A candidacy that stands on one
// coordinator alone, like the gate of a pause, is none from then on: its member outlives the session,
// and must not take a place on To, where others would wait for it, nor be removed when the election
// moves. For Ahead, Gone and Leave it is then as if another session had joined it.
func (s *session) Pin(ctx context.Context, m backend.Member, h backend.Header, at backend.Version) (err error) {
	defer s.told("pin", m.Line, &err)
	c := s.owned(m)
	m, sd := untag(m)
	alone := false
	if c != nil {
		if err := c.turn.take(ctx); err != nil {
			return err
		}
		defer c.turn.release()
		st := c.now()
		sd = st.side()
		m = st.at[sd]
		alone = st.at[1-sd].Key == ""
	}
	plain, ok := untagVersion(sd, at)
	part, err := s.use(sd)
	switch {
	case err != nil:
		return err
	case !ok:
		return errOtherSide
	}
	if err = part.Pin(ctx, m, h, plain); err == nil && alone {
		s.unmark(ctx, c)
		s.forget(c)
	}
	return err
}
