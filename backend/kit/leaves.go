package kit

import (
	"context"
	"sync"

	"github.com/succession-dev/succession/backend"
)

const (
	// maxRemovals is how many requests to remove members a session has on their way. More would
	// take connections from other requests, and would remove nothing sooner.
	maxRemovals = 8
	// maxTogether is how many members one request removes. Each is two conditions on etcd, which by
	// default takes 128 of them (--max-txn-ops), and one or more of the 128 operations that Consul
	// takes.
	maxTogether = 64
)

// Leaves removes members of a session from their lines. While few leave, each is removed at once.
// If thousands leave at the same moment, most wait for an answer to the first, and then one request
// removes many. Otherwise the line would be long for seconds, and the members behind would wait for
// each of them. Members that wait to be removed count in the [Backlog], and are removed also if
// their callers have gone.
type Leaves struct {
	Go      func(f func()) (runs bool) // runs f in a goroutine; false when the session ends
	Ended   func() error               // why the session has ended
	Backlog *Backlog                   // of the session
	Context func() context.Context     // of the session
	// Alone removes one member. It fails when ctx ends.
	Alone func(ctx context.Context, m backend.Member) error
	// Together removes members in one request, if they stand as the session believes. It reports
	// for each whether it is known to have gone; nil means that none is.
	Together func(ctx context.Context, ms []backend.Member) (gone []bool)

	mu      sync.Mutex
	waiting []*leave
	sent    int // requests under way
}

// A leave is one member that waits to be removed.
type leave struct {
	m    backend.Member
	done chan error // has room for one
}

// Do removes m. It returns what Alone returns; nil if m was removed together with others.
func (l *Leaves) Do(ctx context.Context, m backend.Member) error {
	l.mu.Lock()
	if l.sent < maxRemovals {
		l.sent++
		l.mu.Unlock()
		defer l.next()
		return l.Alone(ctx, m)
	}
	w := &leave{m, make(chan error, 1)}
	l.waiting = append(l.waiting, w)
	l.Backlog.add(1)
	l.mu.Unlock()
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// next is called when a request is over. A goroutine of the session then sends the next one, so
// that no caller has to wait for it.
func (l *Leaves) next() {
	some := l.take()
	if some == nil || l.Go(func() {
		for ; some != nil; some = l.take() {
			l.remove(some)
		}
	}) {
		return
	}
	for ; some != nil; some = l.take() {
		for _, w := range some {
			l.settle(w, l.Ended())
		}
	}
}

// take takes as many waiting members as one request can remove. If there are none, one request less
// is under way.
func (l *Leaves) take() []*leave {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(len(l.waiting), maxTogether)
	if n == 0 {
		l.waiting = nil
		l.sent--
		return nil
	}
	some := l.waiting[:n:n]
	l.waiting = l.waiting[n:]
	return some
}

// remove removes some members. If a request fails for all, because one member does not stand as the
// session believes, remove tries each half.
func (l *Leaves) remove(some []*leave) {
	if len(some) == 1 {
		l.settle(some[0], l.Alone(l.Context(), some[0].m))
		return
	}
	ms := make([]backend.Member, len(some))
	for i, w := range some {
		ms[i] = w.m
	}
	gone := l.Together(l.Context(), ms)
	var rest []*leave
	for i, w := range some {
		if gone != nil && gone[i] {
			l.settle(w, nil)
		} else {
			rest = append(rest, w)
		}
	}
	if len(rest) == len(some) {
		half := len(rest) / 2
		l.remove(rest[:half])
		rest = rest[half:]
	}
	if len(rest) > 0 {
		l.remove(rest)
	}
}

func (l *Leaves) settle(w *leave, err error) {
	l.Backlog.add(-1)
	w.done <- err
}
