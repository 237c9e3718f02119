package zookeeper

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// Lines returns the names of the lines in which somebody stands; see [backend.Session]. ZooKeeper
// lists the children of one znode at a time, so this is a request for each znode below the prefix
// that is no member. Those of one level go out together. Everybody may read what this driver makes, so a znode that
// may not be read is a stranger's, and no line.
func (s *session) Lines(ctx context.Context) (map[string]int, error) {
	return kit.Retry(ctx, pauses(), isLost, s.lines)
}

func (s *session) lines(ctx context.Context) (map[string]int, error) {
	found := make(map[string]int)
	level, paths := []string{""}, []string{cmp.Or(s.options.Prefix, "/")}
	for read := children; len(level) > 0; read = readableChildren {
		listings, err := readAll(ctx, s, paths, read)
		if err != nil {
			return nil, err
		}
		var next []string
		paths = nil
		for i, line := range level {
			for _, child := range listings[i].names {
				name := strings.TrimPrefix(line+"/"+child, "/")
				path := s.options.path(name)
				switch _, member, err := sequence(child); {
				case line != "" && member && err == nil:
					found[line]++
				case backend.CheckName(name) == nil && path != "/zookeeper": // which is the server's own
					next, paths = append(next, name), append(paths, path)
				}
			}
		}
		level = next
	}
	return found, nil
}

// readableChildren is children of a znode that has none for a client that may not read it.
func readableChildren(path string) func(*zk.Conn) (listing, error) {
	list := children(path)
	return func(c *zk.Conn) (listing, error) {
		l, err := list(c)
		if errors.Is(err, backend.ErrDenied) {
			return listing{}, nil
		}
		return l, err
	}
}
