package consul

import (
	"context"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// Gone blocks until m has gone; see [backend.Session]. It waits with a blocking query on
// the key of m alone, and wakes for no other key. At rest that costs Consul three
// requests in four TTL, or in a minute if that is shorter.
func (s *session) Gone(ctx context.Context, m backend.Member) (err error) {
	key, err := s.b.o.memberPath(m)
	if err != nil {
		return err
	}
	begun := time.Now()
	defer func() { s.watched(ctx, key, m, begun, err) }()
	ctx = urgent(ctx)
	wait := s.b.o.patience()
	index := m.Position
	for {
		q, err := s.block(ctx, topic{key: key, member: m.Position}, index, true)
		if err != nil {
			return err
		}
		if q.proves(m.Position) {
			return nil
		}
		if err := s.resume(ctx, q, &wait); err != nil {
			return err
		}
		// The answer may come from a server that is cut off. Or the server has lost its
		// data, and has an index that will not come again for long.
		entry, err := s.standing(ctx, key, m)
		if err != nil || entry == nil {
			return err
		}
		index = entry.ModifyIndex
	}
}

// proves reports whether the answer alone shows that the member at that position, which has
// the key, has gone. A server may show an old state. But if that state is later than the creation
// of the member and does not have the member, the member has gone.
func (q *query) proves(position uint64) bool {
	switch {
	case q.err != nil:
		return false
	case q.pair == nil:
		return q.last > position
	default:
		return q.pair.CreateIndex > position
	}
}

// standing returns the entry of m, which has the key, or nil if m has gone.
func (s *session) standing(ctx context.Context, key string, m backend.Member) (entry *api.KVPair, err error) {
	err = s.retry(ctx, func(ctx context.Context) error {
		p, _, err := s.b.c.get(ctx, key)
		if err == nil && p != nil && p.CreateIndex == m.Position {
			entry = p
		}
		return err
	})
	return entry, err
}

// WatchLine blocks until other members stand in the line than in after; see
// [backend.Session]. Other changes in the folder wake it, too: pins, and moves to another session
// of Consul. For an empty folder Consul watches the nearest key in its tree, and returns the index
// of all keys (agent/consul/state/kvs.go, kvsListTxn). So writes to other keys wake it then.
func (s *session) WatchLine(ctx context.Context, line string, after backend.Line) (backend.Line, error) {
	folder := s.b.o.folder(line)
	wait, quiet := s.b.o.patience(), s.b.o.backoff()
	for first := true; ; first = false {
		var now backend.Line
		var index uint64
		err := s.retry(ctx, func(ctx context.Context) error {
			pairs, last, err := s.b.c.list(ctx, folder)
			now.Members, index = membersOf(line, folder, pairs), last
			return err
		})
		if err != nil {
			return backend.Line{}, err
		}
		if !kit.SameMembers(now, after) { // the list has no header
			if now, err = s.Line(ctx, line); err != nil || !kit.SameMembers(now, after) {
				return now, err
			}
		}
		if !first { // it was woken for nothing, and may be woken again at once
			if err := quiet.Sleep(ctx); err != nil {
				return backend.Line{}, err
			}
		}
		q, err := s.block(ctx, topic{key: folder, folder: true}, index, false)
		if err != nil {
			return backend.Line{}, err
		}
		if err := s.resume(ctx, q, &wait); err != nil {
			return backend.Line{}, err
		}
	}
}
