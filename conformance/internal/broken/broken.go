// Package broken holds flawed backends and elections. Each breaks one law or guarantee of the
// project, in a way in which a real driver has broken it, or easily could. A test with them shows
// that the right rules of the conformance suite catch each flaw.
package broken

import (
	"context"
	"slices"
	"sync"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/election"
	"github.com/succession-dev/succession/internal/view"
)

// A Flaw is one way to break the contract of package backend, or of package elect. It
// sets one or more of the functions that follow its texts.
type Flaw struct {
	// Name names the flaw in the table of rules: a few words, unique.
	Name string
	// Breaks is the law or guarantee, a colon, and what is done wrong, in a sentence.
	Breaks string
	// Must are the IDs of the rules that must catch the flaw, because they are about what it
	// breaks.
	Must string
	// Short says that the flaw delays something by about a TTL. If Latency is that long, rules
	// allow such a delay to a busy machine, so only a harness with a shorter Latency catches the
	// flaw.
	Short bool
	// May are IDs or groups of rules that may also catch the flaw, because they build on what it
	// breaks. Every other rule must pass.
	May string

	// session returns a session that has the flaw.
	session func(b *Backend, s backend.Session) backend.Session
	// places says that the flaw is in WatchPlace or in the place that Join returns. In all other
	// sessions with a flaw, elections wait by the other methods, so that the rules show in which
	// method the flaw is.
	places bool
	// opens replaces Session of the backend, and closes replaces Close.
	opens  func(ctx context.Context, b *Backend) (backend.Session, error)
	closes func(b *Backend) error
	// breaks is called when the client's connection breaks.
	breaks func(b *Backend)
	// outlives says that a session outlives the client that crashes.
	outlives bool
	// faithful says that a client goes to no other server.
	faithful bool
	// trusting says that a client believes everything that a server says which has taken over.
	trusting bool
	// election returns an election that has the flaw.
	election election.Maker
}

// Flaws are all flaws, in the order of the rules.
var Flaws = slices.Concat(
	joinFlaws, aheadFlaws, goneFlaws, placeFlaws, lineFlaws, leaveFlaws, sessionFlaws, deadlineFlaws,
	folderFlaws, valueFlaws, shareFlaws, itemFlaws, queueFlaws, barrierFlaws, taskFlaws, pinFlaws, recordFlaws,
	leaderFlaws, tokenFlaws, guardFlaws, successionFlaws, ghostFlaws, toldFlaws, stallFlaws,
	cleanFlaws, observeFlaws, runFlaws, choiceFlaws, faultFlaws,
)

// Sound reports whether the backend has no flaw, and only elections have it.
func (f Flaw) Sound() bool { return f.session == nil && f.opens == nil && f.closes == nil }

// Election returns a func that makes elections with the flaw; nil if elections have none.
func (f Flaw) Election() election.Maker { return f.election }

// A Backend is a backend with a flaw.
type Backend struct {
	backend.Backend
	// Remove deletes the member that now has the key of m. A real coordinator lets any client do
	// that.
	Remove func(m backend.Member)
	// Anew, if not nil, returns another client of the coordinator, which knows nothing
	// of this one.
	Anew func() backend.Backend

	flaw Flaw

	mu       sync.Mutex
	sessions map[backend.Session]backend.Session
	newest   backend.Session // the newest session that was opened, without the flaw
	opening  bool            // Session is being called
	another  backend.Backend // the newest client of Anew; nil if there is none
	closed   bool
	release  chan struct{} // closed to end the goroutines that leak

	*struck
}

// New gives b the flaw.
func New(b backend.Backend, f Flaw) *Backend {
	return &Backend{Backend: b, flaw: f, sessions: make(map[backend.Session]backend.Session), release: make(chan struct{}), struck: newStruck()}
}

// Unwrap returns the backend without the flaw.
func (b *Backend) Unwrap() backend.Backend { return b.Backend }

// Faithful reports whether the client goes to no other server when its own is silent.
func (b *Backend) Faithful() bool { return b.flaw.faithful }

// Trusting reports whether the client leads as soon as a server says so that has taken over.
func (b *Backend) Trusting() bool { return b.flaw.trusting }

// Release ends the goroutines that the flaw has leaked, so that a test can end.
func (b *Backend) Release() { close(b.release) }

// Close implements [backend.Backend].
func (b *Backend) Close() error {
	if b.flaw.closes != nil {
		return b.flaw.closes(b)
	}
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	return b.Backend.Close()
}

// Session implements [backend.Backend].
func (b *Backend) Session(ctx context.Context) (backend.Session, error) {
	open := b.Backend.Session
	if b.flaw.opens != nil {
		open = func(ctx context.Context) (backend.Session, error) { return b.flaw.opens(ctx, b) }
	}
	s, err := open(ctx)
	if err != nil || b.flaw.session == nil {
		return s, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.newest = s
	flawed := b.sessions[s]
	if flawed == nil {
		if flawed = b.flaw.session(b, s); !b.flaw.places {
			flawed = &view.Asked{Session: flawed}
		}
		b.sessions[s] = flawed
	}
	return flawed, nil
}
