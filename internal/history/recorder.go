package history

import (
	"encoding/json"
	"io"
	"sync"
	"time"
)

// A Recorder takes notes. It is safe for concurrent use.
type Recorder struct {
	clock func() time.Duration
	w     io.Writer

	mu     sync.Mutex // also held while the clock is read, so that notes are in its order
	events []Event
	faults []Fault
	open   map[*Fault]struct{}
	err    error
}

// NewRecorder returns a recorder that reads the clock at each note. If w is not nil, it also
// writes each note to w at once, as one line in one Write, so that a process that crashes
// leaves its notes. A fault is written when it ends.
func NewRecorder(clock func() time.Duration, w io.Writer) *Recorder {
	return &Recorder{clock: clock, w: w, open: make(map[*Fault]struct{})}
}

// Now returns the present time of the clock.
func (r *Recorder) Now() time.Duration { return r.clock() }

// Note keeps e. If e.At is 0, Note sets it to the present time.
func (r *Recorder) Note(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.At == 0 {
		e.At = r.clock()
	}
	r.events = append(r.events, e)
	r.line(e)
}

// Begin notes that a fault begins, and returns a func that notes its end. The func may be
// called more than once; the first call counts.
func (r *Recorder) Begin(kind, target string) (end func()) {
	return r.begin(Fault{Kind: kind, Target: target})
}

// BeginIn is [Recorder.Begin] for a fault that touches all candidates of one election.
func (r *Recorder) BeginIn(kind, election string) (end func()) {
	return r.begin(Fault{Kind: kind, Election: election})
}

func (r *Recorder) begin(fault Fault) (end func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := &fault
	f.From = r.clock()
	r.open[f] = struct{}{}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if _, ok := r.open[f]; !ok {
			return
		}
		delete(r.open, f)
		f.To = r.clock()
		r.faults = append(r.faults, *f)
		r.line(*f)
	}
}

// line writes one line. After an error it writes no more; see Err.
func (r *Recorder) line(v any) {
	if r.w == nil || r.err != nil {
		return
	}
	b, err := json.Marshal(v)
	if err == nil {
		_, err = r.w.Write(append(b, '\n'))
	}
	r.err = err
}

// Err returns the first error of a Write.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// History returns what has been noted up to now. Faults that have not ended yet end now in
// it.
func (r *Recorder) History() *History {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := &History{Events: r.events, Faults: r.faults}
	now := r.clock()
	for f := range r.open {
		f := *f
		f.To = now
		h.Faults = append(h.Faults[:len(h.Faults):len(h.Faults)], f)
	}
	return Merge(h)
}
