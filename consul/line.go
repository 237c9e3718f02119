package consul

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/backend"
)

// Ahead reads the line and the election's record in one snapshot; see
// [backend.Session]. It blocks for about a round trip.
func (s *session) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.ahead(ctx, m)
	return p, fail("ahead", m.Line, err)
}

func (s *session) ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	if _, err := s.path(ctx, m); err != nil {
		return backend.Place{}, err
	}
	line, err := s.look(ctx, m.Line)
	if err != nil {
		return backend.Place{}, err
	}
	i := slices.IndexFunc(line.Members, func(o backend.Member) bool {
		return o.Position == m.Position && o.Key == m.Key
	})
	if i < 0 {
		return backend.Place{}, s.missing(ctx, m)
	}
	var ahead *backend.Member
	if i > 0 {
		ahead = &line.Members[i-1]
	}
	return backend.PlaceOf(line.Members[i], ahead, line.Header)
}

// missing says why m is not in line: with a session all its members go.
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

// Line returns the whole line and the election's record, in one snapshot; see
// [backend.Session]. It blocks for about a round trip.
func (s *session) Line(ctx context.Context, line string) (backend.Line, error) {
	var l backend.Line
	err := s.check(ctx, line)
	if err == nil {
		l, err = s.look(ctx, line)
	}
	return l, fail("line", line, err)
}

func (s *session) look(ctx context.Context, line string) (backend.Line, error) {
	folder, record := s.b.o.folder(line), s.b.o.key(line)
	l := backend.Line{Version: backend.Absent}
	err := s.retry(ctx, func(ctx context.Context) error {
		floor := s.b.history.floor(record)
		r, err := s.b.c.read(ctx,
			&api.KVTxnOp{Verb: api.KVGetTree, Key: folder},
			&api.KVTxnOp{Verb: api.KVGetOrEmpty, Key: record},
		)
		if err != nil {
			return err
		}
		l.Members = membersOf(line, folder, r.pairs)
		if p := r.find(record); p != nil {
			if err := s.b.history.changed(record, floor, p.ModifyIndex); err != nil {
				return err
			}
			l.Version = backend.Version(p.ModifyIndex)
			l.Header, err = backend.ParseHeader(p.Value)
		}
		return err
	})
	if err != nil {
		return backend.Line{}, s.heed(ctx, err)
	}
	s.disown(l.Members)
	if n := len(l.Members); n > 0 {
		s.b.history.saw(l.Members[n-1].Position, folder)
	}
	return l, nil
}

// membersOf returns those of the entries that are members of the line, in order.
func membersOf(line, folder string, pairs []*api.KVPair) []backend.Member {
	var members []backend.Member
	for _, p := range pairs {
		key, ok := strings.CutPrefix(p.Key, folder)
		if !ok || !isMemberKey(key) {
			continue
		}
		members = append(members, backend.Member{
			Line:     line,
			Key:      key,
			Position: p.CreateIndex,
			Value:    string(p.Value),
			Pinned:   p.Session == "",
		})
	}
	slices.SortFunc(members, func(a, b backend.Member) int {
		return cmp.Or(cmp.Compare(a.Position, b.Position), cmp.Compare(a.Key, b.Key))
	})
	return members
}
