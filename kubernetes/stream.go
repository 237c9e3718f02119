package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/backend/kit/backoff"
)

// mostWatched is of how many subjects a watch tells. Its address then has some 5 KB: what stands between a process and the API server
// may refuse one of 8 KiB.
const mostWatched = 100

// A stream is one watch, which is opened again when it ends. It has no first answer with what is there: it tells of what happens after a
// version. Whoever begins to wait has seen all up to the version that its topic began after, or looks again, so nothing is missed, and no
// look need wait until the watch is open.
//
// It also tells of the session's own Lease, if it selects by labels: that is renewed all the time, so a watch that does not tell of it
// is dead.
type stream struct {
	label   string
	topics  map[string]*topic  // by name
	cancel  context.CancelFunc // ends it
	again   context.CancelFunc // ends the request under way
	began   time.Time          // when that was sent
	open    bool               // it is answered
	shut    time.Time          // when it was open last, or made
	failed  error              // why it could not be opened; nil if it could when that was tried last
	late    bool               // it could not be opened for so long that those who wait look meanwhile
	until   time.Time          // it stays open that long at least
	anew    bool               // it is to be sent again, for other topics
	behind  bool               // something may have happened of which it has not told and does not tell any more
	version int64              // it has told of what has happened until then
	from    int64              // but for new topics: of these it is to tell what has happened since
	echo    int64              // the newest version of the session's own Lease of which it has told
	proven  time.Time          // when it has told of that Lease last, or was opened anew as it had not, or could not be opened
}

// reopen has the watch opened anew, with the topics that it has by then. That waits until the request under way is answered, and has
// been open for as long as that took. So one request follows the other, however many topics come at once, and events come in between. The
// caller holds the lock of the hub.
func (x *stream) reopen() {
	x.anew = true
	if !x.open {
		return
	}
	if d := time.Until(x.until); d > 0 {
		time.AfterFunc(d, x.again)
	} else {
		x.again()
	}
}

// selector selects what the stream is to tell of. own is the name of the session's own Lease. The caller holds the lock of the hub.
func (x *stream) selector(own string) string {
	names := slices.Collect(maps.Keys(x.topics))
	if x.label == nameField {
		return lockSelector(names[0])
	}
	if x.topics[own] == nil {
		names = append(names, own)
	}
	return in(x.label, names)
}

// in selects all that have one of the names under the label.
func in(label string, names []string) string { return label + " in (" + strings.Join(names, ",") + ")" }

// run watches until the context ends. A watch that ends goes on where it was.
func (h *hub) run(ctx context.Context, x *stream) {
	o := h.s.b.o
	for pause := o.backoff(); ; {
		h.catchUp(ctx, x)
		request, again := context.WithCancel(ctx)
		if x.label != nameField { // locks have a watch each
			request = ranked(request, urgent)
		}
		h.mu.Lock()
		if ctx.Err() != nil { // nothing is left to tell of
			h.mu.Unlock()
			again()
			return
		}
		x.again, x.open, x.anew, x.began = again, false, false, time.Now()
		x.version, x.from = min(x.version, x.from), math.MaxInt64
		selector, version := x.selector(h.s.name), x.version
		h.mu.Unlock()
		err := h.s.b.wire.watch(request, o.attempt(), selector, version, func() { h.opened(x) }, func(e event) { h.hear(x, e) })
		again()
		h.mu.Lock()
		meant := x.open && (x.anew || x.behind)
		if x.failed = err; x.open {
			x.shut, x.failed = time.Now(), nil
		}
		x.open = false
		x.behind = x.behind || errors.Is(err, errOld)
		if time.Since(x.began) > o.TTL {
			pause.Reset()
		}
		h.mu.Unlock()
		if !meant && backoff.Sleep(ctx, pause.Next()) != nil {
			return
		}
	}
}

// opened notes that the request of x is answered.
func (h *hub) opened(x *stream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	x.open, x.late, x.until = true, false, time.Now().Add(min(time.Since(x.began), h.s.b.o.TTL/100))
	if x.behind {
		x.again()
	} else if x.anew {
		x.reopen()
	}
}

// hear tells of an event.
func (h *hub) hear(x *stream, e event) {
	h.s.observe(e)
	h.mu.Lock()
	defer h.mu.Unlock()
	x.version = max(x.version, e.version())
	if e.Metadata.UID == h.s.uid {
		x.echo, x.proven = max(x.echo, e.version()), time.Now()
	}
	name := e.Metadata.Labels[x.label]
	if x.label == nameField {
		name = e.Metadata.Name
	}
	if t := x.topics[name]; t != nil && t.concerns(e) {
		t.heard = max(t.heard, e.version())
		t.tell(e)
	}
}

// prove has all watches opened anew if one of them has not told of the session's own version, which must be half a session time old: it is
// silent, or ends whenever it was opened. Where one could not be opened for as long as that takes, those who wait are told of what a list shows, again and again.
func (h *hub) prove(version int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	old, deaf, failed := h.s.b.o.TTL*3/4, false, error(nil)
	for _, x := range h.streams {
		switch late := !x.open && time.Since(x.shut) > old; {
		case late || !x.open && x.failed != nil:
			x.proven = time.Now() // once it is open, it is given time to tell
			if late {
				x.late, failed = true, cmp.Or(failed, x.failed)
			}
		case x.label != nameField && x.echo < version && time.Since(x.proven) > old:
			deaf = true
		}
	}
	if failed != nil && !h.mute {
		h.s.b.o.Logger.Warn("a watch cannot be opened, looking from time to time instead", "session", h.s.name, "err", failed)
	}
	h.mute = failed != nil
	if !deaf {
		return
	}
	h.s.b.o.Logger.Warn("a watch tells of nothing, opening all anew", "session", h.s.name)
	for _, x := range h.streams {
		x.behind, x.proven = true, time.Now()
		if x.open {
			x.again()
		}
	}
}

// catchUp tells those who wait of what x has not told: a list shows what there is of all that they wait for. So only those look whom it
// concerns. Those who wait for a line or a lock all look.
func (h *hub) catchUp(ctx context.Context, x *stream) {
	h.mu.Lock()
	if !x.behind && !x.late {
		h.mu.Unlock()
		return
	}
	x.behind, x.late = false, false
	all := x.label == lineLabel || x.label == nameField
	var names []string
	if !all {
		names = x.objects(h.s.name)
	}
	h.mu.Unlock()
	version := int64(math.MaxInt64)
	there := make(map[string]*object)
	for some := range slices.Chunk(names, mostWatched) {
		l, err := h.s.b.wire.list(ctx, h.s.b.o.attempt(), in(idLabel, some), metadata)
		if all = err != nil; all { // who looks finds out why, or needs no list
			break
		}
		version = min(version, l.version)
		for _, o := range l.items {
			h.s.observe(event{object: o})
			there[o.Metadata.Name] = o
		}
	}
	if all {
		version = h.s.b.wire.seen.Load()
	}
	h.s.relist()
	h.mu.Lock()
	defer h.mu.Unlock()
	x.version = version
	for _, t := range x.topics {
		t.heard = max(t.heard, version)
		for w := range t.waiting {
			if all || slices.ContainsFunc(t.objects(w), func(name string) bool { return w.relevant(seen(name, there[name])) }) {
				kit.Notify(w.c)
			}
		}
	}
}

// objects returns the names of all that those who wait at x are to be told of; if nobody does, own, that of the session's own Lease.
func (x *stream) objects(own string) []string {
	names := make(map[string]bool)
	for _, t := range x.topics {
		for w := range t.waiting {
			for _, name := range t.objects(w) {
				names[name] = true
			}
		}
	}
	if len(names) == 0 {
		names[own] = true
	}
	return slices.Collect(maps.Keys(names))
}

// objects returns the names of those objects of the topic that matter to w, and perhaps of some of another topic of a session.
func (t *topic) objects(w *waiter) []string {
	if t.label == idLabel {
		return []string{t.name}
	}
	return append([]string{t.name}, w.members...)
}

// seen returns the event that says what a list has shown of an object; o is nil if it was not there.
func seen(name string, o *object) event {
	if o == nil {
		return event{deleted: true, object: &object{Metadata: meta{Name: name}}}
	}
	return event{object: o}
}
