package health

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/trace"
)

// DefaultLimit is how long work may go on after its term if the limit of NewLive is 0.
const DefaultLimit = time.Minute

// A Live is a handler that fails when the work of a term goes on long after the term has ended: the
// function of [elect.Election.Run] ignores its context, or hangs. Such a process does not lead and
// stands in no line, and only a restart helps. It is no failure to wait in line, or not to reach
// the coordinator: a restart would not help there.
//
// A Live is safe for concurrent use, and has no goroutine and nothing to close.
type Live struct {
	limit time.Duration

	mu    sync.Mutex
	ended map[backend.Member]Overdue // the terms whose work may go on
}

// An Overdue is work that goes on after its term.
type Overdue struct {
	Line  string    `json:"line"` // the election
	Token uint64    `json:"token"`
	Since time.Time `json:"since"` // when the term ended
}

// A Liveness is the JSON that a [Live] answers with.
type Liveness struct {
	Live    bool      `json:"live"`
	Overdue []Overdue `json:"overdue,omitempty"` // work that goes on for longer than the limit, the oldest first
}

// NewLive returns a Live that fails when work goes on for longer than limit after its term. Zero
// means a minute. Give the work more than it needs to stop; a probe adds its own period to that.
func NewLive(limit time.Duration) *Live {
	return &Live{limit: cmp.Or(limit, DefaultLimit), ended: make(map[backend.Member]Overdue)}
}

// Trace is for [elect.Options] Trace of each election of the process, and for the options of locks,
// queues and the other recipes. It does not block.
func (l *Live) Trace(ev trace.Event) {
	m := ev.Member
	m.Pinned = false // a member stays the same when it is pinned
	l.mu.Lock()
	defer l.mu.Unlock()
	switch ev.Kind {
	case trace.Ended:
		if !errors.Is(ev.Err, elect.ErrResigned) { // after a resignation its work had ended before
			l.ended[m] = Overdue{m.Line, ev.Token, time.Now()}
		}
	case trace.Left:
		delete(l.ended, m)
	}
}

// ServeHTTP answers GET and HEAD: 200, or 503 if work goes on for too long. The body is a
// [Liveness] as JSON.
func (l *Live) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var s Liveness
	l.mu.Lock()
	for _, o := range l.ended {
		if time.Since(o.Since) > l.limit {
			s.Overdue = append(s.Overdue, o)
		}
	}
	l.mu.Unlock()
	slices.SortFunc(s.Overdue, func(a, b Overdue) int { return a.Since.Compare(b.Since) })
	s.Live = len(s.Overdue) == 0
	answer(w, r, s.Live, s)
}
