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
	l, _, err := s.lineAnd(ctx, line)
	return l, err
}

// lineAnd is Line that also runs these operations, which must be reads, at the same instant.
func (s *session) lineAnd(ctx context.Context, line string, ops ...*api.KVTxnOp) (backend.Line, *result, error) {
	folder := s.b.o.folder(line)
	r, l, err := s.read(ctx, line, append(ops, &api.KVTxnOp{Verb: api.KVGetTree, Key: folder})...)
	if err != nil {
		return backend.Line{}, nil, err
	}
	l.Members = membersOf(line, folder, r.pairs)
	s.disown(l.Members)
	if n := len(l.Members); n > 0 {
		s.b.history.saw(l.Members[n-1].Position, folder)
	}
	return l, r, nil
}

// Imported returns the members that no session of this log has ever locked; see [backend.Session]. A
// gate, a seal and an item were locked once. An import into a line in use also writes existing
// keys: Consul then counts their locks from 0 again, but their sessions still hold them. Such a
// member counts as imported only when its session no longer holds it. Imported blocks for about a
// round trip.
func (s *session) Imported(ctx context.Context, line string) ([]backend.Member, error) {
	folder := s.b.o.folder(line)
	r, _, err := s.read(ctx, line, &api.KVTxnOp{Verb: api.KVGetTree, Key: folder})
	if err != nil {
		return nil, err
	}
	return membersOf(line, folder, slices.DeleteFunc(r.pairs, func(p *api.KVPair) bool { return p.LockIndex != 0 || p.Session != "" })), nil
}

// Lines returns the names of the lines that have members; see [backend.Session]. It reads the names
// of all keys below the prefix.
func (s *session) Lines(ctx context.Context) (map[string]int, error) {
	prefix := s.b.o.below()
	var keys []string
	err := s.retry(ctx, func(ctx context.Context) (err error) {
		keys, _, err = s.b.c.below(ctx, prefix)
		return err
	})
	lines := make(map[string]int)
	for _, key := range keys {
		path := strings.TrimPrefix(key, prefix)
		at := max(strings.LastIndexByte(path, '/'), 0)
		if line := path[:at]; isMemberKey(path[min(at+1, len(path)):]) && checkName(line) == nil {
			lines[line]++
		}
	}
	return lines, err
}

// Survey returns what is at each name; see [backend.Session]. It reads all keys below the prefix,
// with their values.
func (s *session) Survey(ctx context.Context) (map[string]backend.Standing, error) {
	prefix := s.b.o.below()
	var pairs api.KVPairs
	err := s.retry(ctx, func(ctx context.Context) (err error) {
		pairs, _, err = s.b.c.list(ctx, prefix)
		return err
	})
	all := make(map[string]backend.Standing)
	at := func(name string) backend.Standing {
		if st, ok := all[name]; ok {
			return st
		}
		return backend.Standing{Record: backend.Record{Name: name, Version: backend.Absent}}
	}
	for _, p := range pairs {
		name := strings.TrimPrefix(p.Key, prefix)
		slash := max(strings.LastIndexByte(name, '/'), 0)
		if line := name[:slash]; isMemberKey(name[min(slash+1, len(name)):]) && checkName(line) == nil {
			m, st := memberOf(line, s.b.o.folder(line), p), at(line)
			if st.Stand++; st.Stand == 1 || m.Position < st.First.Position || m.Position == st.First.Position && m.Key < st.First.Key {
				st.First = m
			}
			all[line] = st
		} else if checkName(name) == nil {
			st := at(name)
			st.Record.Version, st.Record.Value = backend.Version(p.ModifyIndex), p.Value
			all[name] = st
		}
	}
	return all, err
}

// read runs the operations, which must be reads, and reads the header of the line, at one
// instant. The line that it returns has no members.
func (s *session) read(ctx context.Context, line string, ops ...*api.KVTxnOp) (r *result, l backend.Line, err error) {
	record := s.b.o.key(line)
	ops = append(ops, &api.KVTxnOp{Verb: api.KVGetOrEmpty, Key: record})
	l.Version = backend.Absent
	err = s.retry(ctx, func(ctx context.Context) (err error) {
		floor := s.b.history.floor(record)
		if r, err = s.b.c.read(ctx, ops...); err != nil {
			return err
		}
		if p := r.find(record); p != nil {
			if err = s.b.history.changed(record, floor, p.ModifyIndex); err == nil {
				l.Version = backend.Version(p.ModifyIndex)
				l.Header, err = backend.ParseHeader(p.Value)
			}
		}
		return err
	})
	return r, l, s.heed(err)
}

// gets returns the operations that read these keys, as far as they exist.
func gets(keys ...string) []*api.KVTxnOp {
	ops := make([]*api.KVTxnOp, len(keys))
	for i, key := range keys {
		ops[i] = &api.KVTxnOp{Verb: api.KVGetOrEmpty, Key: key}
	}
	return ops
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
