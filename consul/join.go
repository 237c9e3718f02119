package consul

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// Join adds a member at the end of the line; see [backend.Session]. One transaction
// creates its key and ties it to the session. If Join is to tell of a record, another one then reads the
// line, the header and that record. Join blocks for about a round trip for each.
//
// The first transaction does not also read, because from the answer to a transaction that
// writes, Consul silently leaves out keys that the token may not read.
//
// If the answer is lost, the same transaction is sent again. It demands that the key does not
// exist, so it takes effect once. Whichever of the two has made the key, its name shows that it is
// ours.
func (s *session) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	return s.join(ctx, line, value, record, false)
}

// JoinShared is Join for a shared member; see [backend.Session].
func (s *session) JoinShared(ctx context.Context, line, value, record string) (backend.Joined, error) {
	return s.join(ctx, line, value, record, true)
}

func (s *session) join(ctx context.Context, line, value, record string, shared bool) (j backend.Joined, err error) {
	j.Member, err = s.joining.Do(ctx, func() (backend.Member, func(), error) {
		made, err := s.add(ctx, backend.Member{Line: line, Key: s.nextKey(shared), Value: value, Shared: shared})
		return made, nil, err
	})
	if err == nil && record != "" && s.lookout.TryAlone(line) {
		defer s.lookout.Leave(line)
		s.lookFirst(ctx, &j, record)
	}
	return j, err
}

// lookFirst adds where the member stands, and that there is no such record, if it can read that. Otherwise Ahead and
// Get say why not.
func (s *session) lookFirst(ctx context.Context, j *backend.Joined, record string) {
	key := s.b.o.key(record)
	line, r, err := s.lineAnd(urgent(ctx), j.Line, gets(key)...)
	if err != nil {
		return
	}
	if r.find(key) == nil {
		j.Record = &backend.Record{Name: record, Version: backend.Absent}
	}
	if p, err := s.placeIn(ctx, line, j.Member); err == nil {
		j.Place = &p
	}
}

// add creates the member. ctx is the caller's: when it has ended, add sends no further request, but
// still waits for the answer to the last one.
func (s *session) add(ctx context.Context, m backend.Member) (backend.Member, error) {
	if ctx.Err() != nil {
		return backend.Member{}, context.Cause(ctx)
	}
	key := s.b.o.folder(m.Line) + m.Key
	s.stand(key, 0, false)
	under, doubtful := s.present().id, false
	_, err := kit.Retry(ctx, s.b.o.backoff(), isUnavailable, func(context.Context) (struct{}, error) {
		return struct{}{}, s.attempt(s.Context(), func(ctx context.Context) (err error) {
			m.Position, err = s.lock(ctx, key, m.Value)
			doubtful = doubtful || errors.Is(err, backend.ErrUnavailable)
			return err
		})
	})
	if err == nil {
		s.stand(key, m.Position, doubtful)
		if err = s.catchUp(s.Context(), key, under); err != nil {
			doubtful = true // the member stands
		}
	}
	if err != nil {
		s.left(key, m.Position)
		if doubtful {
			s.abandon(key)
		}
		return backend.Member{}, err
	}
	s.b.history.saw(m.Position, key)
	return m, nil
}

// nextKey returns a name for a member that this session has never used, in any line.
func (s *session) nextKey(shared bool) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.joins++
	return memberKey(s.id, s.joins, shared)
}

// lock creates the key, locked by the session; see create.
func (s *session) lock(ctx context.Context, key, value string) (uint64, error) {
	return s.create(ctx, key, &api.KVTxnOp{Verb: api.KVLock, Key: key, Value: []byte(value), Session: s.present().id})
}

// create creates the key by these operations, or finds that it exists already. It returns
// the position.
func (s *session) create(ctx context.Context, key string, ops ...*api.KVTxnOp) (uint64, error) {
	r, err := s.b.c.write(ctx, append([]*api.KVTxnOp{{Verb: api.KVCheckNotExists, Key: key}}, ops...)...)
	if err != nil {
		return 0, err
	}
	if len(r.errs) == 0 {
		if p := r.find(key); p != nil {
			return p.CreateIndex, nil
		}
		return 0, fmt.Errorf("%w: Consul answered a transaction without its result", backend.ErrUnavailable)
	}
	if !r.failed(0) {
		return 0, fmt.Errorf("%w: %s", backend.ErrUnavailable, r.errs[0].What)
	}
	// The key exists: an earlier request has arrived, or a server has sent this one
	// twice.
	p, _, err := s.b.c.get(ctx, key)
	switch {
	case err != nil:
		return 0, err
	case p == nil:
		return 0, fmt.Errorf("%w: somebody has removed the member as soon as it stood", backend.ErrNotMember)
	case p.LockIndex == 0 && p.Session == "": // no session of this log has ever locked it
		return 0, fmt.Errorf("%w: its key %s is there already: somebody has imported it, or written it by hand", backend.ErrNotMember, key)
	}
	return p.CreateIndex, nil
}
