package zookeeper

import (
	"context"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/kit"
)

// Leave implements [backend.Session].
//
// ZooKeeper deletes by name, and cannot delete on condition of a czxid. What stands under m's
// name is m as long as the line has not been deleted and made anew, since its numbers are
// unique. If this session has a watch on m's znode that has not fired, as it has for a leader,
// Leave takes that for granted and deletes at once. It reads the znode first if there is no such
// watch, and after a lost answer, because the watch ends with the connection.
//
// One case remains. An operator deletes the whole line, and somebody joins it anew and gets the
// same number, while the notice of that is on its way or, if the connection has just fallen
// silent, until that is noticed; or, if Leave reads, between the read and the delete.
func (s *session) Leave(ctx context.Context, m backend.Member) error {
	path, err := s.options.member(m)
	if err != nil {
		return err
	}
	return s.leave(ctx, path, m)
}

// leave removes m. It returns when m has certainly gone, or when ctx ends.
func (s *session) leave(ctx context.Context, path string, m backend.Member) error {
	if o := s.owner(path, m); o != nil {
		if err := s.unpinning(ctx, o); err != nil {
			return err
		}
	}
	_, err := kit.Retry(ctx, pauses(), isLost, func(ctx context.Context) (struct{}, error) {
		gone, err := s.isGone(ctx, path, m)
		if err != nil || gone {
			return struct{}{}, err
		}
		return do(ctx, s, remove(path, -1))
	})
	if err != nil && err != zk.ErrNoNode {
		return err
	}
	if o := s.owner(path, m); o != nil {
		s.forget(o)
	}
	return nil
}

// isGone reports whether m has gone. It fails if another session joined m.
func (s *session) isGone(ctx context.Context, path string, m backend.Member) (bool, error) {
	v, known := s.watches.known(dataOf(path))
	n, err := v.node, error(nil)
	if !known {
		n, err = retry(ctx, s, get(path))
	}
	if err == zk.ErrNoNode {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if n.position() != m.Position {
		return true, nil
	}
	return false, s.mayTouch(n, m)
}

// mayTouch fails if m, whose znode is n, is not pinned and another session joined it.
func (s *session) mayTouch(n node, m backend.Member) error {
	if session, _ := s.link.State(); n.pinned() || n.stat.EphemeralOwner == session {
		return nil
	}
	return fmt.Errorf("%w: member %s belongs to another session", backend.ErrDenied, m.Key)
}
