package local

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/succession-dev/succession/backend"
)

// Ahead says who stands just in front of m; see [backend.Session]. It reads one
// file and tests the locks of m and of those in front of it until it finds one
// that is held.
func (s *Session) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.ahead(ctx, m)
	return p, wrap("ahead", m.Line, err)
}

func (s *Session) ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	if err := backend.CheckName(m.Line); err != nil {
		return backend.Place{}, err
	}
	if err := s.usable(ctx); err != nil {
		return backend.Place{}, err
	}
	p, gone, err := s.b.placeOf(m)
	if gone {
		err = s.settled(ctx, m.Line, func() (err error) {
			p, _, err = s.b.placeOf(m)
			return err
		})
	}
	return p, err
}

// placeOf says who stands in front of m, and whether that followed from anybody,
// m included, having gone: then it must be decided under the line's lock.
func (b *Backend) placeOf(m backend.Member) (p backend.Place, gone bool, err error) {
	st, err := b.loadTo(m.Line, m.Position)
	if err != nil {
		return p, false, err
	}
	i := st.index(m)
	if i < 0 {
		return p, false, backend.ErrNotMember
	}
	stands, err := b.stands(st.members[i])
	if err != nil {
		return p, false, err
	}
	if !stands {
		return p, true, backend.ErrNotMember
	}
	header, err := st.header()
	if err != nil {
		return p, false, err
	}
	var ahead *backend.Member
	for j := i - 1; j >= 0 && ahead == nil; j-- {
		stands, err := b.stands(st.members[j])
		switch {
		case err != nil:
			return p, false, err
		case stands:
			ahead = &st.members[j]
		default:
			gone = true
		}
	}
	p, err = backend.PlaceOf(st.members[i], ahead, header)
	return p, gone, err
}

// Line returns the whole line; see [backend.Session]. It tests the lock of each
// member.
func (s *Session) Line(ctx context.Context, line string) (backend.Line, error) {
	l, err := s.line(ctx, line)
	return l, wrap("line", line, err)
}

func (s *Session) line(ctx context.Context, line string) (backend.Line, error) {
	if err := backend.CheckName(line); err != nil {
		return backend.Line{}, err
	}
	if err := s.usable(ctx); err != nil {
		return backend.Line{}, err
	}
	st, err := s.lineOf(ctx, line)
	if err != nil {
		return backend.Line{}, err
	}
	header, err := st.header()
	if err != nil {
		return backend.Line{}, err
	}
	return backend.Line{Members: st.members, Header: header, Version: st.version}, nil
}

// Gone blocks until m has gone; see [backend.Session]. It also returns when m is
// pinned and the caller cannot know: m does not say so, and this session did not do
// it. It holds one descriptor and no goroutine of its own.
func (s *Session) Gone(ctx context.Context, m backend.Member) error {
	return wrap("gone", m.Line, s.gone(ctx, m))
}

func (s *Session) gone(ctx context.Context, m backend.Member) error {
	if err := backend.CheckName(m.Line); err != nil {
		return err
	}
	if err := s.usable(ctx); err != nil {
		return err
	}
	path := s.b.dir.fifo(m.Line, m.Position)
	file, err := openFIFO(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()

	bell := newBell()
	wake := func() {
		bell.ring()
		file.SetReadDeadline(time.Unix(1, 0)) // long past: Read returns
	}
	defer s.b.watches.watch(path, wake)()
	defer context.AfterFunc(ctx, wake)()
	defer context.AfterFunc(s.ctx, wake)()

	known := m.Pinned || s.hasPinned(m)
	let := false // the owner has let go: only a pin keeps m in line
	for {
		// A wake before this line is seen by the checks after it, a later one by Read.
		if err := file.SetReadDeadline(time.Time{}); err != nil {
			return err
		}
		if err := s.usable(ctx); err != nil {
			return err
		}
		if _, err := os.Lstat(path); err != nil {
			if errors.Is(err, os.ErrNotExist) {
				return nil
			}
			return err
		}
		pinned, err := s.b.pinned(m)
		if err != nil || pinned && !known || let && !pinned {
			return err // if pinned, perhaps with a seal: those who wait should know
		}
		if let {
			<-bell // it rings for ctx and the session, too
			continue
		}
		var strangers [64]byte // nobody should write to a FIFO of ours
		switch _, err := file.Read(strangers[:]); {
		case err == io.EOF:
			let = true
		case err != nil && !errors.Is(err, os.ErrDeadlineExceeded):
			return err
		}
	}
}

// hasPinned reports whether this session pinned m.
func (s *Session) hasPinned(m backend.Member) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.places[m.Position]
	return p != nil && p.pinned
}

// pinned reports whether m is pinned. Of a member whose owner has let go of it that
// is the last word: only the owner can have pinned it, before it let go.
func (b *Backend) pinned(m backend.Member) (bool, error) {
	st, err := b.loadTo(m.Line, m.Position)
	if err != nil {
		return false, err
	}
	i := st.index(m)
	return i >= 0 && st.members[i].Pinned, nil
}

// Joined blocks until somebody stands in the line; see [backend.Session].
func (s *Session) Joined(ctx context.Context, line string) error {
	return wrap("joined", line, s.follow(ctx, line, func() (bool, error) {
		st, err := s.lineOf(ctx, line)
		return err == nil && len(st.members) > 0, err
	}))
}
