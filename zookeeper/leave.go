package zookeeper

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// Leave implements [backend.Session].
//
// ZooKeeper deletes by name, and cannot delete on condition of a czxid. The znode with m's name is
// m as long as the line was not deleted and made anew, because its numbers are unique. If this
// session has a watch on m's znode that has not fired, as it has for a leader, Leave relies on that
// and deletes at once. If there is no such watch, or after a lost answer, it reads the znode first,
// because the watch ends with the connection.
//
// One case remains. An operator deletes the whole line, and a new member joins it and gets the same
// number. Leave removes that member if this happens while the notice is under way, or while a
// silent connection is not noticed yet, or, if Leave reads, between the read and the delete.
func (s *session) Leave(ctx context.Context, m backend.Member) error { return s.leaving.Do(ctx, m) }

// leaveAlone returns when m has certainly gone, or when ctx ends.
func (s *session) leaveAlone(ctx context.Context, m backend.Member) error {
	path, err := s.options.member(m)
	if err != nil {
		return err
	}
	if o := s.owner(path, m); o != nil {
		if err := s.unpinning(ctx, o); err != nil {
			return err
		}
	}
	_, err = kit.Retry(ctx, pauses(), isLost, func(ctx context.Context) (struct{}, error) {
		_, err := sure(ctx, s, func(ctx context.Context) (struct{}, error) { return struct{}{}, s.removable(ctx, path, m) })
		if err != nil {
			return struct{}{}, err
		}
		return do(ctx, s, remove(path, -1))
	})
	if err != nil && err != zk.ErrNoNode && !errors.Is(err, backend.ErrNotMember) {
		return notEmpty(path, err)
	}
	if o := s.owner(path, m); o != nil {
		s.forget(o)
	}
	return nil
}

// leaveTogether removes all of the members that stand; see [kit.Leaves]. As Leave does, it reads only those on
// which no watch tells that they stand, and again those that have gone and that this session may not have joined.
func (s *session) leaveTogether(ctx context.Context, ms []backend.Member) (gone []bool) {
	paths := make([]string, len(ms))
	known := make(map[string]node, len(ms))
	var unknown []string
	for i, m := range ms {
		path, err := s.options.member(m)
		if err != nil {
			return nil
		}
		if o := s.owner(path, m); o != nil && s.unpinning(ctx, o) != nil {
			return nil
		}
		v, watched := s.watches.known(dataOf(path))
		if known[path] = v.node; !watched {
			unknown = append(unknown, path)
		}
		paths[i] = path
	}
	nodes, err := s.getAll(ctx, unknown)
	if err != nil {
		return nil
	}
	for i, path := range unknown {
		known[path] = nodes[i]
	}
	stands := func(i int) bool { n := known[paths[i]]; return n.stat != nil && n.position() == ms[i].Position }
	unknown = nil
	for i, m := range ms {
		if !stands(i) && s.owner(paths[i], m) == nil {
			unknown = append(unknown, paths[i])
		}
	}
	if len(unknown) > 0 {
		if s.Refresh(ctx) != nil {
			return nil
		}
		if nodes, err = s.getAll(ctx, unknown); err != nil {
			return nil
		}
		for i, path := range unknown {
			known[path] = nodes[i]
		}
	}
	gone = make([]bool, len(ms))
	var ops []any
	for i, m := range ms {
		switch {
		case !stands(i) && known[paths[i]].stat != nil && known[paths[i]].rewritten():
			return nil // Leave says why
		case !stands(i):
			gone[i] = true
		case s.mayTouch(known[paths[i]], m) != nil:
			return nil
		default:
			ops = append(ops, &zk.DeleteRequest{Path: paths[i], Version: -1})
		}
	}
	if len(ops) > 0 {
		_, err = do(ctx, s, multi(ops...))
	}
	for i, m := range ms {
		gone[i] = gone[i] || err == nil
		if o := s.owner(paths[i], m); o != nil && gone[i] {
			s.forget(o)
		}
	}
	return gone
}

// removable fails if m has gone on this server, or if another session joined it, or if nobody can tell.
func (s *session) removable(ctx context.Context, path string, m backend.Member) error {
	v, known := s.watches.known(dataOf(path))
	n, err := v.node, error(nil)
	if !known {
		n, err = retry(ctx, s, get(path))
	}
	if err == nil && n.position() != m.Position {
		if n.rewritten() {
			return fmt.Errorf("%w: somebody has written to %s, which may be the pinned member of position %d, or a record: remove it by hand, or as the member that the line now shows",
				backend.ErrDenied, path, m.Position)
		}
		err = zk.ErrNoNode
	}
	if err == zk.ErrNoNode && s.owner(path, m) == nil {
		err = fmt.Errorf("%w: %s has gone", backend.ErrNotMember, m.Key)
	}
	if err != nil {
		return err
	}
	return s.mayTouch(n, m)
}

// mayTouch fails if m, whose znode is n, is not pinned and another session joined it.
func (s *session) mayTouch(n node, m backend.Member) error {
	if session, _ := s.link.State(); n.pinned() || n.stat.EphemeralOwner == session {
		return nil
	}
	return fmt.Errorf("%w: member %s belongs to another session", backend.ErrDenied, m.Key)
}
