package local

import (
	"context"
	"fmt"

	"github.com/succession-dev/succession/backend"
)

// Leave removes m; see [backend.Session]. If this session joined m, and m is not pinned,
// Leave takes no lock and writes nothing. If another session joined m, it fails with
// [backend.ErrDenied].
func (s *session) Leave(ctx context.Context, m backend.Member) error {
	s.mu.Lock()
	p := s.places[m.Position]
	own := p != nil && !p.pinned && p.line == m.Line
	if own && p.lent {
		// Who has the FIFO open makes it look as if m stood, so it goes first, and m stands if that fails.
		s.mu.Unlock()
		if err := p.remove(); err != nil {
			return err
		}
		s.mu.Lock()
		own = s.places[m.Position] == p && !p.pinned
	}
	if own {
		delete(s.places, m.Position)
		p.letGo()
		s.mu.Unlock()
		s.b.watches.wake(p.path) // in this process the poller would report it only when no goroutine has anything to do
		_ = p.remove()           // this may take as long as the disk does; if it fails, a later Join removes the FIFO
		p.finish()
		return nil
	}
	s.mu.Unlock()
	return s.write(ctx, func(context.Context, *hold) error { return s.unpin(m) }, claim{m.Line, decide})
}

// unpin removes a pinned member of any session. The caller holds the line's lock.
func (s *session) unpin(m backend.Member) error {
	im, err := s.dir.read(m.Line)
	if err != nil {
		return err
	}
	listed, ok, err := im.line.get(m.Position)
	if err != nil {
		return err
	}
	own := s.own(m)
	switch {
	case !ok:
		if m.Pinned {
			return s.dir.confirm(m.Line)
		}
		return nil
	case listed.Pinned:
		// It may also be in @line, where Pin has left it. There it goes first: so it is never one that is not pinned.
		if err := s.dir.takeOut(im, m.Position); err != nil {
			return err
		}
		for _, l := range []*lines{&im.pins, &im.line} {
			if _, err := l.remove(m.Position); err != nil {
				return err
			}
		}
		if err := s.dir.store(im); err != nil {
			return err
		}
	case own == nil:
		if is, err := s.dir.probe(m); err != nil || is != held {
			return err
		}
		return fmt.Errorf("%w: member %s was joined by another session", backend.ErrDenied, m.Key)
	}
	if own != nil {
		s.mu.Lock()
		delete(s.places, m.Position)
		s.mu.Unlock()
		own.letGo()
		own.finish()
	}
	if err := s.dir.remove(m.Line, m.Position); err != nil {
		return err
	}
	if len(im.line.text) == 0 && im.version == backend.Absent {
		s.dir.tidy(m.Line)
	}
	return nil
}

// own returns the place of a member that the session holds, or nil.
func (s *session) own(m backend.Member) *place {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.places[m.Position]; p != nil && p.line == m.Line {
		return p
	}
	return nil
}
