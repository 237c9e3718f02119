package zookeeper

import (
	"context"
	"errors"
	"fmt"

	"github.com/succession-dev/succession/backend"
)

// maxReads bounds the reads of one call that are under way at a time.
const maxReads = 16

// Line implements [backend.Session]. It reads every member, so its cost grows with
// the length of the line.
func (s *session) Line(ctx context.Context, line string) (backend.Line, error) {
	l, err := s.readLine(ctx, line)
	return l, fail("line", line, err)
}

func (s *session) readLine(ctx context.Context, name string) (backend.Line, error) {
	none := backend.Line{Version: backend.Absent}
	if err := backend.CheckName(name); err != nil {
		return none, err
	}
	ctx, release := s.bind(ctx)
	defer release()
	line := s.options.path(name)
	for try := 0; ; try++ {
		l, err := s.readLineOnce(ctx, name, line)
		if !errors.Is(err, errLost) && !errors.Is(err, errChanged) {
			return l, err
		}
		if err := pause(ctx, try); err != nil {
			return none, err
		}
	}
}

var errChanged = errors.New("changed while it was read")

func (s *session) readLineOnce(ctx context.Context, name, line string) (backend.Line, error) {
	l := backend.Line{Version: backend.Absent}
	all, err := do(ctx, s, children(line))
	if err == errNoNode {
		return l, nil
	}
	if err != nil {
		return l, err
	}
	standing, err := places(all.names)
	if err != nil {
		return l, err
	}
	paths := make([]string, len(standing))
	for i, p := range standing {
		paths[i] = line + "/" + p.key
	}
	nodes, err := s.getAll(ctx, paths)
	if err != nil {
		return l, err
	}
	for i, n := range nodes {
		if n.stat == nil {
			continue // left meanwhile
		}
		l.Members = append(l.Members, n.member(name, standing[i].key))
	}
	record, err := do(ctx, s, get(line))
	if err == nil && record.stat.Czxid != all.stat.Czxid {
		err = errNoNode
	}
	if err == errNoNode {
		return l, fmt.Errorf("%s: %w", line, errChanged)
	}
	if err != nil {
		return l, err
	}
	l.Version = version(record)
	l.Header, err = backend.ParseHeader(decode(record.data))
	return l, err
}

// getAll reads the znodes, some at a time. One that does not exist is the zero
// node.
func (s *session) getAll(ctx context.Context, paths []string) ([]node, error) {
	nodes := make([]node, len(paths))
	calls := make([]call[node], len(paths))
	for i := range len(paths) + maxReads {
		if i >= maxReads && i-maxReads < len(paths) {
			n, err := calls[i-maxReads].wait(ctx)
			switch err {
			case nil:
				nodes[i-maxReads] = n
			case errNoNode:
			default:
				return nil, err
			}
		}
		if i < len(paths) {
			var err error
			if calls[i], err = start(ctx, s, get(paths[i])); err != nil {
				return nil, err
			}
		}
	}
	return nodes, nil
}
