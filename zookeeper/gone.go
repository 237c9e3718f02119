package zookeeper

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/zookeeper/internal/wire"
)

// Gone implements [backend.Session]. A notice that m's znode was deleted is enough if another session
// joined m. After any other notice, and after a reconnect, Gone reads the znode again: Pin, too, deletes the znode
// of a member, and a session must not forget its own.
func (s *session) Gone(ctx context.Context, m backend.Member) error {
	path, err := s.options.member(m)
	if err != nil {
		return err
	}
	removed := s.owner(path, m).removed() // nil, so never ready, if this session did not join m
	position := m.Position
	// If m has no position, it comes from an Ahead of this session, so the session's
	// server has seen it.
	fresh := removed != nil || position == 0
	for {
		v, fired, err := s.look(ctx, dataOf(path))
		if err != nil {
			return err
		}
		switch {
		case !fresh && (v.missing || position != v.position()):
			// The caller may know m from another server, and this server may be behind it.
			if err := s.Refresh(ctx); err != nil {
				return err
			}
			fresh = true
			continue
		case v.missing:
			s.departed(path, m)
			return nil
		case position == 0:
			position = v.position()
		case position != v.position():
			s.departed(path, m)
			return nil
		}
		select {
		case ev := <-fired:
			if ev.Type == zk.EventNodeDeleted && removed == nil {
				s.departed(path, m)
				return nil
			}
		case <-removed:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// WatchLine implements [backend.Session]. It is the only call that watches the list of
// children. It reads the header, and those members that after does not have; but none of them,
// if the list has the same members as after.
func (s *session) WatchLine(ctx context.Context, line string, after backend.Line) (l backend.Line, err error) {
	err = s.follow(ctx, s.options.path(line), wire.WatchChildren, func(v sight) (changed bool, err error) {
		l = backend.Line{Version: backend.Absent}
		if !v.missing {
			l, err = s.readMembers(ctx, line, listing{v.names, v.stat}, after.Members)
		}
		if passing(err) {
			l, err = s.Line(ctx, line)
		}
		return !kit.SameMembers(l, after), err
	})
	return l, err
}
