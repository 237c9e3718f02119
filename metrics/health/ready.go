package health

import (
	"maps"
	"net/http"
	"slices"
	"sync"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect/trace"
)

// A Ready is a handler that fails while this process could not take over: it campaigns, but does
// not stand in line, because it has not reached the coordinator yet, or is cut off. A process that
// waits in line is ready.
//
// A Ready is safe for concurrent use, and has no goroutine and nothing to close.
type Ready struct {
	mu        sync.Mutex
	begun     bool
	elections map[string]*campaigns // with campaigns with campaigns that are not over
}

// campaigns are the campaigns of one election.
type campaigns struct {
	n        int
	standing map[backend.Member]bool
}

// A Readiness is the JSON that a [Ready] answers with.
type Readiness struct {
	Ready bool `json:"ready"`
	// Outside lists, sorted, the elections in whose lines this process wants to stand and does not.
	Outside []string `json:"outside,omitempty"`
}

// NewReady returns a Ready that fails until the first campaign stands in line.
func NewReady() *Ready { return &Ready{elections: make(map[string]*campaigns)} }

// Trace is for [elect.Options] Trace, like Trace of [Live].
func (r *Ready) Trace(ev trace.Event) {
	m := ev.Member
	m.Pinned = false // a member stays the same when it is pinned
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.elections[ev.Election]
	if c == nil {
		c = &campaigns{standing: make(map[backend.Member]bool)}
	}
	switch ev.Kind {
	case trace.Started:
		r.begun = true
		c.n++
		r.elections[ev.Election] = c
	case trace.Joined:
		c.standing[m] = true
	case trace.SessionLost, trace.Left:
		delete(c.standing, m)
	case trace.Finished:
		if c.n--; c.n <= 0 {
			delete(r.elections, ev.Election)
		}
	}
}

// ServeHTTP answers GET and HEAD with 200 if this process stands in the line of each election in
// which it campaigns, and otherwise with 503. Elections whose campaigns are over do not count,
// because their work is done. The body is a [Readiness] as JSON.
func (r *Ready) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var s Readiness
	r.mu.Lock()
	for _, name := range slices.Sorted(maps.Keys(r.elections)) {
		if len(r.elections[name].standing) == 0 {
			s.Outside = append(s.Outside, name)
		}
	}
	s.Ready = r.begun && len(s.Outside) == 0
	r.mu.Unlock()
	answer(w, req, s.Ready, s)
}
