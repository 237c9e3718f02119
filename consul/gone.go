package consul

import (
	"context"

	"github.com/succession-dev/succession/backend"
)

// Gone blocks until m has gone; see [backend.Session]. It waits with a blocking query on
// the key of m alone, and wakes for no other key. At rest that costs Consul three
// requests in four TTL, or in a minute if that is shorter.
func (s *session) Gone(ctx context.Context, m backend.Member) error {
	key, err := s.b.o.memberPath(m)
	if err != nil {
		return err
	}
	wait := s.b.o.patience()
	index := m.Position
	for {
		q, err := s.block(ctx, topic{key: key, member: m.Position}, index)
		if err != nil {
			return err
		}
		if q.proves(m) {
			return nil
		}
		if err := s.resume(ctx, q, &wait); err != nil {
			return err
		}
		// The answer may come from a server that is cut off. Or the server has lost its
		// data, and has an index that will not come again for long.
		if index, err = s.standing(ctx, key, m); err != nil || index == 0 {
			return err
		}
	}
}

// proves reports whether the answer alone shows that m has gone. A server shows a state
// that once was. If that state is later than the creation of m and does not have m, then
// m has gone.
func (q *query) proves(m backend.Member) bool {
	switch {
	case q.err != nil:
		return false
	case q.pair == nil:
		return q.last > m.Position
	default:
		return q.pair.CreateIndex > m.Position
	}
}

// standing returns the index of the last change of the key of m, or 0 if m has gone.
func (s *session) standing(ctx context.Context, key string, m backend.Member) (index uint64, err error) {
	err = s.retry(ctx, func(ctx context.Context) error {
		p, _, err := s.b.c.get(ctx, key)
		if err == nil && p != nil && p.CreateIndex == m.Position {
			index = p.ModifyIndex
		}
		return err
	})
	return index, err
}

// Joined blocks until somebody stands in the line; see [backend.Session]. For an empty
// folder Consul watches what is nearest to it in its tree, and returns the index of all
// keys (agent/consul/state/kvs.go, kvsListTxn). So writes to other keys wake it, too.
func (s *session) Joined(ctx context.Context, line string) error {
	folder := s.b.o.folder(line)
	wait, quiet := s.b.o.patience(), s.b.o.backoff()
	for first := true; ; first = false {
		var members []backend.Member
		var index uint64
		err := s.retry(ctx, func(ctx context.Context) error {
			pairs, last, err := s.b.c.list(ctx, folder)
			members, index = membersOf(line, folder, pairs), last
			return err
		})
		if err != nil || len(members) > 0 {
			return err
		}
		if !first { // it was woken for nothing, and may be at once again
			if err := quiet.Sleep(ctx); err != nil {
				return err
			}
		}
		q, err := s.block(ctx, topic{key: folder, folder: true}, index)
		if err != nil {
			return err
		}
		if err := s.resume(ctx, q, &wait); err != nil {
			return err
		}
	}
}
