package local

import (
	"bytes"
	"context"
	"fmt"

	"github.com/succession-dev/succession/backend"
)

// Pin pins m and writes the header of its election, which are in one file; see
// [backend.Session]. If m is pinned and the header is hd already, Pin does nothing, whatever
// the version. If another session joined m, it fails with [backend.ErrDenied].
func (s *session) Pin(ctx context.Context, m backend.Member, hd backend.Header, at backend.Version) error {
	return s.write(ctx, func(ctx context.Context, h *hold) error {
		im, err := s.dir.read(m.Line)
		if err != nil {
			return err
		}
		newest, err := im.newest()
		if err != nil {
			return err
		}
		st, err := im.whole()
		if err != nil {
			return err
		}
		i := st.index(m)
		if i < 0 {
			return backend.ErrNotMember
		}
		if stands, err := s.dir.stands(st.members[i]); err != nil {
			return err
		} else if !stands {
			return backend.ErrNotMember
		}
		own := s.own(m)
		record := hd.Encode()
		if st.members[i].Pinned {
			if bytes.Equal(st.record, record) {
				return s.dir.confirm(m.Line)
			}
		} else if own == nil {
			return fmt.Errorf("%w: member %s was joined by another session", backend.ErrDenied, m.Key)
		}
		if st.version != at {
			return backend.ErrVersion
		}
		version, err := s.dir.next(ctx, h, newest)
		if err != nil {
			return err
		}
		st.members[i].Pinned = true
		st.record, st.version = record, backend.Version(version)
		if own != nil {
			// If store fails, @state may nevertheless list m as pinned: so its FIFO must
			// outlive the session. If it does not, a later Join removes the FIFO.
			s.mu.Lock()
			left := s.places[m.Position] != own // it needs no lock to leave
			own.pinned = !left
			s.mu.Unlock()
			if left {
				return backend.ErrNotMember
			}
		}
		// m also stays in @line until a later Join takes it out there.
		im.set(st)
		if err := s.dir.store(im); err != nil {
			return err
		}
		// This wakes the watchers of the FIFO.
		if d, err := s.dir.dir(m.Line); err == nil {
			d.touch(fifoName(m.Position))
			d.close()
		}
		return nil
	}, claim{m.Line, decide})
}

// hasPinned reports whether this session pinned m.
func (s *session) hasPinned(m backend.Member) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.places[m.Position]
	return p != nil && p.pinned
}

// pinned reports whether m is pinned. Once the session that joined m has let go of it, that no
// longer changes: only that session could pin m.
func (f *folder) pinned(m backend.Member) (bool, error) {
	_, pins, err := f.record(m.Line)
	if err != nil {
		return false, err
	}
	_, ok, err := pins.get(m.Position)
	return ok, err
}
