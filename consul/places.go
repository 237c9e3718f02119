package consul

import (
	"cmp"
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

const (
	// maxQueries is how many blocking queries of a backend the agent works on. By default it grants 200
	// connections to an address (http_max_conns_per_client), and other processes want some of them.
	maxQueries = 96
	// minQueries is the least to which that number may fall in the end, and minBurst the least
	// after a break.
	minQueries, minBurst = 3, 8
	// maxCalls is how many connections calls have at most, beside the queries, and maxUrgent how
	// many urgent requests have.
	maxCalls, maxUrgent = 8, 4
	// maxWrites is how many of the calls may be writes that wait for their answer for a whole TTL: the others
	// need connections, too.
	maxWrites = 6
)

// places limit the queries of a backend. The agent does not notice that a query was cancelled, or
// that its connection has broken, and works on it until its time is over. So if a query was not
// answered, its place is free only then. It is safe for concurrent use.
//
// If the agent has no connection for a query, the processes at this address have taken all of them.
// Then each process takes a quarter less, so that renewals get a connection when connections break.
// As long as the agent refuses none, the number grows by a quarter from time to time.
type places struct {
	mu    sync.Mutex
	most  int       // how many there are now; 0 means maxQueries
	grows time.Time // when the number may grow again

	taken int // by queries that have a waiter

	// kept has an instant for each place of a query that was not answered: when the agent is done
	// with the query, and the place is free.
	kept []time.Time

	crowded time.Time // until then, queries are sent one after the other, with pauses
	next    time.Time // when the next one may be sent

	// burst is how many places there are until broken, if that is less than most. A connection has broken, and
	// queries from before and after that must fit at the agent together.
	burst  int
	broken time.Time
}

// take takes a place for a query that is sent now, if there is one.
func (p *places) take(on topic, o *Options) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.kept = slices.DeleteFunc(p.kept, now.After)
	if p.most == 0 {
		p.most = maxQueries
	} else if p.most < maxQueries && now.After(p.grows) {
		p.most, p.grows = min(p.most+max(p.most/4, 1), maxQueries), now.Add(o.wait())
	}
	most := p.most
	if now.Before(p.broken) {
		most = min(most, p.burst)
	}
	if on.member == 0 { // queries for a member, one's own or the one in front, are more urgent
		most = most * 2 / 3
	}
	if p.taken+len(p.kept) >= most || now.Before(p.crowded) && now.Before(p.next) {
		return false
	}
	p.taken++
	p.next = now.Add(o.look())
	return true
}

// give gives the place back; see [places.take]. until is when the agent is done with the query.
func (p *places) give(until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	if time.Now().Before(until) {
		p.kept = append(p.kept, until)
	}
}

// broke says that the connection of a query has broken, before the query gives its place back.
// Usually all connections have broken then. If all queries were sent again at once, and once more
// at the next break, the agent would soon have no connections left for this address. So until the
// agent is done with the old queries, there are only one and a half times as many places as were
// taken. The first break after that counts anew, because there may be more queries by then.
func (p *places) broke(o *Options) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if now.After(p.broken) {
		p.burst, p.broken = max(minBurst, p.taken*3/2), now.Add(o.longest())
	}
}

// full says that the agent had no connection for a query. Other processes may have taken most of
// them, so a process with few queries may keep a few.
func (p *places) full(o *Options) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if now.After(p.crowded) {
		p.most = max(minQueries, min(p.most, max(p.taken+len(p.kept), minBurst))*3/4)
	}
	p.crowded = now.Add(o.wait())
	p.grows = p.crowded
}

// awaitTurn waits until the query has a place at the agent, and takes it. It reports false if the query was
// answered without that, or ctx has ended. After a query has broken, no query is sent until a later
// renewal is answered, because the connection for renewals comes first.
func (s *session) awaitTurn(ctx context.Context, q *query) bool {
	s.mu.Lock()
	if len(s.queue) == 0 && s.mayAsk(q) {
		s.mu.Unlock()
		return true
	}
	q.turn, q.admitted = make(chan struct{}), false
	s.queue = append(s.queue, q)
	kit.Notify(s.queued)
	s.mu.Unlock()
	select {
	case <-q.turn:
		return q.admitted
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dequeue(q); q.admitted {
		s.b.c.places.give(time.Time{})
	}
	q.err = context.Cause(ctx)
	return false
}

// mayAsk takes a place for q, if it may be sent now. The caller holds s.mu.
func (s *session) mayAsk(q *query) bool {
	return s.broken.IsZero() && s.b.c.places.take(q.on, s.b.o)
}

// dequeue reports whether q was in the queue. The caller holds s.mu.
func (s *session) dequeue(q *query) bool {
	i := slices.Index(s.queue, q)
	if i >= 0 {
		s.queue = slices.Delete(s.queue, i, i+1)
	}
	return i >= 0
}

// broke notes that the connection of a query has broken: the one for renewals may have broken, too.
func (s *session) broke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = time.Now()
	kit.Notify(s.doubted)
}

// connected notes that a renewal that was sent then has been answered.
func (s *session) connected(sent time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sent.After(s.broken) {
		s.broken = time.Time{}
		kit.Notify(s.queued)
	}
}

// ration gives queries their turn. For queries that wait for it, it reads by itself, all together.
func (s *session) ration() {
	var waiting []*query
	var tick <-chan time.Time // nil while no query waits
	for {
		select {
		case <-s.Context().Done():
			return
		case <-s.queued:
		case <-tick:
			tick = nil
			// It reads before it sends any of them: otherwise a query that the agent refuses each
			// time would never be read.
			if err := s.lookFor(waiting); err != nil && s.Context().Err() == nil {
				s.b.o.Logger.Debug("could not look for all who have no query", "waiting", len(waiting), "err", err)
			}
		}
		if waiting = s.admit(); len(waiting) > 0 && tick == nil {
			tick = time.After(s.b.o.look())
		}
	}
}

// rank is smaller for a more urgent topic. First come leaders that watch their own member: until one hears
// that it was removed, the next one leads beside it. The caller holds s.mu.
func (s *session) rank(on topic) int {
	switch {
	case on.member == 0:
		return 2
	case slices.ContainsFunc(s.waiters[on.key], func(w *waiter) bool { return w.lost != nil && w.watched.Position == on.member }):
		return 0
	}
	return 1
}

// admit gives as many of the queue their turn as there are places, the most urgent first, and returns the rest.
func (s *session) admit() (waiting []*query) {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.SortStableFunc(s.queue, func(a, b *query) int { return cmp.Compare(s.rank(a.on), s.rank(b.on)) })
	s.queue = slices.DeleteFunc(s.queue, func(q *query) bool {
		if q.admitted = s.mayAsk(q); q.admitted {
			close(q.turn)
		}
		return q.admitted
	})
	return slices.Clone(s.queue)
}

// lookFor reads the keys of the queries, and answers the queries whose keys have changed.
func (s *session) lookFor(queries []*query) (err error) {
	ctx, cancel := context.WithTimeout(urgent(s.Context()), s.b.o.attempt())
	defer cancel()
	var entries, folders []*query
	for _, q := range queries {
		if q.on.folder {
			folders = append(folders, q)
		} else {
			entries = append(entries, q)
		}
	}
	for some := range slices.Chunk(entries, maxOps) {
		err = errors.Join(err, s.lookAt(ctx, some))
	}
	for begun := time.Now(); len(folders) > 0 && time.Since(begun) < s.b.o.look(); folders = folders[1:] {
		err = errors.Join(err, s.lookInto(ctx, folders[0]))
	}
	return err
}

// lookInto is lookFor for a folder. It reads the names of the keys, and not their values, because
// the names come with the index of the last change. Each folder is a request. So q goes to the end
// of the queue: if there is not time for all folders before leaders are due again, the others are
// first next time.
func (s *session) lookInto(ctx context.Context, q *query) error {
	s.mu.Lock()
	if s.dequeue(q) {
		s.queue = append(s.queue, q)
	}
	s.mu.Unlock()
	var index uint64
	err := s.attempt(ctx, func(ctx context.Context) (err error) {
		_, index, err = s.b.c.below(ctx, q.on.key)
		return err
	})
	switch {
	case errors.Is(err, backend.ErrDenied):
		s.answer(q, nil, err)
		return nil
	case err == nil && index > q.index:
		s.answer(q, nil, nil)
	}
	return err
}

// lookAt is lookFor for as many entries as one request may read. The query for an entry that the token may not read fails as it would
// have failed at the agent.
func (s *session) lookAt(ctx context.Context, some []*query) error {
	var keys []string
	for _, q := range some {
		keys = append(keys, q.on.key)
	}
	entries := make(map[string]entry, len(keys))
	err := s.readEach(ctx, s.attempt, keys, entries)
	for _, q := range some {
		e, read := entries[q.on.key]
		s.mu.Lock()
		changed := read && (e.pair == nil && q.stood || e.pair != nil && e.pair.ModifyIndex > q.index)
		q.stood = q.stood || e.pair != nil
		s.mu.Unlock()
		if changed || e.denied != nil {
			s.answer(q, e.pair, e.denied)
		}
	}
	return err
}

// answer answers a query that waits for its turn.
func (s *session) answer(q *query, p *api.KVPair, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.dequeue(q) {
		return
	}
	q.pair, q.last, q.err = p, q.index, err
	switch {
	case p != nil:
		q.last = p.ModifyIndex
	case err == nil && q.on.member != 0:
		q.last = max(q.last, q.on.member+1)
	}
	close(q.turn)
}

// unsent reports whether a request has not reached the agent.
func unsent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}
