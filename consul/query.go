package consul

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/backend/kit"
)

// linger is how long a blocking query goes on without a waiter. A waiter asks again and again. If
// each time began a query of its own, they would pile up at the server: it does not notice that a
// query was cancelled, and works on it until its time is over.
const linger = time.Second

// A topic is what a blocking query waits for: a change of one key, or of any key in a
// folder.
type topic struct {
	key    string
	folder bool
	member uint64 // the position of the member whose key it is; 0 for other keys
}

// A query is one blocking query. All waiters for the same topic share it.
type query struct {
	on     topic
	index  uint64 // it ends with a change after this index
	cancel context.CancelFunc
	done   chan struct{} // closed when the answer is there

	waiting int         // number of waiters; guarded by session.mu
	idle    *time.Timer // cancels it; runs while there is no waiter

	turn     chan struct{} // closed when it has a place, or was answered without one; nil if it did not wait for that
	admitted bool          // it has a place; guarded by session.mu until turn is closed
	stood    bool          // a waiter has read an entry before, or the query has shown one; guarded by session.mu

	pair *api.KVPair // the answer for a key: nil if the key does not exist
	last uint64      // the index of the answer
	err  error

	// unheard says that it ended early without a change, as queries do when a snapshot is restored;
	// or that it ended in a way that would have hidden this.
	unheard bool
}

// ended is closed when the answer is there. For a nil query it is never closed.
func (q *query) ended() <-chan struct{} {
	if q == nil {
		return nil
	}
	return q.done
}

// block blocks until there may have been a change after index: there was one, the query's
// time is over, or the query has failed. The caller then reads again, unless the answer
// itself proves enough. stood says whether there was an entry at the index. block fails when ctx or
// the session ends.
func (s *session) block(ctx context.Context, on topic, index uint64, stood bool) (*query, error) {
	if err := s.Usable(ctx); err != nil {
		return nil, err
	}
	q := s.attach(on, max(index, 1), stood) // 0 would not block
	defer s.detach(q)
	select {
	case <-q.done:
		return q, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// attach returns the query for the topic that is under way, or begins one. stood says that there
// was an entry at the index, so that its absence is a change. A query from a later index may have
// begun after the change that the caller waits for. That does no harm if the topic is a member: all
// its waiters wait for its end, and every query begins from an index at which the member stood.
func (s *session) attach(on topic, index uint64, stood bool) *query {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queries[on]
	if q == nil || on.member == 0 && q.index > index {
		var ctx context.Context
		q = &query{on: on, index: index, done: make(chan struct{})}
		ctx, q.cancel = context.WithCancel(s.Context())
		q.idle = time.AfterFunc(linger, func() { s.expire(q) })
		s.queries[on] = q
		s.Go(func() { s.run(ctx, q) })
	}
	q.stood = q.stood || stood
	q.waiting++
	q.idle.Stop()
	return q
}

// detach is called when the caller of attach has waited.
func (s *session) detach(q *query) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.waiting--; q.waiting == 0 {
		q.idle.Reset(linger)
	}
}

// expire cancels the query, unless somebody waits for it again.
func (s *session) expire(q *query) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.waiting == 0 {
		q.cancel()
	}
}

// run gets the answer of the query.
func (s *session) run(ctx context.Context, q *query) {
	defer q.cancel()
	for s.awaitTurn(ctx, q) && s.ask(ctx, q) {
		// The agent had no connection. Others wait first.
	}
	if q.on.member != 0 && q.proves(q.on.member) {
		s.proven(q.on.key, q.on.member)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queries[q.on] == q {
		delete(s.queries, q.on)
	}
	close(q.done)
}

// ask sends the query, and gives its place back when the answer is there. It reports true if the agent had
// no connection for it.
//
// It asks with the default consistency: when Consul changes its leader, a consistent query fails, and this
// one goes on.
func (s *session) ask(ctx context.Context, q *query) (again bool) {
	wait := s.b.o.wait()
	ctx, cancel := context.WithTimeout(ctx, s.b.o.longest()+s.b.o.attempt()+time.Second) // no answer comes after that
	defer cancel()
	opts := (&api.QueryOptions{WaitIndex: q.index, WaitTime: wait}).WithContext(ctx)
	kv, sent := s.b.c.watches.KV(), time.Now()
	var meta *api.QueryMeta
	var err error
	if q.on.folder {
		_, meta, err = kv.Keys(q.on.key, "", opts)
	} else {
		q.pair, meta, err = kv.Get(q.on.key, opts)
	}
	var status api.StatusError
	over := sent // when the agent is done with the query
	answered, cancelled := err == nil || errors.As(err, &status), errors.Is(ctx.Err(), context.Canceled)
	switch {
	case crowded(err):
		s.b.c.places.full(s.b.o)
	case !answered && !cancelled:
		s.b.c.places.broke(s.b.o)
		s.broke()
	}
	if !answered && !unsent(err) {
		over = sent.Add(s.b.o.longest())
	}
	s.b.c.places.give(over)
	kit.Notify(s.queued)
	if crowded(err) {
		return true
	}
	q.unheard = err != nil && !cancelled
	if q.err = s.b.c.queried(meta, err); q.err == nil {
		q.last = meta.LastIndex
		q.unheard = q.last <= q.index && time.Since(sent) < wait
	}
	if q.unheard {
		s.forget()
		kit.Notify(s.unheard)
	}
	return false
}
