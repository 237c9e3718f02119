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
		return s.b.headerIn(r, record, floor, &l)
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

// headerIn reads the header into l from an answer that has the record, if there is one.
// floor is what the history said when the request was sent.
func (b *Backend) headerIn(r *result, record string, floor uint64, l *backend.Line) error {
	p := r.find(record)
	if p == nil {
		return nil
	}
	err := b.history.changed(record, floor, p.ModifyIndex)
	if err == nil {
		l.Version = backend.Version(p.ModifyIndex)
		l.Header, err = backend.ParseHeader(p.Value)
	}
	return err
}

// membersOf returns those of the entries that are members of the line, in order.
func membersOf(line, folder string, pairs []*api.KVPair) []backend.Member {
	var members []backend.Member
	for _, p := range pairs {
		if key, ok := strings.CutPrefix(p.Key, folder); ok && isMemberKey(key) {
			members = append(members, memberOf(line, folder, p))
		}
	}
	slices.SortFunc(members, func(a, b backend.Member) int {
		return cmp.Or(cmp.Compare(a.Position, b.Position), cmp.Compare(a.Key, b.Key))
	})
	return members
}

// memberOf returns the member that has this entry in the line's folder.
func memberOf(line, folder string, p *api.KVPair) backend.Member {
	key := p.Key[len(folder):]
	return backend.Member{
		Line:     line,
		Key:      key,
		Position: p.CreateIndex,
		Value:    string(p.Value),
		Shared:   isShared(key),
		Pinned:   p.Session == "",
	}
}
