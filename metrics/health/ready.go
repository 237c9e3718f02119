package health

import (
	"maps"
	"net/http"
	"slices"
	"sync"

	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/metrics/internal/candidacy"
)

// A Ready is a handler that fails while this process could not take over: it campaigns, but does
// not stand in line, because it has not reached the coordinator yet, is cut off, or has lost leadership
// and its work goes on, or because an error has ended the campaign. A process that waits in line is ready.
//
// A Ready is safe for concurrent use, and has no goroutine and nothing to close.
type Ready struct {
	mu        sync.Mutex
	begun     bool
	elections map[string]*candidacy.State // those in whose lines this process wants to stand
}

// A Readiness is the JSON that a [Ready] answers with.
type Readiness struct {
	Ready bool `json:"ready"`
	// Outside lists, sorted, the elections in whose lines this process wants to stand and does not.
	Outside []string `json:"outside,omitempty"`
}

// NewReady returns a Ready that fails until the first campaign stands in line.
func NewReady() *Ready { return &Ready{elections: make(map[string]*candidacy.State)} }

// Trace is for [elect.Options] Trace, like Trace of [Live].
func (r *Ready) Trace(ev trace.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.elections[ev.Election]
	if s == nil {
		s = new(candidacy.State)
	}
	s.Trace(ev)
	if s.Wants() {
		r.begun = true
		r.elections[ev.Election] = s
	} else {
		delete(r.elections, ev.Election)
	}
}

// ServeHTTP answers GET and HEAD with 200 if this process stands in the line of each election in
// which it campaigns, and otherwise with 503. An election whose campaigns are over does not count,
// because its work is done, unless the last of them has failed: an error ended it that does not pass by itself, such as
// [backend.ErrDenied]. That election counts until another campaign in it is over and has not failed. A failure of a lock, or of
// another recipe, does not count. The body is a [Readiness] as JSON.
func (r *Ready) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var s Readiness
	r.mu.Lock()
	for _, name := range slices.Sorted(maps.Keys(r.elections)) {
		if r.elections[name].Standing() == 0 {
			s.Outside = append(s.Outside, name)
		}
	}
	s.Ready = r.begun && len(s.Outside) == 0
	r.mu.Unlock()
	answer(w, req, s.Ready, s)
}
