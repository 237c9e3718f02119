package zookeeper

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession/backend"
)

// itemData returns the data of an item: its value. The mark of pinned members follows, without a
// position, if the value has that mark itself.
func itemData(value string) []byte {
	if strings.Contains(value, pinMark) {
		value += pinMark
	}
	return []byte(value)
}

// Append adds an item at the end of the line; see [backend.Session]. The item that it returns has no position if somebody has
// removed it already.
func (s *session) Append(ctx context.Context, line, value string) (backend.Member, error) {
	m := backend.Member{Line: line, Value: value, Pinned: true}
	at := s.options.path(line)
	for {
		made, err := do(ctx, s, s.create(at+"/"+s.options.namePrefix(), itemData(value), zk.FlagSequence))
		switch err {
		case nil:
			m.Key = path.Base(made)
			st, err := retry(ctx, s, stat(made))
			if err == zk.ErrNoNode {
				return m, nil
			}
			if err != nil {
				return m, err
			}
			m.Position = uint64(st.Czxid)
			return m, nil
		case zk.ErrNoNode:
			err = s.ensure(ctx, at)
		case zk.ErrNodeExists:
			err = errNumbers
		}
		if err != nil {
			return m, err
		}
	}
}

// Remove removes the item m if by still stands; see [backend.Session].
func (s *session) Remove(ctx context.Context, m, by backend.Member) error {
	path, err := s.options.member(m)
	if err != nil {
		return err
	}
	_, err = s.write(ctx, m.Line+"/"+m.Key, &backend.If{Member: by}, false, func(ctx context.Context, p premises) (backend.Version, error) {
		now := p.now
		gone := now.stat == nil || now.position() != m.Position
		switch {
		case !p.fresh && (gone || !now.pinned()):
			return 0, errStale
		case gone:
			_, err := do(ctx, s, multi(p.guard...))
			return 0, err
		case !now.pinned():
			return 0, fmt.Errorf("%w: member %s is no item", backend.ErrDenied, m.Key)
		}
		_, err := do(ctx, s, multi(append(p.guard, &zk.DeleteRequest{Path: path, Version: now.stat.Version})...))
		return 0, notEmpty(path, err)
	})
	if err == nil {
		s.departed(path, m)
	}
	return err
}
