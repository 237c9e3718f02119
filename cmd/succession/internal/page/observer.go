package page

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/internal/again"
)

const (
	// calm is the time between two details of one election, at least.
	calm = 250 * time.Millisecond
	// relook is when a detail is made anew although no line has changed: values of a group and the
	// status of a migration are not watched.
	relook = 3 * time.Second
)

// An observer watches the lines of one election, or of one recipe, while a page shows it. It is safe
// for concurrent use.
type observer struct {
	w    *watcher
	line string // of the row
	runs *shared

	mu    sync.Mutex
	lines map[string]backend.Line // as last read
	errs  map[string]error        // why a line cannot be read
	moved bell                    // a line has changed
	last  detail                  // the newest without an error
	event []byte                  // the newest detail, as all streams send it; nil before the first, and while nobody looks
	seq   uint64                  // of the newest event; 0 before the first
}

func newObserver(w *watcher, line string) *observer {
	o := &observer{w: w, line: line, errs: make(map[string]error)}
	o.runs = &shared{run: o.run, on: w.tasks}
	return o
}

// newest returns the event of the newest detail, if there is a newer one than after, and its number.
func (o *observer) newest(after uint64) ([]byte, uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seq == after || o.event == nil {
		return nil, after
	}
	return o.event, o.seq
}

// run follows the lines until ctx ends, and makes a detail whenever one has changed.
func (o *observer) run(ctx context.Context) {
	defer func() {
		o.mu.Lock()
		o.event = nil // what is known gets old
		o.mu.Unlock()
	}()
	for ctx.Err() == nil {
		o.w.pulse.whileHeard(ctx, func(ctx context.Context) {
			o.mu.Lock()
			o.lines, o.errs = make(map[string]backend.Line), make(map[string]error) // earlier ones are old
			o.mu.Unlock()
			for ctx.Err() == nil {
				r, _ := o.w.rowAt(o.line)
				o.as(ctx, r)
			}
		})
	}
}

// as follows the lines of a recipe, until ctx ends or they turn out to be another's. Of a group the
// items are not followed: the watcher reads their heads.
func (o *observer) as(ctx context.Context, r recipe) {
	ctx, cancel := context.WithCancel(ctx)
	var following sync.WaitGroup
	defer following.Wait()
	defer cancel()
	for _, line := range r.lines() {
		following.Go(func() { o.follow(ctx, line) })
	}
	tick := time.NewTicker(relook)
	defer tick.Stop()
	for {
		changed := o.moved.next()
		now, parts := o.w.rowAt(o.line)
		if now != r {
			return
		}
		o.publish(ctx, r, parts)
		select {
		case <-changed:
			if backoff.Sleep(ctx, calm) != nil {
				return
			}
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// publish makes a detail of the lines, if all have been read.
func (o *observer) publish(ctx context.Context, r recipe, parts map[string]head) {
	o.mu.Lock()
	read, last := make(map[string]backend.Line), o.last
	var errs []error
	missing := false
	for _, line := range r.lines() {
		errs = append(errs, o.errs[line])
		l, ok := o.lines[line]
		read[line] = l
		missing = missing || !ok
	}
	o.mu.Unlock()
	d, err := &last, errors.Join(errs...)
	if err == nil && missing {
		return
	}
	if err == nil {
		d, err = within(ctx, func(ctx context.Context) (*detail, error) { return o.describe(ctx, r, read, parts) })
	}
	if ctx.Err() != nil {
		return
	}
	if err != nil { // the last that is known stays
		d = &last
		d.Name, d.Line, d.Kind, d.Error = r.name, o.line, r.kind, ui.Clip(ui.OneLine(err.Error()))
	} else {
		d.bound()
	}
	for i := range d.Tables {
		if d.Tables[i].Rows == nil {
			d.Tables[i].Rows = [][]string{} // null is no list
		}
	}
	text := event("detail", d)
	o.mu.Lock()
	same := bytes.Equal(text, o.event)
	if err == nil {
		o.last = *d
	}
	if !same {
		o.event = text
		o.seq++
	}
	o.mu.Unlock()
	if !same {
		o.w.bell.ring()
	}
}

// follow keeps the newest state of one line in o.lines, until ctx ends.
func (o *observer) follow(ctx context.Context, line string) {
	wait := backoff.New(ctx)
	for {
		err := o.watch(ctx, line, &wait)
		if ctx.Err() != nil {
			return
		}
		o.mu.Lock()
		o.errs[line] = err
		o.mu.Unlock()
		o.moved.ring()
		if wait.After(ctx, err) != nil {
			return
		}
	}
}

// watch is follow until something fails.
func (o *observer) watch(ctx context.Context, line string, wait *backoff.Backoff) error {
	s, err := within(ctx, o.w.b.Session)
	if err != nil {
		return err
	}
	read := func(ctx context.Context) (backend.Line, error) { return s.Line(ctx, line) }
	l, err := within(ctx, read)
	for err == nil {
		wait.Reset()
		o.w.saw(line, l, true)
		o.mu.Lock()
		o.lines[line], o.errs[line] = l, nil
		o.mu.Unlock()
		o.moved.ring()
		var reread bool
		l, reread, err = changed(ctx, s, line, l, wait.Jitter)
		if err == nil && reread {
			l, err = within(ctx, read)
		}
	}
	return err
}

// changed blocks until others stand in the line than l says, or its header has another version. It
// returns the line as it then is, or that it has to be read again. It returns after about a session
// time in any case, because a watch may die unseen.
func changed(ctx context.Context, s backend.Session, name string, l backend.Line, j backoff.Jitter) (now backend.Line, reread bool, err error) {
	now = l
	err = again.ForAWhile(ctx, s, j, func(ctx context.Context) error {
		var other backend.Line
		i, err := again.First(ctx, func(ctx context.Context) (err error) {
			other, err = s.WatchLine(ctx, name, l)
			return err
		}, again.Changed(s, name, l.Version))
		switch {
		case err != nil:
		case i == 0:
			now = other
		default:
			reread = true
		}
		return err
	})
	return now, reread, err
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
