package simulation

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/history"
	"github.com/succession-dev/succession/memory"
)

// The times of every world.
const (
	// TTL is the coordinator's session time.
	TTL = 10 * time.Second
	// MaxDelay is the longest that a message takes in one direction, and MaxLinger
	// the longest that a leader's work goes on after the end of its term.
	MaxDelay  = 3 * time.Second
	MaxLinger = 3 * time.Second

	margin        = TTL / 10 // the default of package elect
	resignTimeout = 3*time.Second + odd
	putTimeout    = 2*time.Second + odd

	// odd keeps a call from being given up at the instant at which its answer comes:
	// delays are whole milliseconds.
	odd = 500 * time.Microsecond

	// grace is how long after the end of a fault a loss may still be its fault: a
	// round trip at the old delay may have eaten up the deadline.
	grace = TTL
)

// Bound is the time within which somebody leads every election that has a
// candidate, once all faults have ended. The session of a client that crashed ends
// after TTL and slack; a former leader may linger before it joins again; a call
// that was answered slowly may have been on its way; and a candidate that failed
// last just before waits up to two seconds.
func Bound(slack time.Duration) time.Duration {
	return TTL + slack + MaxLinger + putTimeout + 2*MaxDelay + 2*time.Second
}

// A world is one run of a plan.
type world struct {
	plan     Plan
	wrap     func(backend.Backend) backend.Backend
	c        *memory.Coordinator
	operator *memory.Backend // whom no fault touches
	began    time.Time
	log      *history.Recorder
	ctx      context.Context // of all that the world started
	running  sync.WaitGroup

	mu         sync.Mutex // guards the rest, and what it leads to
	elections  []*election
	clients    []*client // in their slots
	made       []*client // all there ever were
	candidates []*candidate
	terms      []*term
	observers  []*observer
	quiet      bool // nobody resigns of its own accord any more
	pause      func()
	pausedTill time.Time
	busy       map[string]int // what has been started and has not returned
	actors     uint64         // how many there have been
	broken     []Violation
}

// An election is what the world knows of one election.
type election struct {
	name    string
	asked   bool            // an operator has asked a leader to resign
	floor   uint64          // raised for certain,
	above   uint64          // for those who joined behind this position
	deposed map[uint64]bool // positions that an operator took away
	puts    map[backend.Version]uint64
}

// record is where the leaders of the election write.
func (e *election) record() string { return "work/" + e.name }

// A client is one process.
type client struct {
	w     *world
	name  string
	b     *memory.Backend
	ended bool // it crashed or was closed

	cut, delay  func() // end the faults; nil where there is none
	troubleTill time.Time
}

// troubled reports whether a fault of this client, or of all, may explain what
// happens to it now.
func (c *client) troubled() bool {
	now := time.Now()
	return c.ended || c.cut != nil || c.delay != nil || !now.After(c.troubleTill) ||
		c.w.pause != nil || !now.After(c.w.pausedTill)
}

// Run runs the plan and says what it found. It must be called in a bubble of
// testing/synctest, and returns when all that it started has ended. Candidates and
// observers use what wrap makes of their backends, which is how a test plants a
// flaw; nil leaves them as they are.
func Run(p Plan, wrap func(backend.Backend) backend.Backend) *Report {
	if wrap == nil {
		wrap = func(b backend.Backend) backend.Backend { return b }
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w := &world{
		plan: p,
		wrap: wrap,
		// A nanosecond, so that the two ends of a session do not end it at one instant.
		c:     memory.New(&memory.Options{TTL: TTL, Slack: p.Slack + 1}),
		began: time.Now(),
		ctx:   ctx,
		busy:  make(map[string]int),
	}
	w.log = history.NewRecorder(w.now, nil)
	w.operator = w.c.Client("operator")
	for i := range p.Elections {
		w.elections = append(w.elections, &election{
			name: fmt.Sprintf("e%d", i+1), deposed: make(map[uint64]bool), puts: make(map[backend.Version]uint64),
		})
	}
	for i := range p.Clients {
		w.clients = append(w.clients, nil)
		w.replace(i)
	}
	for i, s := range p.Steps {
		w.do(s)
		w.settle()
		// Each step has an instant of its own, so that what it starts does not meet
		// what another started: timers of one instant fire in any order.
		time.Sleep(s.Then + time.Duration(i+1)*chain)
		w.settle()
		if len(w.violations()) > 0 {
			break // what follows from it is of no interest
		}
	}
	w.calm()
	w.end(cancel)
	return w.report()
}

func (w *world) now() time.Duration { return time.Since(w.began) }

// settle lets everything happen that follows at once, and looks.
func (w *world) settle() {
	time.Sleep(chain)
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.look()
}

// alone does f at an instant of its own, and lets happen what comes of it.
func (w *world) alone(f func()) {
	w.mu.Lock()
	f()
	w.mu.Unlock()
	w.settle()
	time.Sleep(time.Millisecond + time.Microsecond)
}

// start runs f in a goroutine of the world.
func (w *world) start(what string, f func()) {
	w.busy[what]++
	w.running.Go(func() {
		f()
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.busy[what]--; w.busy[what] == 0 {
			delete(w.busy, what)
		}
	})
}

// replace puts a new process into a slot.
func (w *world) replace(slot int) {
	name := fmt.Sprintf("web-%d", len(w.made)+1)
	c := &client{w: w, name: name, b: w.c.Client(name)}
	w.made = append(w.made, c)
	w.clients[slot] = c
}

// calm ends all faults, waits for the bound, and looks whether all is well.
func (w *world) calm() {
	w.alone(func() {
		w.quiet = true
		w.resume()
	})
	for _, c := range w.clients {
		w.alone(func() { w.undelay(c) })
		w.alone(func() { w.heal(c) })
	}
	time.Sleep(Bound(w.plan.Slack))
	w.settle()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lookCalm()
}

// end stops everything, and looks whether anything is left.
func (w *world) end(cancel func()) {
	for _, c := range w.candidates {
		w.alone(c.cancel)
	}
	time.Sleep(MaxLinger + putTimeout + resignTimeout)
	w.settle()
	cancel()
	synctest.Wait()
	w.mu.Lock()
	for what := range w.busy {
		w.fail("clean end", "%s has not returned", what)
	}
	for _, e := range w.elections {
		if m := w.c.Members(e.name); len(m) > 0 {
			w.fail("ghost", "%d members stand in %s after all have left: %v", len(m), e.name, m)
		}
	}
	clients := slices.Clone(w.clients)
	w.mu.Unlock()
	for _, c := range clients {
		if err := c.b.Close(); err != nil {
			w.failed("clean end", "closing %s: %v", c.name, err)
		}
	}
	if err := w.operator.Close(); err != nil {
		w.failed("clean end", "closing the operator: %v", err)
	}
	if s := w.c.Sessions(); len(s) > 0 {
		w.failed("clean end", "sessions are left: %v", s)
	}
	w.running.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lookBack()
}
