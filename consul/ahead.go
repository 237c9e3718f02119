package consul

import (
	"context"
	"slices"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// Ahead reads the line and the header in one snapshot; see [backend.Session]. For a member
// of this session it does so once, and later reads only what may have changed in front of
// the member; see [front]. Members that join a line at the same time share its readings. It blocks
// for about a round trip.
func (s *session) Ahead(ctx context.Context, m backend.Member) (p backend.Place, err error) {
	key, err := s.b.o.memberPath(m)
	if err != nil {
		return backend.Place{}, err
	}
	begun := time.Now()
	defer func() { s.watched(ctx, key, m, begun, err) }()
	ctx = urgent(ctx)
	if f := s.frontAt(key, m.Position); f != nil {
		if p, decided, err := s.step(ctx, m, key, f); decided || err != nil {
			return p, err
		}
	}
	line, alone, err := s.lookout.Enter(ctx, m.Line)
	if alone {
		line, err = s.Line(ctx, m.Line)
		s.lookout.Leave(m.Line)
	}
	if err != nil {
		return backend.Place{}, err
	}
	return s.placeIn(ctx, line, m)
}

// placeIn says where m stands in its line, as that was read.
func (s *session) placeIn(ctx context.Context, line backend.Line, m backend.Member) (backend.Place, error) {
	i := slices.IndexFunc(line.Members, func(o backend.Member) bool {
		return o.Position == m.Position && o.Key == m.Key
	})
	if i < 0 {
		return backend.Place{}, s.missing(ctx, m)
	}
	s.faces(s.b.o.folder(m.Line)+m.Key, m, frontOf(line.Members, i))
	var ahead *backend.Member
	if front := kit.Awaited(i, func(i int) bool { return line.Members[i].Shared }); front >= 0 {
		ahead = &line.Members[front]
	}
	return kit.PlaceOf(line.Members[i], ahead, line.Header)
}

// missing says why m is not in line. If this session has joined m, the session may have ended, and
// its members with it.
func (s *session) missing(ctx context.Context, m backend.Member) error {
	if !s.owns(m) {
		return backend.ErrNotMember
	}
	err := s.retry(ctx, func(ctx context.Context) error {
		id := s.present().id
		known, err := s.b.c.knows(ctx, id)
		if err == nil && !known {
			err = s.unknown(id)
		}
		return err
	})
	if err != nil {
		return err
	}
	return backend.ErrNotMember
}
