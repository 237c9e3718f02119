package zookeeper

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession/backend"
)

// A znode's dataVersion begins anew when the znode is deleted and made again. So it tells two states
// of a record apart only as long as the znode stands. A count of the deletions in its folder says
// whether it is still the same znode: the dataVersion of the znode ~deletions there, which is never
// deleted. The transaction that deletes a record raises the count. A transaction that writes on
// condition of a version checks that the count is still the one that was read before the record.
// The package comment has the argument.

// deletions is the name of the count. No record can have it; see [backend.CheckName].
const deletions = "~deletions"

// A tally is what a look at the count of a folder has found.
type tally struct {
	path    string
	missing bool  // nothing has been counted yet
	version int32 // the count; -1 means any
}

// counted reads the count of deletions beside the znode path, and then that znode.
//
// The two requests are on their way at the same time, so the second may be answered first. That does
// no harm if the znode has been written after the last deletion that is counted: it has then stood
// until the count was read. Otherwise the znode is read again, after the count for certain.
func (s *session) counted(ctx context.Context, path string) (tally, node, error) {
	t := tally{path: beside(path, deletions)}
	first, second, err := startInOrder(ctx, s, stat(t.path), get(path))
	if err != nil {
		return t, node{}, err
	}
	var last int64 // transaction that has counted
	switch st, err := first.wait(ctx); err {
	case nil:
		t.version, last = st.Version, st.Mzxid
	case zk.ErrNoNode:
		t.missing = true
	default:
		return t, node{}, err
	}
	now, err := second.wait(ctx)
	if err == nil && now.stat.Mzxid < last {
		now, err = do(ctx, s, get(path))
	}
	return t, now, err
}

// count returns the operation that counts a deletion. It fails if one has been counted since the tally,
// unless that names no count.
func (s *session) count(t tally) any {
	if t.missing {
		return &zk.CreateRequest{Path: t.path, Data: []byte{}, Acl: s.options.acl(), Flags: zk.FlagPersistent}
	}
	return &zk.SetDataRequest{Path: t.path, Data: []byte{}, Version: t.version}
}

// unchanged sends ops in one transaction that fails if a record of the folder has been deleted since the
// tally. If nothing has been counted yet, the transaction makes the count: if it can make it,
// nothing was deleted. Without the right to do so, ops are sent alone; see the package comment.
func (s *session) unchanged(ctx context.Context, ops []any, t tally) ([]zk.MultiResponse, error) {
	op := s.count(t)
	if !t.missing {
		op = &zk.CheckVersionRequest{Path: t.path, Version: t.version}
	}
	results, err := s.transact(ctx, ops, op)
	if errors.As(err, new(countError)) && errors.Is(err, backend.ErrDenied) {
		return do(ctx, s, multi(ops...))
	}
	return results, err
}

// A countError says that in a transaction only the operation on the count was refused: a deletion
// was counted meanwhile, or the right is missing.
type countError struct{ error }

func (e countError) Unwrap() error { return e.error }

// transact sends ops in one transaction with the operation on the count.
func (s *session) transact(ctx context.Context, ops []any, onCount any) ([]zk.MultiResponse, error) {
	ops = append(ops[:len(ops):len(ops)], onCount) // the last one: that it is refused means that the others are not
	results, err := do(ctx, s, multi(ops...))
	if err != nil && len(results) == len(ops) {
		switch results[len(ops)-1].Error {
		case zk.ErrNoAuth, zk.ErrBadVersion, zk.ErrNodeExists, zk.ErrNoNode:
			err = countError{err}
		}
	}
	return results, err
}
