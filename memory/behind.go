package memory

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// Lag connects the client to a server that lags behind by d, as a follower of ZooKeeper and a
// cache of Kubernetes may. Reads (Get, List, ReadAll, Line, Head, Lines, Survey and Free) are
// answered with what was so a time d ago. They are never older than what the client has been told:
// by the answers to its writes, to its blocking calls and to Refresh, and by what it has read (L2).
// Everything else is answered as by the newest state. 0 is the default.
func (b *Backend) Lag(d time.Duration) {
	b.c.lock()
	defer b.c.unlock()
	if b.lag == 0 {
		b.answered = b.c.store.index // it has read the newest state until now
	}
	b.lag = max(0, d)
	b.c.lagChanged()
}

// lagChanged notes for how long it must be known what was so, for the clients that there are.
func (c *Coordinator) lagChanged() {
	c.keep = 0
	for _, b := range c.clients {
		c.keep = max(c.keep, b.lag)
	}
	if c.keep == 0 {
		c.past = nil
	}
}

// A version is what the coordinator held from some time on.
type version struct {
	since time.Time
	store store
}

// remember notes what the coordinator holds, as long as a client lags behind, and forgets what is
// too old for all of them.
func (c *Coordinator) remember() {
	if c.keep == 0 {
		return
	}
	newest := func() *version { return &c.past[len(c.past)-1] }
	if len(c.past) > 0 && newest().store.index > c.store.index { // the log has gone back
		c.past = nil
	}
	if len(c.past) == 0 || newest().store.index < c.store.index {
		c.past = append(c.past, version{time.Now(), c.store.clone()})
	}
	old := 0
	for old+1 < len(c.past) && time.Since(c.past[old+1].since) >= c.keep {
		old++
	}
	c.past = slices.Delete(c.past, 0, old)
}

// view returns what the client reads now.
func (b *Backend) view() *store {
	if b.lag > 0 {
		b.c.remember()
		for i := 1; i < len(b.c.past); i++ { // none where the client has gone meanwhile
			if v, next := &b.c.past[i-1], &b.c.past[i]; v.store.index >= b.answered && time.Since(next.since) < b.lag {
				return &v.store
			}
		}
	}
	return &b.c.store
}

// heard returns the index of the log up to which the answer to a call of op tells what has happened.
func (b *Backend) heard(op Op) uint64 {
	switch op {
	case OpGet, OpList, OpReadAll, OpLine, OpHead, OpLines, OpSurvey, OpFree:
		return b.view().index
	case OpOpen, OpHeartbeat, OpClose: // they tell nothing of lines and records
		return 0
	}
	return b.c.store.index
}

// Refresh returns when reads are as fresh as each write that was answered before; see
// [backend.Session]. There is no request, unless the client lags behind.
func (s *session) Refresh(ctx context.Context) error {
	s.b.c.lock()
	lags := s.b.lag > 0
	s.b.c.unlock()
	if !lags {
		return cmp.Or(s.Err(), context.Cause(ctx))
	}
	_, err := s.ask(ctx, func() *call {
		return s.send(OpRefresh, lostAgain, func(*lease) (any, error) { return nil, nil })
	})
	return driver.Wrap(string(OpRefresh), "", err)
}
