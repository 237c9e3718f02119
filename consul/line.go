package consul

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/backend"
)

// Line returns the whole line and the header, in one snapshot; see [backend.Session]. It
// blocks for about a round trip.
func (s *session) Line(ctx context.Context, line string) (backend.Line, error) {
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
		return backend.Line{}, s.heed(err)
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
			Shared:   isShared(key),
			Pinned:   p.Session == "",
		})
	}
	slices.SortFunc(members, func(a, b backend.Member) int {
		return cmp.Or(cmp.Compare(a.Position, b.Position), cmp.Compare(a.Key, b.Key))
	})
	return members
}
