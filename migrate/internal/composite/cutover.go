package composite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/again"
	"github.com/succession-dev/succession/internal/along"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/internal/naming"
	"github.com/succession-dev/succession/migrate/internal/protocol"
)

// obey does what To's record asks of a candidacy that leads by both: to seal From, or to go
// on by From alone.
func (s *session) obey(ctx context.Context, c *candidacy) error {
	if err := c.turn.take(ctx); err != nil {
		return err
	}
	sealed, err := s.decide(ctx, c)
	c.turn.release()
	if err != nil || !sealed {
		return err
	}
	s.setMoved(c.line, true)
	s.log.Info("sealed the old coordinator; leading on by the new one alone", "election", c.line, "to", s.route.To)
	return nil
}

// goneOrOpened is for a candidacy that has sealed From. It completes the cutover, and gives that up
// when its member on To has gone. Anybody may complete the cutover, but this candidacy is the first
// to know of it.
func (s *session) goneOrOpened(ctx context.Context, c *candidacy) (gone bool, err error) {
	to, m := s.to(), c.now().at[protocol.To]
	i, err := again.First(ctx,
		func(ctx context.Context) error {
			err := to.Gone(ctx, m)
			if err == nil {
				c.change((*standing).lose)
			}
			return err
		},
		func(ctx context.Context) error {
			return again.Try(ctx, passing, func() error { return s.openGate(ctx, c) })
		})
	return i == 0 && err == nil, err
}

// openGate completes the cutover of a candidacy that has sealed From, unless somebody else has. If
// From cannot be reached for a candidacy's patience, openGate leaves the records there behind: the
// gate must be taken away, and that does not need From.
func (s *session) openGate(ctx context.Context, c *candidacy) error {
	to, st := s.to(), c.now()
	r, err := to.Get(ctx, c.line)
	if err != nil {
		return err
	}
	h, err := header.Parse(r.Value)
	if err != nil {
		return err
	}
	if protocol.Gated(h) {
		from, err := s.keeping(ctx, protocol.From)
		if err == nil {
			err = s.notEnded(EndMove(ctx, Move{Election: c.line, From: from, To: to, Sealed: st.sealed, Guarded: c.guardedOnFrom(), Log: s.log}))
		}
		if err != nil && s.fromOver() != nil && time.Since(st.since) > s.b.patience(to.TTL()) {
			s.log.Warn("the old coordinator cannot be reached, so the records there were not carried over", "election", c.line, "err", err)
			err = EndMove(ctx, Move{Election: c.line, To: to, Sealed: st.sealed, Log: s.log})
		}
		if err != nil {
			return err
		}
	}
	c.change(func(st *standing) { st.open = true })
	return nil
}

// decide does what the records ask for. It reports whether From is sealed. The caller has the
// candidacy's turn.
func (s *session) decide(ctx context.Context, c *candidacy) (sealed bool, err error) {
	from, to := s.part(protocol.From), s.to()
	for {
		if err := s.alive(); err != nil {
			return false, err
		}
		// From's record is read before To's is confirmed: an abort rewrites From's record after
		// To's, and then the seal is refused.
		r, err := from.Get(ctx, c.line)
		if err != nil {
			return false, err
		}
		h, err := header.Parse(r.Value)
		if err != nil {
			return false, err
		}
		l, err := LineOn(ctx, to, c.line)
		if err != nil {
			return false, err
		}
		own := c.now().at
		choice, err := s.route.Lead(h, l, own)
		switch {
		case err != nil:
			return false, err
		case choice == protocol.SealedFrom:
			// This candidacy may have sealed it, and the answer was lost: then its own member is
			// pinned.
			own, err := s.isSeal(ctx, c)
			if err != nil {
				return false, err
			}
			if !own {
				return false, fmt.Errorf("%w: %s is sealed, and not by this process", backend.ErrHeader, s.route.From)
			}
			c.change(func(st *standing) { st.seal(h) })
			return true, nil
		case choice == protocol.StayOnFrom:
			if err := s.leaveTo(ctx, c, l.Header.Migration.ID); err != nil {
				return false, err
			}
			s.log.Info("the migration was aborted; leading on by the old coordinator alone", "election", c.line)
			return false, nil
		case choice == protocol.GoOn:
			return false, nil
		}
		if choice == protocol.RaiseTo {
			token, err := h.Token(own[protocol.From].Position)
			if err != nil {
				return false, err
			}
			if err := raise(ctx, to, own[protocol.To], token); err != nil {
				return false, err
			}
			continue
		}
		// To's record may come from a server that lags behind. If a write of the same record with
		// its version succeeds, it is up to date. The write also adds what a later version has put
		// into From's record: the leader must know of that when the gate has gone.
		_, err = to.Put(ctx, c.line, l.Header.WithLater(h).Encode(), &backend.If{Version: l.Version, Member: own[protocol.To]})
		if errors.Is(err, backend.ErrVersion) {
			continue
		}
		if err != nil {
			return false, err
		}
		h = protocol.SealOf(h, l.Header.Migration)
		err = s.sendSeal(ctx, c, h, r.Version)
		// ErrVersion may also mean: it was set, the answer was lost, and somebody else has written the record since.
		if !errors.Is(err, backend.ErrVersion) {
			return err == nil, err
		}
	}
}

// sendSeal seals From: if its record still has the version, it becomes h.
func (s *session) sendSeal(ctx context.Context, c *candidacy, h header.Header, at backend.Version) error {
	if err := c.writing.take(ctx); err != nil {
		return err
	}
	defer c.writing.release()
	was := c.sealAt.Swap(int64(at))
	err := s.part(protocol.From).Pin(ctx, c.now().at[protocol.From], h.Stored(), at)
	switch {
	case err == nil:
		c.sealAt.Store(0)
		c.change(func(st *standing) { st.seal(h) })
	case errors.Is(err, backend.ErrNotMember), errors.Is(err, backend.ErrDenied):
		c.sealAt.Store(was)
	}
	return err
}

// unsealed fails if the candidacy may have sealed From, or may still: then what is written there may be written after the records
// have been carried over, and it may not leave From by itself. Ahead finds the seal. The caller has the lock of the writes.
func (s *session) unsealed(ctx context.Context, c *candidacy) error {
	if c.sealAt.Load() == 0 {
		return nil
	}
	from := s.part(protocol.From)
	if err := from.Refresh(ctx); err != nil {
		return err
	}
	r, err := from.Get(ctx, c.line) // before the line: once the version is another one, the seal has been set, or never will be
	if err != nil {
		return err
	}
	own, err := s.isSeal(ctx, c)
	switch {
	case err != nil:
		return err
	case own || int64(r.Version) == c.sealAt.Load():
		return fmt.Errorf("%w: the election is being moved", backend.ErrUnavailable)
	}
	c.sealAt.Store(0)
	return nil
}

// isSeal reports whether the candidacy's member is the seal of From.
func (s *session) isSeal(ctx context.Context, c *candidacy) (bool, error) {
	l, err := s.part(protocol.From).Line(ctx, c.line)
	return err == nil && protocol.Index(l.Members, c.now().at[protocol.From]) == 0 && l.Members[0].Pinned, err
}

// A Move is a cutover that has been decided and must be completed.
type Move struct {
	Election string
	From     backend.Session // nil if the records there are left behind
	To       backend.Session
	Sealed   header.Header // From's record, as the seal has written it
	Guarded  []string      // records that this process itself has guarded; they are carried over with those in From's list
	Log      *slog.Logger
}

// EndMove is the second step of the cutover. If the same migration has sealed the election on From,
// it carries over the records that the leaders guard, takes the gate away, and then writes down
// that the election is on To. Anybody may do it, at any time and again.
func EndMove(ctx context.Context, m Move) error {
	// Somebody else may do the same: the gate has gone meanwhile, or a record is there.
	meanwhile := func(err error) bool { return written(err) || errors.Is(err, backend.ErrNotMember) }
	return again.Try(ctx, meanwhile, func() error {
		l, err := LineOn(ctx, m.To, m.Election)
		if err != nil {
			return err
		}
		h, goes := protocol.MovedOf(m.Sealed, l.Header)
		if !goes {
			return nil
		}
		if gate, stands := protocol.Gate(l); stands {
			if m.From != nil {
				err = m.carry(ctx, gate)
			}
			if err == nil {
				err = m.To.Leave(ctx, gate)
			}
		}
		if err == nil {
			_, err = m.To.Put(ctx, m.Election, h.Encode(), &backend.If{Version: l.Version})
		}
		return err
	})
}

// carry carries the records over, on condition that the gate stands. While it stands, nobody writes
// them on To: a client of To alone leads only when the gate has gone, and a leader that has sealed
// From waits for that, too. A late request finds no gate, and does nothing.
func (m *Move) carry(ctx context.Context, gate backend.Member) error {
	list, err := along.Read(ctx, m.From, m.Election)
	if err != nil {
		return err
	}
	before, _, _, err := along.ReadList(ctx, m.To, m.Election)
	if err != nil {
		return err
	}
	list = list.With(m.Guarded...)
	for _, name := range list.Unclaimed {
		if !list.Has(name) {
			m.Log.Warn("a record is not carried over", "election", m.Election, "record", name, "err", along.Unclaimed(m.Election, name))
		}
	}
	id := m.Sealed.Migration.ID
	names := list.Records
	if history := naming.OfElection(m.Election, naming.History); history != "" {
		names = append(slices.Clone(names), history)
	}
	// A leader does this for about a session time, and begins anew then. So what is done already must not take as long.
	err = again.AtOnce(ctx, len(names), func(ctx context.Context, i int) error {
		name := names[i]
		// If To's list has the record, it was left there when the election was last on To.
		err := carryOver(ctx, m.From, m.To, gate, along.Note{Record: name, Election: m.Election, Migration: id}, before.Has(name), list.Has(name))
		if along.Stays(err) {
			m.Log.Warn("a record of the election could not be carried over, and stays on the old coordinator", "election", m.Election, "record", name, "err", err)
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	if len(list.Records) > 0 {
		if _, err := along.Add(ctx, m.To, m.Election, gate, list.Records...); err != nil && !along.Stays(err) {
			return err
		}
	}
	return nil
}

// written reports whether somebody else has written at the same time.
func written(err error) bool { return errors.Is(err, backend.ErrVersion) }
