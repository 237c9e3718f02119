package kit_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// removals are the requests of a session to remove members. Each takes a tenth of a second.
type removals struct {
	*session
	kit.Leaves
	stays uint64 // the position of a member that cannot be removed

	mu    sync.Mutex
	sent  int
	alone int // of them, for one member
	most  int // members in one request
	now   int // requests under way
	peak  int // the most of them at once
	gone  map[uint64]bool
}

func newRemovals(s *session) *removals {
	r := &removals{session: s, gone: make(map[uint64]bool)}
	r.Leaves = kit.Leaves{Go: s.Go, Ended: s.Ended, Context: s.Context, Backlog: new(kit.Backlog), Together: r.send,
		Alone: func(ctx context.Context, m backend.Member) error {
			if r.send(ctx, []backend.Member{m}) == nil {
				return errRan
			}
			return context.Cause(ctx)
		},
	}
	return r
}

func (r *removals) send(ctx context.Context, ms []backend.Member) []bool {
	r.mu.Lock()
	r.now++
	r.peak, r.most = max(r.peak, r.now), max(r.most, len(ms))
	r.mu.Unlock()
	select {
	case <-time.After(time.Second / 10):
	case <-ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now--
	if r.sent++; len(ms) == 1 {
		r.alone++
	}
	if ctx.Err() != nil || slices.ContainsFunc(ms, func(m backend.Member) bool { return m.Position == r.stays }) {
		return nil
	}
	for _, m := range ms {
		r.gone[m.Position] = true
	}
	return slices.Repeat([]bool{true}, len(ms))
}

// all has n leave, who stand at the positions from first on, and returns what has come of each.
func (r *removals) all(ctx context.Context, first uint64, n int) []error {
	errs := make([]error, n)
	var leaving sync.WaitGroup
	for i := range errs {
		leaving.Go(func() { errs[i] = r.Do(ctx, backend.Member{Position: first + uint64(i)}) })
	}
	leaving.Wait()
	return errs
}

// Those who leave while others do go together. One who cannot go holds up none of them.
func TestLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(0, 0)
		defer c.sessions.Close()
		r := newRemovals(open(t, c).Session.(*session))
		if err := r.Do(t.Context(), backend.Member{Position: 1}); err != nil || r.alone != 1 {
			t.Errorf("one leaves: %v, by %d requests", err, r.sent)
		}
		began := time.Now()
		for _, err := range r.all(t.Context(), 2, 1000) {
			if err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(began); r.sent > 40 || len(r.gone) != 1001 || took > time.Second/2 {
			t.Errorf("1000 leave by %d requests, within %v; %d have gone", r.sent, took, len(r.gone)-1)
		}
		if r.peak != 8 || r.most != 64 {
			t.Errorf("%d requests at once, and %d members in one; want 8 and 64 at most", r.peak, r.most)
		}
		r.sent, r.stays = 0, 2050
		for i, err := range r.all(t.Context(), 2000, 100) {
			if at := uint64(2000 + i); at == r.stays != errors.Is(err, errRan) {
				t.Errorf("%d leaves: %v", at, err)
			}
		}
		if r.sent > 25 || len(r.gone) != 1100 {
			t.Errorf("100 leave by %d requests, of whom one cannot; %d have gone", r.sent, len(r.gone)-1001)
		}
	})
}

// Who waits to be removed is removed also if its caller has gone, and until then others do not join.
func TestAbandonedLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(0, 0)
		defer c.sessions.Close()
		s := open(t, c).Session.(*session)
		r := newRemovals(s)
		joins := kit.Joins[int]{Go: s.Go, Ended: s.Ended, Backlog: r.Backlog}
		go r.all(s.Context(), 1, 8) // as many requests as there may be
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		for _, err := range r.all(ctx, 9, 100) {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Do returned %v to a caller that has gone", err)
			}
		}
		began := time.Now()
		if _, err := joins.Do(t.Context(), func() (int, func(), error) { return 0, nil, nil }); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took < time.Second/10 || len(r.gone) < 108-32 {
			t.Errorf("a join has begun after %v, when %d of 108 had gone", took, len(r.gone))
		}
		go func() {
			time.Sleep(time.Millisecond)
			s.End(errRan)
		}()
		sent := 0
		for _, err := range r.all(t.Context(), 200, 100) { // whose contexts go on
			if err == nil {
				sent++ // by then
			} else if !saysRan(err) && !errors.Is(err, errRan) { // a request that was under way
				t.Errorf("Do returned %v in a session that has ended", err)
			}
		}
		if sent > 8 {
			t.Errorf("%d left in a session that has ended", sent)
		}
	})
}
