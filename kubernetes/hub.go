package kubernetes

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/backend/kit/clock"
)

// A hub has the watches of a session. All who wait for the same objects share one.
type hub struct {
	s       *session
	mu      sync.Mutex
	streams map[string]*stream // by selector
}

// A stream is one watch, which is opened again when it ends. It has no first answer with what is there: it tells of what happens after a
// version. Whoever begins to wait has seen all up to that version, or looks again, so nothing is missed, and no look need wait until the
// watch is open.
type stream struct {
	waiting map[*waiter]bool
	cancel  context.CancelFunc // ends it
	again   context.CancelFunc // ends the request, which is sent again; nil between two
	kept    bool               // also when nobody waits
	opened  clock.Instant
	heard   int64 // it tells nobody of what was before: the version that it begins after, and later that of the newest event, but for renewals
}

// A waiter is told of events that matter to it.
type waiter struct {
	c        chan struct{}      // has room for one
	relevant func(e event) bool // called with the hub locked
	member   string             // the key of the member that waits, or empty; it looks at once if that has gone already
}

func newWaiter(relevant func(e event) bool) *waiter {
	return &waiter{c: make(chan struct{}, 1), relevant: relevant}
}

// follow opens a watch that stays open.
func (h *hub) follow(selector string, version int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open(selector, version).kept = true
}

// open begins a stream. The caller holds the lock.
func (h *hub) open(selector string, version int64) *stream {
	ctx, cancel := context.WithCancel(h.s.Context())
	x := &stream{waiting: make(map[*waiter]bool), cancel: cancel, opened: clock.Now(), heard: version}
	if !h.s.Go(func() { h.run(ctx, selector, x, version) }) {
		cancel()
	}
	h.streams[selector] = x
	return x
}

// enter has w told of what happens after the version to what the selectors say. The caller calls leave. missed says that
// something may have happened already.
func (h *hub) enter(w *waiter, selectors []string, version int64) (missed bool, leave func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, selector := range selectors {
		x := h.streams[selector]
		if x == nil {
			x = h.open(selector, version)
		}
		x.waiting[w] = true
		missed = missed || x.heard > version
	}
	return missed, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, selector := range selectors {
			if x := h.streams[selector]; x != nil && x.waiting[w] {
				if delete(x.waiting, w); len(x.waiting) == 0 && !x.kept {
					// A caller that waits again soon finds it still there.
					time.AfterFunc(h.s.b.o.TTL/8, func() { h.close(selector, x) })
				}
			}
		}
	}
}

func (h *hub) close(selector string, x *stream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(x.waiting) == 0 && h.streams[selector] == x {
		delete(h.streams, selector)
		x.cancel()
	}
}

// renew has all watches begin anew, and all who wait look.
func (h *hub) renew() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, x := range h.streams {
		if x.again != nil {
			x.again()
		}
		x.tell(nil)
	}
}

// tell tells those to whom the event matters; nil matters to all. The caller holds the lock of the hub.
func (x *stream) tell(e *event) {
	for w := range x.waiting {
		if e == nil || w.relevant(*e) {
			kit.Notify(w.c)
		}
	}
}

// run watches until the context ends. A watch that ends goes on where it was. If the server does not know that any more, all who
// wait look.
func (h *hub) run(ctx context.Context, selector string, x *stream, version int64) {
	o := h.s.b.o
	for pause := o.backoff(); ; {
		request, again := context.WithCancel(ctx)
		h.mu.Lock()
		x.again = again
		h.mu.Unlock()
		began := time.Now()
		err := h.s.b.wire.watch(request, o.attempt(), selector, version, func(e event) {
			version = max(version, e.version())
			e.watched = true
			h.s.observe(e)
			h.mu.Lock()
			defer h.mu.Unlock()
			if e.deleted || !e.has(sessionLabel) {
				x.heard = version
			}
			x.tell(&e)
		})
		again()
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, errOld) {
			version = h.s.b.wire.seen.Load()
			h.mu.Lock()
			x.heard = version
			x.tell(nil)
			h.mu.Unlock()
		} else if time.Since(began) > o.TTL {
			pause.Reset()
		}
		if backoff.Sleep(ctx, pause.Next()) != nil {
			return
		}
	}
}

// await calls look, and again after each event that matters, until it is done. If the caller has looked already, since is a
// version of which it has seen all, and otherwise 0. due, which may be nil, says after what time to call due again if nothing is
// told.
func (h *hub) await(ctx context.Context, w *waiter, selectors []string, since int64, look func() (done bool, err error), due func() time.Duration) error {
	looked := since > 0
	if !looked {
		since = h.s.b.wire.seen.Load()
	}
	missed, leave := h.enter(w, selectors, since)
	defer leave()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for told := missed || !looked || h.s.hasGone(w.member); ; {
		if told {
			if done, err := look(); done || err != nil {
				return err
			}
		}
		if due != nil {
			timer.Reset(due())
		}
		select {
		case <-w.c:
			told = true
		case <-timer.C:
			told = false
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
