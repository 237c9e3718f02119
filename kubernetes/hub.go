package kubernetes

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend/kit"
)

// A hub has the watches of a session. All who wait for the same share a topic, and many topics share a watch.
type hub struct {
	s       *session
	mu      sync.Mutex
	topics  map[subject]*topic
	streams []*stream // the first is that of the session itself
	mute    bool      // the log says that one cannot be opened
}

// A subject is what somebody may wait for: all Leases that have the name under the label. A lock is a Lease without labels of ours; its
// label is nameField.
type subject struct{ label, name string }

const nameField = "metadata.name"

// A topic is a subject that some wait for.
type topic struct {
	subject
	on      *stream
	waiting map[*waiter]bool
	kept    bool  // also when nobody waits
	heard   int64 // the version after which it began, and later that of the newest event that may matter to anybody
}

// A waiter is told of events that matter to it.
type waiter struct {
	c        chan struct{}      // has room for one
	relevant func(e event) bool // called with the hub locked
	members  []string           // the keys of the members whose end matters; it looks at once if one has gone already
}

// newWaiter returns a waiter. A key that is empty stands for no member.
func newWaiter(relevant func(e event) bool, members ...string) *waiter {
	members = slices.DeleteFunc(members, func(key string) bool { return key == "" })
	return &waiter{c: make(chan struct{}, 1), relevant: relevant, members: members}
}

// follow keeps a topic, whether anybody waits or not.
func (h *hub) follow(a subject, version int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.topic(a, version).kept = true
}

// enter has w told of what happens to the subjects after the version. The caller calls leave. missed says that something may have
// happened already.
func (h *hub) enter(w *waiter, about []subject, version int64) (missed bool, leave func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range about {
		t := h.topic(a, version)
		t.waiting[w] = true
		missed = missed || t.heard > version
	}
	return missed, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, a := range about {
			if t := h.topics[a]; t != nil && t.waiting[w] {
				if delete(t.waiting, w); len(t.waiting) == 0 && !t.kept {
					// A caller that waits again soon finds it still there.
					time.AfterFunc(h.s.b.o.TTL/8, func() { h.drop(t) })
				}
			}
		}
	}
}

// topic returns the topic of a subject, which is told of from the version on if it is new. The caller holds the lock.
func (h *hub) topic(a subject, version int64) *topic {
	t := h.topics[a]
	if t == nil {
		t = &topic{subject: a, on: h.streamFor(a), waiting: make(map[*waiter]bool), heard: version}
		h.topics[a] = t
		t.on.topics[a.name] = t
		t.on.from = min(t.on.from, version)
		t.on.reopen()
	}
	return t
}

// streamFor returns a stream that has room for the subject. The caller holds the lock.
func (h *hub) streamFor(a subject) *stream {
	for i, x := range h.streams {
		// A record has its name under both labels, so the first stream may tell of it too.
		fits := x.label == a.label && a.label != nameField || i == 0 && a.label == idLabel
		if fits && len(x.topics) < mostWatched {
			return x
		}
	}
	ctx, cancel := context.WithCancel(h.s.Context())
	x := &stream{label: a.label, topics: make(map[string]*topic), cancel: cancel, shut: time.Now(), proven: time.Now(), version: math.MaxInt64, from: math.MaxInt64}
	if !h.s.Go(func() { h.run(ctx, x) }) {
		cancel()
	}
	h.streams = append(h.streams, x)
	return x
}

// drop takes a topic away for which nobody waits.
func (h *hub) drop(t *topic) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(t.waiting) > 0 || h.topics[t.subject] != t {
		return
	}
	x := t.on
	delete(h.topics, t.subject)
	delete(x.topics, t.name)
	switch {
	case len(x.topics) == 0:
		x.cancel()
		h.streams = slices.DeleteFunc(h.streams, func(o *stream) bool { return o == x })
	case t.label != idLabel: // few events tell of a record, so it may stay in the watch until that is opened anew
		x.reopen()
	}
}

// told tells those who wait for a session of an event that this process has brought about.
func (h *hub) told(session string, e event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.topics[subject{ofLabel, session}]; t != nil {
		t.tell(e)
	}
}

// concerns reports whether an event may matter to anybody who waits: of a session only its end does, that of its members, and that one becomes
// an item. So a thousand members that join do not have one another look.
func (t *topic) concerns(e event) bool { return t.label != ofLabel || e.deleted || e.isItem() }

// tell tells those to whom the event matters. The caller holds the lock of the hub.
func (t *topic) tell(e event) {
	for w := range t.waiting {
		if w.relevant(e) {
			kit.Notify(w.c)
		}
	}
}

// every is a due of await that has it look at such intervals, whatever it is told.
func (w *waiter) every(interval time.Duration) func() time.Duration {
	next := time.Now().Add(interval)
	return func() time.Duration {
		if !time.Now().Before(next) {
			next = time.Now().Add(interval)
			kit.Notify(w.c)
		}
		return time.Until(next)
	}
}

// await calls look, and again after each event that matters, until it is done. If the caller has looked already, since is a
// version of which it has seen all, and otherwise 0. due, which may be nil, says after what time to call due again if nothing is
// told.
func (h *hub) await(ctx context.Context, w *waiter, about []subject, since int64, look func() (done bool, err error), due func() time.Duration) error {
	looked := since > 0
	if !looked {
		since = h.s.b.wire.seen.Load()
	}
	missed, leave := h.enter(w, about, since)
	defer leave()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for told := missed || !looked || slices.ContainsFunc(w.members, h.s.hasGone); ; {
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
