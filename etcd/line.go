package etcd

import (
	"context"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/succession-dev/succession/backend"
)

// Line returns the whole line in order; see [backend.Session].
func (s *session) Line(ctx context.Context, line string) (backend.Line, error) {
	l, _, err := s.line(ctx, line, 0)
	return l, err
}

// Head returns the line with its first member alone; see [backend.Session]. It reads the
// oldest key, and all of them only if that is not the key of a member.
func (s *session) Head(ctx context.Context, line string) (backend.Line, error) {
	l, resp, err := s.line(ctx, line, 1)
	if err == nil && len(l.Members) == 0 && len(rangeOf(resp, 0).Kvs) > 0 {
		l, _, err = s.line(ctx, line, 0)
		l.Members = l.Members[:min(1, len(l.Members))]
	}
	return l, err
}

// Lines returns the names of the lines in which somebody stands; see [backend.Session]. It reads
// all keys below the prefix.
func (s *session) Lines(ctx context.Context) (map[string]int, error) {
	resp, err := s.read(ctx, clientv3.OpGet(s.b.o.Prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly()))
	if err != nil {
		return nil, err
	}
	lines := make(map[string]int)
	for _, kv := range rangeOf(resp, 0).Kvs {
		path := strings.TrimPrefix(string(kv.Key), s.b.o.Prefix)
		at := max(strings.LastIndexByte(path, '/'), 0)
		if line := path[:at]; backend.CheckName(line) == nil {
			if _, ok := s.b.memberOf(line, kv); ok || anyMember.MatchString(path[at+1:]) { // leases are not shown
				lines[line]++
			}
		}
	}
	return lines, nil
}

// Survey returns what is at each name; see [backend.Session]. It reads all keys below the prefix,
// with their values.
func (s *session) Survey(ctx context.Context) (map[string]backend.Standing, error) {
	resp, err := s.read(ctx, clientv3.OpGet(s.b.o.Prefix, clientv3.WithPrefix()))
	if err != nil {
		return nil, err
	}
	all := make(map[string]backend.Standing)
	at := func(name string) backend.Standing {
		if st, ok := all[name]; ok {
			return st
		}
		return backend.Standing{Record: backend.Record{Name: name, Version: backend.Absent}}
	}
	for _, kv := range rangeOf(resp, 0).Kvs {
		name := strings.TrimPrefix(string(kv.Key), s.b.o.Prefix)
		line := name[:max(strings.LastIndexByte(name, '/'), 0)]
		if backend.CheckName(line) == nil {
			if m, ok := s.b.memberOf(line, kv); ok {
				st := at(line)
				if st.Stand++; st.Stand == 1 || m.Position < st.First.Position {
					st.First = m
				}
				all[line] = st
				continue
			}
		}
		if backend.CheckName(name) == nil {
			st := at(name)
			st.Record.Version, st.Record.Value = backend.Version(kv.ModRevision), kv.Value
			all[name] = st
		}
	}
	return all, nil
}

// line reads the oldest keys of the line, at most as many as limit says if that is not 0, and
// the header.
func (s *session) line(ctx context.Context, line string, limit int64) (l backend.Line, resp *clientv3.TxnResponse, err error) {
	resp, err = s.read(ctx,
		clientv3.OpGet(s.b.folder(line), clientv3.WithPrefix(), clientv3.WithLimit(limit),
			clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend)),
		clientv3.OpGet(s.b.record(line)),
	)
	if err != nil {
		return l, nil, err
	}
	l.Members = s.b.membersOf(line, rangeOf(resp, 0).Kvs)
	l.Version = versionOf(rangeOf(resp, 1))
	l.Header, err = headerOf(rangeOf(resp, 1))
	return l, resp, err
}

// membersOf returns those of the keys that are members of the line.
func (b *Backend) membersOf(line string, kvs []*mvccpb.KeyValue) (members []backend.Member) {
	for _, kv := range kvs {
		if m, ok := b.memberOf(line, kv); ok {
			members = append(members, m)
		}
	}
	return members
}
