package zookeeper

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// maxReads bounds how many reads of one call are under way at a time.
const maxReads = 16

// Line implements [backend.Session]. It reads every member, so its cost grows with
// the length of the line.
func (s *session) Line(ctx context.Context, line string) (backend.Line, error) {
	return kit.Retry(ctx, pauses(), passing, func(ctx context.Context) (backend.Line, error) { return s.readLine(ctx, line, false) })
}

// Head implements [backend.Session]. It reads the list of names, and then the first member
// and the header.
func (s *session) Head(ctx context.Context, line string) (backend.Line, error) {
	return kit.Retry(ctx, pauses(), passing, func(ctx context.Context) (backend.Line, error) { return s.readLine(ctx, line, true) })
}

var errChanged = errors.New("changed while it was read")

// passing reports whether reading again may help.
func passing(err error) bool { return isLost(err) || errors.Is(err, errChanged) }

func (s *session) readLine(ctx context.Context, name string, headOnly bool) (backend.Line, error) {
	all, err := do(ctx, s, children(s.options.path(name)))
	if err == zk.ErrNoNode {
		return backend.Line{Version: backend.Absent}, nil
	}
	if err != nil {
		return backend.Line{}, err
	}
	if headOnly {
		return s.readFirst(ctx, name, all)
	}
	return s.readMembers(ctx, name, all, nil)
}

// readFirst is readMembers for the first of the children that are members. If it has left meanwhile, readFirst looks
// which of those behind it have left too, and goes on with the next one: nobody joins in front of that. So it makes
// progress also if they leave faster than the line can be listed.
func (s *session) readFirst(ctx context.Context, name string, all listing) (backend.Line, error) {
	standing, err := places(all.names)
	if err != nil || len(standing) == 0 {
		return s.readMembers(ctx, name, all, nil)
	}
	for len(standing) > 0 {
		all.names = []string{standing[0].key}
		l, err := s.readMembers(ctx, name, all, nil)
		if err != nil || len(l.Members) > 0 {
			return l, err
		}
		standing = standing[1:]
		var paths []string
		for _, p := range standing[:min(maxReads, len(standing))] {
			paths = append(paths, s.options.path(name)+"/"+p.key)
		}
		nodes, err := s.getAll(ctx, paths)
		if err != nil {
			return l, err
		}
		for len(nodes) > 0 && nodes[0].stat == nil {
			nodes, standing = nodes[1:], standing[1:]
		}
	}
	return backend.Line{}, fmt.Errorf("%s: %w", name, errChanged)
}

// readMembers returns the line whose children are all. It takes from known those members that
// still stand, and reads the others and the header. If the same stand as in known, it reads
// nothing.
func (s *session) readMembers(ctx context.Context, name string, all listing, known []backend.Member) (backend.Line, error) {
	l, line := backend.Line{Version: backend.Absent}, s.options.path(name)
	standing, err := places(all.names)
	if err != nil {
		return l, err
	}
	byKey := make(map[string]backend.Member, len(known))
	for _, m := range known {
		if m.Position > uint64(all.stat.Czxid) { // otherwise the line was made anew, and its numbers begin again
			byKey[m.Key] = m
		}
	}
	var paths []string
	for _, p := range standing {
		if _, ok := byKey[p.key]; !ok {
			paths = append(paths, line+"/"+p.key)
		}
	}
	if len(paths) == 0 && len(standing) == len(known) && len(known) > 0 {
		return backend.Line{Members: known}, nil
	}
	header, err := start(ctx, s, get(line))
	if err != nil {
		return l, err
	}
	nodes, err := s.getAll(ctx, paths)
	if err != nil {
		return l, err
	}
	var newest int64 // transaction that pinned one of them
	for _, p := range standing {
		m, ok := byKey[p.key]
		if !ok {
			n := nodes[0]
			nodes = nodes[1:]
			if n.stat == nil {
				continue // left meanwhile
			}
			m = n.member(name, p.key)
			if m.Pinned && m.Position != uint64(n.stat.Czxid) { // else it is an item
				newest = max(newest, n.stat.Czxid)
			}
		}
		l.Members = append(l.Members, m)
	}
	record, err := header.wait(ctx)
	if err == nil && record.stat.Mzxid < newest {
		// The member was pinned between the two reads, and Pin writes the header too.
		record, err = do(ctx, s, get(line))
	}
	if err == nil && record.stat.Czxid != all.stat.Czxid {
		err = zk.ErrNoNode
	}
	if err == zk.ErrNoNode {
		return l, fmt.Errorf("%s: %w", line, errChanged)
	}
	if err != nil {
		return l, err
	}
	l.Version = version(record)
	l.Header, err = backend.ParseHeader(decode(record.data))
	return l, err
}

// getAll reads the znodes. It returns the zero node for one that does not exist.
func (s *session) getAll(ctx context.Context, paths []string) ([]node, error) {
	return readAll(ctx, s, paths, get)
}

// readAll reads something of each of the znodes, at most maxReads at a time. For one that does not
// exist it returns the zero value.
func readAll[T any](ctx context.Context, s *session, paths []string, read func(path string) func(*zk.Conn) (T, error)) ([]T, error) {
	all := make([]T, len(paths))
	calls := make([]call[T], len(paths))
	for i := range len(paths) + maxReads {
		if i >= maxReads && i-maxReads < len(paths) {
			v, err := calls[i-maxReads].wait(ctx)
			switch err {
			case nil:
				all[i-maxReads] = v
			case zk.ErrNoNode:
			default:
				return nil, err
			}
		}
		if i < len(paths) {
			var err error
			if calls[i], err = start(ctx, s, read(paths[i])); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}
