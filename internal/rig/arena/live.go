//go:build linux

package arena

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/succession-dev/succession/internal/history"
	"github.com/succession-dev/succession/internal/rig/evidence/notes"
)

// Live is what is known of an ongoing run: the notes of all workers as they come.
type Live struct {
	mu    sync.Mutex
	leads map[string]history.Event // the newest win of each election, while its term goes on
	won   map[Seat]time.Duration   // when last
	stood map[Seat]history.Event   // the join of who stands in line
	// changed is closed, and made anew, at each note.
	changed chan struct{}
}

// A Seat is a candidate in an election.
type Seat struct{ Candidate, Election string }

func newLive() *Live {
	return &Live{
		leads: make(map[string]history.Event), won: make(map[Seat]time.Duration),
		stood: make(map[Seat]history.Event), changed: make(chan struct{}),
	}
}

// hear takes a line of a worker's output.
func (l *Live) hear(line []byte) {
	h, err := notes.Read(bytes.NewReader(append(line[:len(line):len(line)], '\n')))
	if err != nil {
		return // the file has it, too, and the checker will say so
	}
	for _, e := range h.Events {
		l.note(e)
	}
}

func (l *Live) note(e history.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch e.Kind {
	case history.Joined:
		l.stood[Seat{e.Candidate, e.Election}] = e
	case history.Won:
		l.leads[e.Election] = e
		l.won[Seat{e.Candidate, e.Election}] = e.At
	case history.Ended, history.CheckFailed, history.Resigned, history.Left:
		if e.Kind == history.Left {
			delete(l.stood, Seat{e.Candidate, e.Election})
		}
		if l.leads[e.Election].Candidate == e.Candidate {
			delete(l.leads, e.Election)
		}
	}
	close(l.changed)
	l.changed = make(chan struct{})
}

// Leader returns the newest win of an election whose term goes on, as far as its
// winner has said.
func (l *Live) Leader(election string) (history.Event, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.leads[election]
	return e, ok
}

// WonSince reports whether the candidate has won since t.
func (l *Live) WonSince(s Seat, t time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, ok := l.won[s]
	return ok && at >= t
}

// Joined returns the join of a candidate that stands in line, as far as it has said.
func (l *Live) Joined(s Seat) (history.Event, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.stood[s]
	return e, ok
}

// Wait blocks until cond is true, which it asks after each note.
func (l *Live) Wait(ctx context.Context, cond func() bool) error {
	for {
		l.mu.Lock()
		changed := l.changed
		l.mu.Unlock()
		if cond() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
