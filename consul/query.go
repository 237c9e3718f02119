package consul

import (
	"context"
	"time"

	"github.com/hashicorp/consul/api"
)

// linger is how long a blocking query goes on when nobody waits for it any more.
// Who waits for a member asks again and again, and to a server that is a query more
// each time: it does not notice that the one before was cancelled, and works on it
// until its time is over.
const linger = time.Second

// A topic is what a blocking query waits for: a change of one key, or of anything
// in a folder.
type topic struct {
	key    string
	folder bool
	member uint64 // the position of the member whose key it is; 0 for other keys
}

// A query is one blocking query, shared by all who wait for the same topic.
type query struct {
	index  uint64 // it ends with a change after this index
	cancel context.CancelFunc
	done   chan struct{} // closed when the answer is there

	waiting int         // how many wait for it; guarded by session.mu
	idle    *time.Timer // cancels it; runs while nobody waits

	pair *api.KVPair // the answer, of a key: nil where there is none
	last uint64      // the index of the answer
	err  error
}

// block blocks until there may have been a change after index: when there was one,
// when the query's time is over, and when it failed. The caller then reads again,
// except for what the answer proves. It fails when ctx, or the session, ends.
func (s *session) block(ctx context.Context, on topic, index uint64) (*query, error) {
	if err := s.Usable(ctx); err != nil {
		return nil, err
	}
	q := s.attach(on, max(index, 1)) // 0 would not block
	defer s.detach(q)
	select {
	case <-q.done:
		return q, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// attach returns the query for the topic that is under way, or begins one. One from a
// later index may have begun after the change that the caller waits for; but who waits
// for a member waits for its end, and all begin from an index at which it stood.
func (s *session) attach(on topic, index uint64) *query {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queries[on]
	if q == nil || on.member == 0 && q.index > index {
		var ctx context.Context
		q = &query{index: index, done: make(chan struct{})}
		ctx, q.cancel = context.WithCancel(s.Context())
		q.idle = time.AfterFunc(linger, func() { s.expire(q) })
		s.queries[on] = q
		s.Go(func() { s.run(ctx, on, q) })
	}
	q.waiting++
	q.idle.Stop()
	return q
}

// detach is for who has waited.
func (s *session) detach(q *query) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.waiting--; q.waiting == 0 {
		q.idle.Reset(linger)
	}
}

// expire cancels the query, unless somebody has come back meanwhile.
func (s *session) expire(q *query) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.waiting == 0 {
		q.cancel()
	}
}

// run asks with the default consistency: a consistent query fails at a change of
// Consul's leader, at which the default one goes on.
func (s *session) run(ctx context.Context, on topic, q *query) {
	defer q.cancel()
	wait := s.b.o.wait()
	// Consul adds up to a sixteenth; beyond that, the answer is not coming.
	ctx, cancel := context.WithTimeout(ctx, wait+wait/16+s.b.o.attempt()+time.Second)
	defer cancel()
	opts := (&api.QueryOptions{WaitIndex: q.index, WaitTime: wait}).WithContext(ctx)
	kv := s.b.c.watches.KV()
	var meta *api.QueryMeta
	if on.folder {
		_, meta, q.err = kv.List(on.key, opts)
	} else {
		q.pair, meta, q.err = kv.Get(on.key, opts)
	}
	if q.err = s.b.c.queried(meta, q.err); q.err == nil {
		q.last = meta.LastIndex
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queries[on] == q {
		delete(s.queries, on)
	}
	close(q.done)
}
