package local

import (
	"context"

	"github.com/succession-dev/succession/backend"
)

// Ahead says who stands just in front of m; see [backend.Session]. It reads one file, and
// tests the locks of m and of the members in front of it that it would wait for, from the
// nearest on, until it finds one that stands.
func (s *session) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, gone, err := s.b.placeOf(m)
	if gone {
		err = s.settled(ctx, m.Line, func() (err error) {
			p, _, err = s.b.placeOf(m)
			return err
		})
	}
	return p, err
}

// placeOf says who stands in front of m. gone says that m, or a member in front of it, has
// gone: then the answer counts only if it is found under the line's lock.
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
		if st.members[i].Shared && st.members[j].Shared {
			continue
		}
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
