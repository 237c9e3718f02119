package local

import (
	"context"

	"github.com/succession-dev/succession/backend"
)

// Line returns the whole line; see [backend.Session]. It tests the lock of each
// member.
func (s *session) Line(ctx context.Context, line string) (backend.Line, error) {
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

// Head returns the line with its first member alone; see [backend.Session]. It tests the locks of
// that member and of the gone members in front of it.
func (s *session) Head(ctx context.Context, line string) (backend.Line, error) {
	l, gone, err := s.dir.headOf(line)
	if gone {
		err = s.settled(ctx, line, func() error {
			l, _, err = s.dir.headOf(line)
			return err
		})
	}
	return l, err
}

// headOf reads the head of a line. gone says that a member has gone: then the answer counts only if
// nobody decides in the line meanwhile.
func (f *folder) headOf(line string) (l backend.Line, gone bool, err error) {
	im, err := f.read(line)
	if err != nil {
		return l, false, err
	}
	l.Version = im.version
	if l.Header, err = im.header(); err != nil {
		return l, false, err
	}
	for at := 0; at < len(im.line.text) && len(l.Members) == 0; {
		var m backend.Member
		if m, at, err = im.line.member(at); err != nil {
			return l, false, err
		}
		stands, err := f.stands(m)
		if err != nil {
			return l, false, err
		}
		if stands {
			l.Members = append(l.Members, m)
		}
		gone = gone || !stands
	}
	return l, gone, nil
}

// lineOf returns the state of a line without the members that have gone.
//
// Whether a member has gone is decided under the line's lock, for two reasons. If a member
// was pinned and its process then died, a state that was read before would make it look
// dead. And a write on condition of the member might still be under way.
func (s *session) lineOf(ctx context.Context, line string) (*state, error) {
	st, err := s.dir.load(line)
	if err != nil {
		return nil, err
	}
	listed := len(st.members)
	if err := s.dir.drop(st); err != nil || len(st.members) == listed {
		return st, err
	}
	return st, s.settled(ctx, line, func() error {
		if st, err = s.dir.load(line); err != nil {
			return err
		}
		return s.dir.drop(st)
	})
}

// settled runs fn while nobody decides in the line.
func (s *session) settled(ctx context.Context, line string, fn func() error) error {
	if done, err := s.dir.lookAt(line, fn); done {
		return err
	}
	ctx, cancel := s.bounded(ctx, line)
	defer cancel()
	h, err := s.dir.acquire(ctx, claim{line, look})
	if err != nil {
		return err
	}
	defer h.release()
	return fn()
}
