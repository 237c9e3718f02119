package composite

import (
	"context"
	"fmt"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/migrate/internal/protocol"
)

// Leave removes a member; see [backend.Session]. An entry on both coordinators leaves To
// first. One that has sealed From leaves To alone: the seal stays.
func (s *session) Leave(ctx context.Context, m backend.Member) error {
	return s.told("leave", m.Line, s.leave(ctx, m))
}

func (s *session) leave(ctx context.Context, m backend.Member) error {
	e := s.owned(m)
	if e == nil {
		return s.leaveStranger(ctx, m)
	}
	if err := e.turn.take(ctx); err != nil {
		return err
	}
	defer e.turn.release()
	return s.quit(ctx, e)
}

// leaveStranger removes a member that this session did not join. What holds a
// migration together is not anybody's to remove.
func (s *session) leaveStranger(ctx context.Context, m backend.Member) error {
	m, sd := untag(m)
	part, err := s.use(sd)
	if err != nil {
		return err
	}
	l, err := part.Line(ctx, m.Line)
	if err != nil {
		return err
	}
	if i := protocol.Index(l, m); i >= 0 && l.Members[i].Pinned {
		if gate, ok := protocol.Gate(l); l.Header.Sealed != "" || ok && protocol.Same(gate, m) {
			return fmt.Errorf("%w: %s is the gate or the seal of a migration; abort that instead", backend.ErrDenied, m.Key)
		}
	}
	return part.Leave(ctx, m)
}

// quit removes the entry's members and forgets it. The caller has its turn.
func (s *session) quit(ctx context.Context, e *entry) error {
	if err := s.quitSide(ctx, e, protocol.To); err != nil {
		return err
	}
	defer s.unmark(ctx, e)
	switch {
	case e.hasSealed():
		return nil // it stays known, so that nobody takes the seal for a member
	case e.side() == protocol.To:
	case e.sealSent:
		// Perhaps the member is the seal. The end of its session takes it away if it
		// is not.
		err := fmt.Errorf("%w: its seal on %s may be under way, so the session had to end", backend.ErrSessionEnded, s.b.o.Route.From)
		s.end(err)
		return err
	default:
		if err := s.quitSide(ctx, e, protocol.From); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.entries, identity(e.as))
	return nil
}

// quitSide removes the entry's member on one coordinator, where it has one.
func (s *session) quitSide(ctx context.Context, e *entry, sd protocol.Side) error {
	m := e.member(sd)
	if m.Key == "" {
		return nil
	}
	part, err := s.use(sd)
	if err == nil {
		err = part.Leave(ctx, m)
	}
	if err == nil {
		e.gone(sd)
	}
	return err
}

// quitLater quits without having the caller wait. The session's watcher waits for it.
func (s *session) quitLater(e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return // it goes with the session
	}
	e.giveUp.Do(func() {
		s.behind.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), closeBound)
			defer cancel()
			err := e.turn.take(ctx)
			if err == nil {
				err = s.quit(ctx, e)
				e.turn.release()
			}
			if err != nil {
				s.endNotGivenBack(err)
			}
		})
	})
}

func (s *session) endNotGivenBack(err error) {
	s.end(fmt.Errorf("%w: a member could not be given back: %w", backend.ErrSessionEnded, err))
}

// Pin makes a member permanent where it stands; see [backend.Session].
func (s *session) Pin(ctx context.Context, m backend.Member, h backend.Header, at backend.Version) error {
	var sd protocol.Side
	if e := s.owned(m); e != nil {
		sd = e.side()
		m = e.member(sd)
	} else {
		m, sd = untag(m)
	}
	plain, ok := untagVersion(sd, at)
	part, err := s.use(sd)
	if err == nil && !ok {
		err = fmt.Errorf("%w: it is kept by the other coordinator by now", backend.ErrVersion)
	}
	if err == nil {
		err = part.Pin(ctx, m, h, plain)
	}
	return s.told("pin", m.Line, err)
}
