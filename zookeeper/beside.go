package zookeeper

import (
	"context"
	"errors"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/naming"
)

// Some records belong to an election E and lie beside it, because foreign candidates list
// everything below E: the copy of its fence, and the records of unready members. ZooKeeper requires
// CREATE on the prefix to make them, whatever their name, and every client that begins an election
// there has that right. So the existence of E.fence proves nothing, nor do its ACL and its data,
// which its maker chooses. Only what servers themselves write proves something:
//
//   - The copy of a fence is needed when E has been deleted. Then E's znode is younger than the copy, or its
//     data is gone. Otherwise the copy is ignored.
//   - A record that a member is not ready must be an ephemeral znode of the session that owns the
//     member.

// Outlived reports whether the record is older than what the line has now; see [backend.Session].
func (s *session) Outlived(ctx context.Context, record, line string) (bool, error) {
	copied, err := retry(ctx, s, stat(s.options.path(record)))
	if err == zk.ErrNoNode {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	at, err := retry(ctx, s, stat(s.options.path(line)))
	if err == zk.ErrNoNode {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	emptied := at.DataLength == 0 && at.Version > 0
	return copied.Czxid < at.Czxid || emptied, nil
}

// flags returns how to make the znode of a record: a record of a member about itself goes with its
// session.
func flags(name string, cond *backend.If) int32 {
	election, position, ok := naming.UnreadyMember(name)
	if ok && cond != nil && election == cond.Member.Line && position == cond.Member.Position {
		return zk.FlagEphemeral
	}
	return zk.FlagPersistent
}

// unready returns which members of the election say that they are not ready, as records of the folder that is
// beside it.
func (s *session) unready(ctx context.Context, election string) ([]backend.Record, error) {
	folder := election + naming.Unready
	names, nodes, err := s.readChildren(ctx, folder)
	if errors.Is(err, backend.ErrDenied) {
		return nil, nil // everybody may read what candidates of the election make
	}
	if err != nil || len(names) == 0 {
		return nil, err
	}
	keys, members, err := s.readChildren(ctx, election)
	if err != nil {
		return nil, err
	}
	owners := make(map[uint64]int64, len(keys)) // of members, by position
	for i, n := range members {
		if n.stat != nil && n.inLine(strings.TrimPrefix(keys[i], election+"/")) {
			owners[n.position()] = n.stat.EphemeralOwner
		}
	}
	var own []backend.Record
	for i, n := range nodes {
		_, position, ok := naming.UnreadyMember(names[i])
		if owner := owners[position]; ok && owner != 0 && n.stat != nil && n.stat.EphemeralOwner == owner && version(n) != backend.Absent {
			own = append(own, record(names[i], n))
		}
	}
	return own, nil
}

// readChildren reads the znodes below that of a name, and returns what records in them would be called. A znode
// that goes meanwhile has no stat.
func (s *session) readChildren(ctx context.Context, dir string) (names []string, nodes []node, err error) {
	path := s.options.path(dir)
	all, err := do(ctx, s, children(path))
	if err == zk.ErrNoNode {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	var paths []string
	for _, name := range all.names {
		if backend.CheckName(dir+"/"+name) == nil { // otherwise no record can have that name
			names, paths = append(names, dir+"/"+name), append(paths, path+"/"+name)
		}
	}
	nodes, err = s.getAll(ctx, paths)
	return names, nodes, err
}
