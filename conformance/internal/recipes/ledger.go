package recipes

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/succession-dev/succession/conformance/internal/engine"
	"github.com/succession-dev/succession/recipes/queue"
)

// A ledger knows what has become of the items of a rule.
type ledger struct {
	t      *engine.Trial
	notice time.Duration // how long a taker may not know that it has lost an item

	mu        sync.Mutex
	taken     []*queue.Item          // in the order in which their takers said so
	newest    map[string]*queue.Item // of taken, by the ID
	confirmed map[string]bool        // by the ID
}

func newLedger(t *engine.Trial) *ledger {
	return &ledger{t: t, newest: make(map[string]*queue.Item), confirmed: make(map[string]bool)}
}

// enters notes that who has taken the item. Nobody else may have it, but for a moment, and it must
// not have been confirmed. It is returned at the end of the rule, if not before.
func (l *ledger) enters(who string, item *queue.Item) {
	l.t.Cleanup(func() { item.Return(context.Background()) })
	before := l.enter(who, item)
	if before != nil && before.Check() == nil && item.Check() == nil {
		engine.Await(l.t, before.Context().Done(), l.notice, fmt.Sprintf("%s has %q by the %s, and another has it by the %s", who, item.Value, item, before))
	}
}

// enter returns who had the item before.
func (l *ledger) enter(who string, item *queue.Item) (before *queue.Item) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.t.Log(who, "has %q by the %s", item.Value, item)
	before = l.newest[item.ID]
	switch {
	case item.Check() != nil: // it was lost before it was noted, so another may have been noted before it
	case l.confirmed[item.ID]: // unless a Put whose answer was lost has put it twice
		l.t.Fatalf("%s has %q by the %s; it was confirmed before", who, item.Value, item)
	case before != nil && before.Token() >= item.Token():
		l.t.Never("%s has %q by the %s, after one who had it by the %s", who, item.Value, item, before)
	}
	l.newest[item.ID] = item
	l.taken = append(l.taken, item)
	return before
}

// confirms calls Done. Of all who have taken an item one at most may succeed.
func (l *ledger) confirms(who string, item *queue.Item) error {
	err := item.Done(l.t.Ctx)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.confirmed[item.ID] {
		l.t.Never("%s has confirmed %q, which was confirmed before", who, item.Value)
	}
	l.confirmed[item.ID] = true
	return nil
}

// A worker is a client that puts items into the queue of a rule, and takes them.
type worker struct {
	*engine.Client
	q *queue.Queue
	l *ledger
}

// workers returns n workers with clients of their own.
func (l *ledger) workers(n int) (ws []*worker) {
	for _, c := range l.t.Clients(n) {
		q := queue.New(c, c.Election, &queue.Options{Options: *options(l.t, c)})
		ws = append(ws, &worker{c, q, l})
	}
	return ws
}

// puts puts the values, each of which must succeed soon.
func (w *worker) puts(values ...string) {
	for _, v := range values {
		w.l.t.Go(fmt.Sprintf("%s: Put of %q", w.Name, v), func() error { _, err := w.q.Put(w.l.t.Ctx, v); return err }).Returns(w.l.t.Soon())
	}
}

// A taking is a call of Take.
type taking struct {
	*engine.Call
	w    *worker
	item *queue.Item
}

// takes has the worker take an item in the background.
func (w *worker) takes() *taking {
	a := &taking{w: w}
	a.Call = w.l.t.Go(w.Name+": Take", func() (err error) {
		a.item, err = w.q.Take(w.l.t.Ctx)
		if err == nil {
			w.l.enters(w.Name, a.item)
		}
		return err
	})
	return a
}

// waits has the worker take an item in the background, as the n-th who waits for one.
func (w *worker) waits(n int) *taking {
	a := w.takes()
	stands(w.l.t, w.In(w.l.t.Name+"-turn"), n)
	return a
}

// gets waits until the item is taken, for at most d, which must be the one with this value.
func (a *taking) gets(d time.Duration, value string) *queue.Item {
	a.Returns(d)
	if a.item.Value != value {
		a.w.l.t.Fatalf("%s has %q; want %q", a.w.Name, a.item.Value, value)
	}
	return a.item
}

// gets has the worker take an item, which must be the one with this value. It takes several requests, so
// it has the time of a crash.
func (w *worker) gets(value string) *queue.Item {
	return w.takes().gets(w.l.t.Crash(), value)
}

// tries has the worker take the item with this value by TryTake, which must be free.
func (w *worker) tries(value string) *queue.Item {
	item, err := w.q.TryTake(w.l.t.Ctx)
	w.l.t.Want(fmt.Sprintf("%s: TryTake of %q, which is free", w.Name, value), err)
	w.l.enters(w.Name, item)
	if item.Value != value {
		w.l.t.Fatalf("%s has %q; want %q", w.Name, item.Value, value)
	}
	return item
}

// finishes confirms the item, which must succeed soon.
func (w *worker) finishes(item *queue.Item) {
	w.l.t.Go(w.Name+": Done", func() error { return w.l.confirms(w.Name, item) }).Returns(w.l.t.Soon())
}

// shows waits until these items stand, for a soon. Those with a star behind the value are taken.
func (w *worker) shows(want ...string) {
	t, got := w.l.t, []string(nil)
	t.Eventually(t.Soon(), fmt.Sprintf("%s: the items should be %q", w.Name, want), func() bool {
		entries, err := w.q.List(t.Ctx)
		t.Want(w.Name+": List", err)
		got = nil
		for _, e := range entries {
			if e.Taker != "" {
				e.Value += "*"
			}
			got = append(got, e.Value)
		}
		t.Log(w.Name, "sees the items %q", got)
		return slices.Equal(got, want)
	})
}

// isOver checks that nothing stands in the lines of the queue any more.
func (w *worker) isOver() {
	for _, line := range []string{"-items", "-claims", "-turn"} {
		w.In(w.l.t.Name + line).Shows(w.l.t.Soon())
	}
}
