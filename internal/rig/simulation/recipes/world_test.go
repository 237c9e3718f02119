package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/elect"
	. "github.com/succession-dev/succession/internal/rig/simulation/recipes"
	"github.com/succession-dev/succession/internal/view"
	"github.com/succession-dev/succession/memory"
)

// A plan is one schedule.
type plan struct {
	Processes int
	Slack     time.Duration
	Seed      uint64
	Steps     []step
}

// A step is one fault, and how long the world then goes on by itself.
type step struct {
	Do      act
	Process int // modulo how many there are
	Then    time.Duration
	Delay   time.Duration
}

type act string

const (
	crash       act = "crash" // a new process takes its place
	cut         act = "cut"
	cutRequests act = "cut requests"
	cutAnswers  act = "cut answers"
	heal        act = "heal"
	disconnect  act = "disconnect"
	loseRequest act = "lose request"
	loseAnswer  act = "lose answer"
	delay       act = "delay"
	lag         act = "lag"
	expire      act = "expire"
	restart     act = "restart" // the coordinator
	pause       act = "pause"
	resume      act = "resume"
	rest        act = "rest"
)

var acts = []act{rest, crash, cut, cutRequests, cutAnswers, heal, disconnect, loseRequest, loseAnswer, delay, lag, expire, restart, pause, resume}

// A recipe is what the processes of a world do together.
type recipe struct {
	// processes is the least number of them.
	processes int
	// process returns what the nth process does until ctx ends. It calls worked whenever it has
	// got what it waited for.
	process func(w *world, p *process, worked func()) func(ctx context.Context) error
	// calm is called when all have gone on for a while without a fault, and end when all have
	// stopped; each may be nil.
	calm func(w *world)
	end  func(w *world)
}

// A world is one run of a plan.
type world struct {
	c       *memory.Coordinator
	recipe  recipe
	flaw    func(backend.Session) backend.Session
	seed    uint64
	began   time.Time
	running sync.WaitGroup
	calmed  chan struct{} // closed when all faults have ended
	calmAt  time.Time     // when that was; guarded by mu

	mu        sync.Mutex
	processes []*process // in their slots
	all       int        // how many there have been
	inside    map[*elect.Term]*place
	progress  map[*process]int
	broken    []string
	log       []string
}

// A process is a client with what it does.
type process struct {
	*memory.Backend
	nth    int // of all there have been
	slot   int
	b      backend.Backend // Backend, with the flaw if there is one
	cancel context.CancelFunc
	dead   bool
}

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, fmt.Sprintf("%9.3fs  ", time.Since(w.began).Seconds())+fmt.Sprintf(format, args...))
}

func (w *world) fail(format string, args ...any) {
	w.note("BROKEN "+format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = append(w.broken, fmt.Sprintf(format, args...))
}

func (w *world) failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.broken) > 0
}

// run runs the plan in a bubble, and returns what was broken, and what happened.
func run(r recipe, p plan, flaw func(backend.Session) backend.Session) (broken []string, log string) {
	w := &world{
		c:      memory.New(&memory.Options{TTL: TTL, Slack: p.Slack + 1}),
		recipe: r, flaw: flaw, seed: p.Seed, began: time.Now(), calmed: make(chan struct{}),
		inside: make(map[*elect.Term]*place), progress: make(map[*process]int),
	}
	for i := range max(p.Processes, r.processes) {
		w.processes = append(w.processes, nil)
		w.replace(i)
	}
	for i, s := range p.Steps {
		w.do(s)
		time.Sleep(s.Then + time.Duration(i+1)*time.Microsecond)
		synctest.Wait()
		if w.failed() {
			break
		}
	}
	w.calm()
	w.end()
	return w.broken, strings.Join(w.log, "\n")
}

// replace starts a new process in the slot.
func (w *world) replace(slot int) {
	w.all++
	p := &process{nth: w.all, slot: slot, Backend: w.c.Client(fmt.Sprintf("p%d", w.all))}
	p.b = p.Backend
	if w.flaw != nil {
		p.b = view.Of(p.Backend, func(s backend.Session) backend.Session { return &view.Asked{Session: w.flaw(s)} })
	}
	w.mu.Lock()
	w.processes[slot] = p
	w.mu.Unlock()
	ctx, cancel := context.WithCancel(backoff.WithSeed(context.Background(), w.seed, uint64(w.all)))
	p.cancel = cancel
	work := w.recipe.process(w, p, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.progress[p]++
	})
	w.running.Go(func() {
		if err := work(ctx); err != nil && ctx.Err() == nil && !w.excused(p) {
			w.fail("%s has given up: %v", p.Name(), err)
		}
	})
}

func (w *world) do(s step) {
	slot := s.Process % len(w.processes)
	p := w.processes[slot]
	if s.Do != rest {
		w.note("%s %s", s.Do, p.Name())
	}
	switch s.Do {
	case crash:
		w.excuse(p)
		w.mu.Lock()
		p.dead = true
		w.mu.Unlock()
		p.Kill()
		p.cancel()
		w.replace(slot)
	case cut:
		p.Cut()
	case cutRequests:
		p.CutRequests()
	case cutAnswers:
		p.CutAnswers()
	case heal:
		p.Heal()
	case disconnect:
		p.Disconnect()
	case loseRequest:
		p.LoseRequest()
	case loseAnswer:
		p.LoseAnswer()
	case delay:
		p.Delay(s.Delay, s.Delay)
	case lag:
		p.Lag(s.Delay)
	case expire:
		w.excuse(p)
		p.Expire()
	case restart:
		w.c.Restart()
	case pause:
		w.c.Pause()
	case resume:
		w.c.Resume()
	}
}

// calm ends all faults. Then each process must make progress.
func (w *world) calm() {
	w.note("all faults end")
	w.mu.Lock()
	w.calmAt = time.Now()
	w.mu.Unlock()
	close(w.calmed)
	w.c.Resume()
	for _, p := range w.processes {
		p.Heal()
		p.Delay(0, 0)
		p.Lag(0)
	}
	time.Sleep(Bound / 2) // what was lost before is found out
	w.mu.Lock()
	clear(w.progress)
	w.mu.Unlock()
	time.Sleep(Bound / 2)
	synctest.Wait()
	if w.failed() {
		return
	}
	if w.recipe.calm != nil {
		w.recipe.calm(w)
	}
	for _, p := range w.processes {
		w.mu.Lock()
		n := w.progress[p]
		w.mu.Unlock()
		if n == 0 {
			w.fail("%s has got nothing for %v without a fault", p.Name(), Bound/2)
		}
	}
}

// end stops all processes. Nothing may be left of them.
func (w *world) end() {
	w.note("all stop")
	for _, p := range w.processes {
		p.cancel()
	}
	time.Sleep(TTL)
	synctest.Wait()
	if !w.failed() && w.recipe.end != nil {
		w.recipe.end(w)
	}
	for _, p := range w.processes {
		p.Close()
	}
	w.running.Wait()
	time.Sleep(2 * TTL)
	if left := w.c.Sessions(); len(left) > 0 && !w.failed() {
		w.fail("sessions are left: %v", left)
	}
}

// A place is what a term holds: no two that exclude each other may hold the same.
type place struct {
	p      *process
	what   string
	shares int // how many may hold it together; 1 is alone
	gone   bool
}

// enter notes that p holds something, and checks that it may. leave is to be called before it is
// given back.
func (w *world) enter(p *process, t *elect.Term, what string, shares int) (leave func()) {
	w.note("%s holds %s with token %d", p.Name(), what, t.Token())
	w.mu.Lock()
	together, clash := 1, ""
	for other, q := range w.inside {
		if q.what != what || q.gone || other.Check() != nil || t.Check() != nil {
			continue
		}
		if together++; together > min(shares, q.shares) {
			clash = q.p.Name()
		}
	}
	in := &place{p: p, what: what, shares: shares, gone: p.dead}
	w.inside[t] = in
	w.mu.Unlock()
	if clash != "" {
		w.fail("%s holds %s together with %s", p.Name(), what, clash)
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.inside, t)
	}
}

// excuse forgets what p holds: it has crashed, or an operator has ended its session, which it may
// not know yet.
func (w *world) excuse(p *process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, q := range w.inside {
		if q.p == p {
			q.gone = true
		}
	}
}

// excused reports whether p has crashed.
func (w *world) excused(p *process) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return p.dead
}

// holders returns how many hold this.
func (w *world) holders(what string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for t, q := range w.inside {
		if q.what == what && !q.gone && t.Check() == nil {
			n++
		}
	}
	return n
}

// passes reports whether a process may try again after err.
func passes(err error, also ...error) bool {
	return slices.ContainsFunc(append(also, backend.ErrUnavailable, backend.ErrSessionEnded, backend.ErrNotMember, elect.ErrLost), func(may error) bool {
		return errors.Is(err, may)
	})
}
