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
// after TTL and slack by a clock that may be slow; a former leader may linger before it
// joins again; a call that was answered slowly may have been on its way; and a candidate
// that failed last just before waits up to two seconds. A candidate finds that an election
// has moved at its slow re-check. One that has given way again and again pauses before it joins.
func Bound(p Plan) time.Duration {
	late := time.Duration(0)
	for _, early := range p.Early {
		late = max(late, -early)
	}
	d := time.Duration(float64(TTL+p.Slack)/rate(-late)) + MaxLinger + putTimeout + 2*MaxDelay + 2*time.Second
	if p.Migrate {
		d += 2 * TTL
	}
	if p.Choice {
		d += rejoin + asked
	}
	return d
}

// Flaws are what a test plants, so that it is found. Nil is what there is without it.
type Flaws struct {
	// Backend makes of the backend of a process or an operator what they use.
	Backend func(backend.Backend) backend.Backend
	// Composite takes the place of migrate.New.
	Composite func(from, to backend.Backend) backend.Backend
}

// A world is one run of a plan.
type world struct {
	plan    Plan
	flaws   Flaws
	sides   []*side
	began   time.Time
	log     *history.Recorder
	ctx     context.Context // of all that the world started
	running sync.WaitGroup

	mu         sync.Mutex        // guards the rest, and what it leads to
	operator   backend.Backend   // whom no fault touches
	operators  []backend.Backend // all there ever were
	elections  []*election
	clients    []*client // in their slots
	processes  int       // how many clients there have been
	candidates []*candidate
	terms      []*term
	observers  []*observer
	quiet      bool           // nobody resigns of its own accord any more
	busy       map[string]int // what has been started and has not returned
	actors     uint64         // how many there have been
	rewinds    rewinds
	era        int // how often the log has gone back
	broken     []Violation
}

// An election is what the world knows of one election.
type election struct {
	name    string
	asked   bool            // an operator has asked a leader to resign
	floor   uint64          // of tokens: raised for certain,
	above   map[int]uint64  // for those who joined behind this position of a side
	deposed map[uint64]bool // positions that an operator took away
	puts    map[put]uint64  // tokens
	closed  func()          // ends the fault that a gate or a seal is; nil where there is none
	sealed  time.Time       // when it was last seen to be sealed
	begun   time.Time       // when its migration was first seen to have begun
	id      string          // of its migration, as last seen
	again   bool            // more than one has begun
	moved   bool            // it has been seen to be sealed on the old side
}

// A put is one version of the record of the election.
type put struct {
	side    int
	version backend.Version
}

// record is where the leaders of the election write.
func (e *election) record() string { return "work/" + e.name }

// Run runs the plan and says what it found. It must be called in a bubble of
// testing/synctest, and returns when all that it started has ended. f is what a test
// plants; nil is nothing.
func Run(p Plan, f *Flaws) *Report {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w := &world{plan: p, began: time.Now(), ctx: ctx, busy: make(map[string]int)}
	if f != nil {
		w.flaws = *f
	}
	w.log = history.NewRecorder(w.now, nil)
	// A nanosecond, so that the two ends of a session do not end it at one instant.
	o := memory.Options{TTL: TTL, Slack: p.Slack + 1}
	w.addSide(o, p.OldAhead)
	if p.Migrate {
		w.addSide(o, !p.OldAhead)
	}
	w.newOperator()
	for i := range p.Elections {
		w.elections = append(w.elections, &election{
			name: fmt.Sprintf("e%d", i+1), above: make(map[int]uint64), deposed: make(map[uint64]bool), puts: make(map[put]uint64),
		})
	}
	for i := range p.Clients {
		w.clients = append(w.clients, nil)
		w.replace(i, p.mode(i))
	}
	if p.Migrate && p.Begun {
		for _, e := range w.elections {
			w.alone(func() { w.move(e, Step{Do: Begin}) })
		}
	}
	for i, s := range p.Steps {
		w.do(s)
		w.settle()
		// Each step has an instant of its own, so that what it starts does not meet
		// what another started: timers of one instant fire in any order.
		w.pass(s.Then + time.Duration(i+1)*chain)
		if len(w.violations()) > 0 {
			break // what follows from it is of no interest
		}
	}
	w.calm()
	w.end(cancel)
	return w.report()
}

func (w *world) addSide(o memory.Options, ahead bool) {
	if ahead {
		o.Index = 500
	}
	w.sides = append(w.sides, &side{nth: len(w.sides), c: memory.New(&o)})
}

// newOperator has another process act for operators from now on.
func (w *world) newOperator() {
	b, _ := w.connect("operator", Both, nil)
	w.operator = w.flawed(b)
	w.operators = append(w.operators, b)
}

func (w *world) now() time.Duration { return time.Since(w.began) }

// settle lets everything happen that follows at once, and looks. A candidate may do something by its own clock just then:
// so if an observer has not heard of something, it has as long again.
func (w *world) settle() {
	rest := func() {
		time.Sleep(chain)
		synctest.Wait()
	}
	rest()
	w.mu.Lock()
	defer w.mu.Unlock()
	if slices.ContainsFunc(w.elections, w.behind) {
		w.mu.Unlock()
		rest()
		w.mu.Lock()
	}
	w.look()
}

// pass lets time pass, and looks. Where a gate stands it looks each second: the head of
// the line may come to be the gate at any time.
func (w *world) pass(d time.Duration) {
	for d > time.Second && w.gated() {
		time.Sleep(time.Second)
		w.settle()
		d -= time.Second
	}
	time.Sleep(d)
	w.settle()
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

// calm ends all faults, has operators finish what they have begun, waits for the bound,
// and looks whether all is well.
func (w *world) calm() {
	w.alone(func() { w.quiet = true })
	for _, s := range w.sides {
		w.alone(func() { w.resume(s) })
	}
	for _, c := range w.clients {
		for _, l := range c.links {
			w.alone(l.undelay)
			w.alone(l.heal)
			l.b.Lag(0)
		}
	}
	w.mu.Lock()
	rewound := w.rewinds.open()
	w.mu.Unlock()
	if rewound {
		time.Sleep(notice)
		w.alone(w.lookTold)
		w.alone(w.recover)
	}
	if w.plan.Migrate {
		w.pass(2 * TTL) // operators give up, or have done what they do
		for _, e := range w.elections {
			w.alone(func() { w.tidy(e) })
		}
	}
	if w.plan.Choice {
		w.pass(operatorTimeout) // as above
		for _, e := range w.elections {
			w.alone(func() { w.reopen(e) })
		}
	}
	w.pass(Bound(w.plan))
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
	w.lookForGhosts("")
	clients := slices.Clone(w.clients)
	w.mu.Unlock()
	for _, c := range clients {
		if err := c.b.Close(); err != nil {
			w.failed("clean end", "closing %s: %v", c.name, err)
		}
	}
	for _, b := range w.operators {
		if err := b.Close(); err != nil {
			w.failed("clean end", "closing an operator: %v", err)
		}
	}
	for _, s := range w.sides {
		if left := s.c.Sessions(); len(left) > 0 {
			w.failed("clean end", "sessions are left: %v", left)
		}
	}
	w.running.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lookForGhosts(".migrate-both")
	w.lookBack()
}
