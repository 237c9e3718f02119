package kit

import (
	"context"
	"sync"
)

// A Lookout lets many members of one line look at it together. For each member that looks alone the
// coordinator goes through the whole line, or even sends it. If ten thousand join at once, that is
// a hundred million places. So beyond a few, members share views of the line, and each view is read
// once.
//
// A session has one Lookout. It is safe for concurrent use.
type Lookout[V any] struct {
	// Life is the life of the session.
	Life *Life
	// Read reads a line. It must end when the session does.
	Read func(line string) (V, error)

	mu    sync.Mutex
	lines map[string]*looks[V] // the lines that members look at now
}

// maxAlone is how many members of one line look alone at the same time.
const maxAlone = 8

// looks are the members that look at one line now.
type looks[V any] struct {
	alone   int
	reading bool
	next    *view[V] // for members that came after the present view was requested; nil if there are none
}

// A view is a line that has been read. Its fields may be read once ready is closed.
type view[V any] struct {
	ready chan struct{}
	line  V
	err   error
}

// Enter returns the line as it was read after the call. If it returns true for alone instead, the
// caller may look by itself, and must then call Leave.
func (l *Lookout[V]) Enter(ctx context.Context, line string) (v V, alone bool, err error) {
	l.mu.Lock()
	now := l.at(line)
	if now.enterAlone() {
		l.mu.Unlock()
		return v, true, nil
	}
	if now.next == nil {
		now.next = &view[V]{ready: make(chan struct{})}
	}
	next := now.next
	l.goOn(line, now)
	l.mu.Unlock()
	select {
	case <-next.ready:
		return next.line, false, next.err
	case <-ctx.Done():
		return v, false, context.Cause(ctx)
	}
}

// TryAlone is Enter that returns at once: if it returns false, too many look for the caller to look by itself.
func (l *Lookout[V]) TryAlone(line string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at(line).enterAlone()
}

// at returns the looks at a line. The caller holds mu.
func (l *Lookout[V]) at(line string) *looks[V] {
	now := l.lines[line]
	if now == nil {
		if now = new(looks[V]); l.lines == nil {
			l.lines = make(map[string]*looks[V])
		}
		l.lines[line] = now
	}
	return now
}

// enterAlone notes one more that looks alone, unless they are too many.
func (now *looks[V]) enterAlone() bool {
	if now.reading || now.alone >= maxAlone {
		return false
	}
	now.alone++
	return true
}

// Leave says that a member that looked alone has done so.
func (l *Lookout[V]) Leave(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines[line].alone--
	l.goOn(line, l.lines[line])
}

// goOn begins to read the next view, if a member waits for it and no other view is being read.
func (l *Lookout[V]) goOn(line string, now *looks[V]) {
	v := now.next
	switch {
	case now.reading:
	case v != nil:
		now.next = nil
		now.reading = l.Life.Go(func() {
			v.line, v.err = l.Read(line)
			close(v.ready)
			l.mu.Lock()
			defer l.mu.Unlock()
			now.reading = false
			l.goOn(line, now)
		})
		if !now.reading {
			v.err = l.Life.Ended()
			close(v.ready)
		}
	case now.alone == 0:
		delete(l.lines, line)
	}
}
