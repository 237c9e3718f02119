package zookeeper

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/internal/kit"
	"github.com/succession-dev/succession/zookeeper/internal/wire"
)

// A record is the data of a persistent znode. Its version is the znode's mzxid, which no
// two writes share. ZooKeeper itself takes only the dataVersion as a condition, and that
// begins at 0 again when a znode is deleted. So a write on condition reads the znode,
// compares the mzxid, and writes on condition of the dataVersion. One case remains:
// between the two, somebody deletes the znode, creates it, and writes it exactly as often
// as it had been written.
//
// A znode without data is no record: a znode may only be the parent of others, and one
// that has children cannot be deleted. An empty value must look different from that. So a
// value that consists of zero bytes only, or is empty, is stored with one more zero byte.

func encode(value []byte) []byte {
	if len(bytes.Trim(value, "\x00")) == 0 {
		return append(bytes.Clone(value), 0)
	}
	return value
}

func decode(data []byte) []byte {
	if len(data) > 0 && len(bytes.Trim(data, "\x00")) == 0 {
		return data[1:]
	}
	return data
}

// version returns the version of the record in the znode n.
func version(n node) backend.Version {
	if n.stat == nil || len(n.data) == 0 {
		return backend.Absent
	}
	return backend.Version(n.stat.Mzxid)
}

func record(name string, n node) backend.Record {
	r := backend.Record{Name: name, Version: version(n)}
	if r.Version != backend.Absent {
		r.Value = decode(n.data)
	}
	return r
}

// Get implements [backend.Records].
func (s *session) Get(ctx context.Context, name string) (backend.Record, error) {
	n, err := retry(ctx, s, get(s.options.path(name)))
	if err == zk.ErrNoNode {
		n, err = node{}, nil
	}
	return record(name, n), err
}

// Watch implements [backend.Records].
func (s *session) Watch(ctx context.Context, name string, after backend.Version) (r backend.Record, err error) {
	err = s.follow(ctx, s.options.path(name), wire.WatchData, func(v sight) (bool, error) {
		if v.missing {
			v.node = node{}
		}
		r = record(name, v.node)
		return r.Version != after, nil
	})
	return r, err
}

// Put implements [backend.Records].
func (s *session) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	return s.write(ctx, name, cond, func(ctx context.Context, path string, now node, guard []any) (backend.Version, error) {
		set := &zk.SetDataRequest{Path: path, Data: encode(value), Version: -1}
		ops := guard
		if now.stat == nil {
			// The answer to a create does not have the zxid. The answer to a write has it.
			ops = append(ops, &zk.CreateRequest{Path: path, Data: []byte{}, Acl: s.options.acl(), Flags: flags(name, cond)})
		} else if cond != nil && cond.Version != 0 {
			set.Version = now.stat.Version
		}
		results, err := do(ctx, s, multi(append(ops, set)...))
		if err == zk.ErrNoNode && now.stat == nil {
			if up := parent(path); up != "/" {
				if err := s.ensure(ctx, up); err != nil {
					return 0, err
				}
			}
		}
		if err != nil {
			return 0, err
		}
		return backend.Version(results[len(results)-1].Stat.Mzxid), nil
	})
}

// Delete implements [backend.Records]. A znode that has children, such as that of an
// election with members, is not deleted but loses its data. So does one that this client may write and not delete, as
// those that an administrator has made beforehand.
func (s *session) Delete(ctx context.Context, name string, cond *backend.If) error {
	_, err := s.write(ctx, name, cond, func(ctx context.Context, path string, now node, guard []any) (backend.Version, error) {
		if version(now) == backend.Absent {
			if len(guard) > 0 {
				_, err := do(ctx, s, multi(guard...))
				return 0, err
			}
			return 0, nil
		}
		at := int32(-1)
		if cond != nil && cond.Version != 0 {
			at = now.stat.Version
		}
		_, err := do(ctx, s, multi(append(slices.Clone(guard), &zk.DeleteRequest{Path: path, Version: at})...))
		if err == zk.ErrNotEmpty || errors.Is(err, backend.ErrDenied) {
			_, empties := do(ctx, s, multi(append(guard, &zk.SetDataRequest{Path: path, Data: []byte{}, Version: at})...))
			if !errors.Is(empties, backend.ErrDenied) || err == zk.ErrNotEmpty {
				err = empties
			}
		}
		return 0, err
	})
	return err
}

// write runs a write on condition. f gets the znode as it now is (the zero node if there is
// none), and the operations that make the write fail if cond's member has gone.
func (s *session) write(ctx context.Context, name string, cond *backend.If,
	f func(ctx context.Context, path string, now node, guard []any) (backend.Version, error),
) (backend.Version, error) {
	path := s.options.path(name)
	fresh := false
	wait := pauses()
	for {
		now, guard, err := s.premises(ctx, path, cond)
		if !fresh && (errors.Is(err, backend.ErrVersion) || errors.Is(err, backend.ErrNotMember)) {
			// The caller may know it from another server, and this server may be behind it.
			if _, err := retry(ctx, s, barrier("/")); err != nil {
				return 0, err
			}
			fresh = true
			continue
		}
		if err != nil {
			return 0, err
		}
		v, err := f(ctx, path, now, guard)
		switch err {
		case zk.ErrNoNode, zk.ErrNodeExists, zk.ErrBadVersion:
			// Something has changed between the read and the write. Reading again tells
			// what.
		default:
			return v, err
		}
		if err := wait.Sleep(ctx); err != nil {
			return 0, err
		}
	}
}

// premises reads the znode (the zero node if there is none), and cond's member beside it. It
// fails if cond does not hold on this server. guard are the operations that make a write fail if
// the member has gone. ZooKeeper can check only that a znode of that name is there. So premises
// reads just before that this znode is the member.
func (s *session) premises(ctx context.Context, path string, cond *backend.If) (now node, guard []any, err error) {
	if cond == nil {
		cond = new(backend.If)
	}
	read := func(ctx context.Context) (node, error) { return do(ctx, s, get(path)) }
	var member node
	if m := cond.Member; m != (backend.Member{}) {
		at, err := s.options.member(m)
		if err != nil {
			return node{}, nil, err
		}
		guard = []any{check(at)}
		read = func(ctx context.Context) (node, error) {
			first, second, err := startInOrder(ctx, s, get(at), get(path))
			if err != nil {
				return node{}, err
			}
			if member, err = first.wait(ctx); err == zk.ErrNoNode {
				err = fmt.Errorf("%w: %s", backend.ErrNotMember, m.Key)
			}
			if err != nil {
				return node{}, err
			}
			return second.wait(ctx)
		}
	}
	now, err = kit.Retry(ctx, pauses(), isLost, read)
	if err == zk.ErrNoNode {
		now, err = node{}, nil
	}
	switch {
	case err != nil:
		return node{}, nil, err
	case guard != nil && member.position() != cond.Member.Position:
		return node{}, nil, fmt.Errorf("%w: %s", backend.ErrNotMember, cond.Member.Key)
	case cond.Version != 0 && cond.Version != version(now):
		return node{}, nil, backend.ErrVersion
	}
	return now, guard, nil
}

// List implements [backend.Records]. It reads each child of dir. If dir is an election,
// that is each member too: a name like jobs/1700000000 may be a record's or a member's.
func (s *session) List(ctx context.Context, dir string) ([]string, error) {
	return kit.Retry(ctx, pauses(), isLost, func(ctx context.Context) ([]string, error) {
		if election, ok := strings.CutSuffix(dir, header.UnreadySuffix); ok && election != "" {
			return s.unready(ctx, election)
		}
		return s.list(ctx, dir)
	})
}

func (s *session) list(ctx context.Context, dir string) ([]string, error) {
	names, nodes, err := s.readChildren(ctx, dir)
	if err != nil {
		return nil, err
	}
	var records []string
	for i, n := range nodes {
		if version(n) != backend.Absent && !n.inLine(strings.TrimPrefix(names[i], dir+"/")) {
			records = append(records, names[i])
		}
	}
	slices.Sort(records)
	return records, nil
}
