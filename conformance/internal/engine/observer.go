package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/succession-dev/succession/conformance/internal/election"
	"github.com/succession-dev/succession/elect"
)

// An Observer collects what Observe yields.
type Observer struct {
	t    *Trial
	mu   sync.Mutex
	seen []elect.State
	end  chan error
}

// Observe begins to observe the client's election.
func (c *Client) Observe(ctx context.Context) *Observer {
	o := &Observer{t: c.t, end: make(chan error, 1)}
	e := c.Elect()
	c.t.spawn(func() {
		for l, err := range e.Observe(ctx) {
			if err != nil {
				o.end <- err
				return
			}
			c.t.Log(c.Name, "observes %s", showState(l))
			o.mu.Lock()
			o.seen = append(o.seen, l)
			o.mu.Unlock()
		}
		o.end <- nil
	})
	return o
}

func showState(s elect.State) string {
	if s.Vacant() {
		return s.Err().Error()
	}
	l := s.Leader
	return fmt.Sprintf("%s with token %d, acknowledged %v", l.ID, l.Token, l.Acknowledged)
}

// Sees waits until want is true for the newest state that was yielded.
func (o *Observer) Sees(d time.Duration, what string, want func(elect.State) bool) {
	o.t.Eventually(d, "the observer sees "+what, func() bool {
		if Arrived(o.end) {
			o.t.Fatalf("the observer is to see %s, and the observation has ended: %v", what, <-o.end)
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		return len(o.seen) > 0 && want(o.seen[len(o.seen)-1])
	})
}

// SeesLeader waits until the leader of that term was yielded last, for as long as the slow
// re-check ([Trial.Recheck]) may take.
func (o *Observer) SeesLeader(term election.Term) {
	o.Sees(o.t.Recheck()+o.t.Soon(), fmt.Sprintf("the leader with token %d", term.Token()), func(s elect.State) bool {
		return s.Leader.Token == term.Token() && s.Leader.Key == term.Member().Key
	})
}

// Ended reports whether the observation has ended.
func (o *Observer) Ended() bool { return Arrived(o.end) }

// Ends waits until the observation has ended with one of the errors.
func (o *Observer) Ends(d time.Duration, want ...error) {
	o.t.Want("Observe", Await(o.t, o.end, d, "Observe has not ended"), want...)
}

// Ordered checks that tokens never fell and that no entry was yielded twice in a row.
func (o *Observer) Ordered() {
	o.mu.Lock()
	defer o.mu.Unlock()
	newest := uint64(0)
	for i, l := range o.seen {
		if !l.Vacant() && l.Leader.Token < newest {
			o.t.Never("the observer saw token %d after %d", l.Leader.Token, newest)
		}
		if i > 0 && l == o.seen[i-1] {
			o.t.Fatalf("the observer was told twice of %s", showState(l))
		}
		newest = max(newest, l.Leader.Token)
	}
}
