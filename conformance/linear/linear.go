package linear

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance"
)

// Options say how histories are recorded. Nil and the zero value mean the defaults.
type Options struct {
	For  time.Duration // how long; 0 is a minute
	Seed uint64        // decides which calls are made and which faults strike; 0 is another one each time
	// Log is told the seed and each fault, if it is not nil. It is called by one goroutine at a time.
	Log func(format string, args ...any)
}

const clients = 4

// Record has clients call the coordinator of h while its faults strike, for about as long as o
// says, and returns the history of each workload. All names that it uses are under h.Prefix, or
// under "conformance" if that is empty, and stay: the caller deletes them. Record uses Open, TTL
// and Prefix of h, and the Faults that it knows. Others may use the coordinator meanwhile.
//
// Record fails if a call returns an error that no fault explains, if a fault fails, if the state at
// the end cannot be read, or if ctx ends. It returns when all its clients have been closed.
func Record(ctx context.Context, h conformance.Harness, o *Options) ([]*History, error) {
	if o == nil {
		o = new(Options)
	}
	seed := o.Seed
	for seed == 0 {
		seed = rand.Uint64()
	}
	r := &run{ctx: ctx, h: h, log: o.Log, name: fmt.Sprintf("%s/linear-%x", cmp.Or(h.Prefix, "conformance"), seed), began: time.Now()}
	r.logf("seed %d", seed)
	recording, cancel := context.WithTimeout(ctx, cmp.Or(o.For, time.Minute))
	defer cancel()
	loads := []workload{newRecords(r), newItems(r), newLocks(r)}
	var workers, faults sync.WaitGroup
	for i := range clients {
		c := &client{run: r, id: i}
		r.clients = append(r.clients, c)
		for j, w := range loads {
			dice := rand.New(rand.NewPCG(seed, uint64(i*len(loads)+j)))
			workers.Go(func() { c.work(recording, w, dice) })
		}
	}
	faults.Go(func() { r.strike(recording, rand.New(rand.NewPCG(seed, math.MaxUint64))) })
	faults.Wait() // with the last fault healed
	workers.Wait()
	for _, c := range r.clients {
		c.drop()
	}
	r.closing.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	all, err := r.end(loads)
	return all, errors.Join(append(r.errs, err)...)
}

// end reads the state at the end, and returns all histories. It has time for the claims of clients
// that have died.
func (r *run) end(loads []workload) (all []*History, err error) {
	c := &client{run: r, id: clients}
	defer func() { c.drop(); r.closing.Wait() }()
	ctx, cancel := context.WithTimeout(r.ctx, 30*r.h.TTL+time.Minute)
	defer cancel()
	for _, w := range loads {
		for {
			b, err := c.backend(ctx)
			if err == nil {
				err = w.end(ctx, c, b)
			}
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				return nil, fmt.Errorf("%s: what is there in the end cannot be read: %w", w.history().name, err)
			}
			pause(ctx, r.h.TTL/20)
		}
		all = append(all, w.history())
	}
	return all, nil
}

// A workload is what clients do, with its history.
type workload interface {
	// step does something by way of b. ctx ends with the step.
	step(ctx context.Context, c *client, b backend.Backend, dice *rand.Rand) error
	// end reads what is there in the end. It is called again until it succeeds.
	end(ctx context.Context, c *client, b backend.Backend) error
	history() *History
}

// A run is one recording.
type run struct {
	ctx     context.Context // of the caller
	h       conformance.Harness
	log     func(format string, args ...any)
	name    string // under which all that it uses lies
	began   time.Time
	clients []*client
	closing sync.WaitGroup

	mu   sync.Mutex
	last int64 // that now has returned
	errs []error
}

func (r *run) logf(format string, args ...any) {
	if r.log != nil {
		r.log(format, args...)
	}
}

// fail notes what makes Record fail.
func (r *run) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errs = append(r.errs, err)
}

// now returns the time since the run began, in nanoseconds, and never the same time twice: a call
// that ends before another begins must not look as if both ran at the same time.
func (r *run) now() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = max(r.last+1, int64(time.Since(r.began)))
	return r.last
}

// A client uses a backend that faults strike. After a crash it has another backend.
type client struct {
	*run
	id int

	mu    sync.Mutex
	b     backend.Backend
	ended int64 // when somebody else has last ended its session
}

// endSession calls f, which ends the client's session as an operator does: without asking the client, which only hears of it.
func (c *client) endSession(f func()) {
	c.lose() // what it has got
	f()
	c.lose() // and what it gets meanwhile
}

func (c *client) lose() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = c.now()
}

// checked returns what a check tells whose answer is err. since is a time before the client asked for what it checks.
func (c *client) checked(since int64, err error) outcome {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || c.ended > since {
		return nothing
	}
	return done
}

func (c *client) backend(ctx context.Context) (backend.Backend, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.b == nil {
		b, err := c.h.Open(ctx)
		if err != nil {
			return nil, err
		}
		c.b = b
	}
	return c.b, nil
}

// drop closes the client's backend. The client goes on with another one.
func (c *client) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if b := c.b; b != nil {
		c.b = nil
		c.closing.Go(func() { b.Close() })
	}
}

func (c *client) work(ctx context.Context, w workload, dice *rand.Rand) {
	for ctx.Err() == nil {
		b, err := c.backend(ctx)
		if err == nil {
			step, cancel := context.WithTimeout(ctx, 2*c.h.TTL)
			err = w.step(step, c, b, dice)
			cancel()
		}
		if err == nil || ctx.Err() != nil {
			continue
		}
		if !passes(err) {
			c.fail(fmt.Errorf("client %d, %s: %w", c.id, w.history().name, err))
			return
		}
		pause(ctx, c.h.TTL/100)
	}
}

// passes reports whether a fault explains the error.
func passes(err error) bool {
	for _, e := range []error{
		backend.ErrUnavailable, backend.ErrSessionEnded, backend.ErrNotMember, backend.ErrVersion, backend.ErrClosed,
		context.DeadlineExceeded, context.Canceled,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// A History has the calls of a workload and their answers.
type History struct {
	name  string
	model porcupine.Model

	mu   sync.Mutex
	all  []porcupine.Operation
	open int // operations without an answer
	// also checks what the model does not; nil if there is nothing more.
	also func(all []porcupine.Operation) error
}

// An outcome is what the answer to a call tells.
type outcome string

const (
	done    outcome = "done"
	refused outcome = "refused"   // not done, and that tells something
	lost    outcome = "no answer" // done at any later time, or never
	nothing outcome = "nothing"   // not done, and that tells nothing
)

// written returns what the error of a write on condition of a version tells.
func written(err error) outcome {
	switch {
	case err == nil:
		return done
	case errors.Is(err, backend.ErrVersion):
		return refused
	}
	return lost
}

// note calls f and notes what it does. f may add its answer to the operation.
func note[O any](r *run, h *History, client int, op *O, f func() outcome) {
	call := r.now()
	out := f()
	o := porcupine.Operation{ClientId: client, Input: *op, Call: call, Output: out, Return: r.now()}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch out {
	case nothing:
		return
	case lost:
		o.Return = math.MaxInt64
		h.open++
	}
	h.all = append(h.all, o)
}

// Name names the workload: records, items or locks.
func (h *History) Name() string { return h.name }

// Len returns how many calls the history has, and how many of them got no answer.
func (h *History) Len() (calls, open int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.all), h.open
}

// String says how many operations there are.
func (h *History) String() string {
	calls, open := h.Len()
	return fmt.Sprintf("%s: %d operations, %d of them without an answer", h.name, calls, open)
}

// limit bounds the search for an order. If there is an order, it is found at once.
const limit = 2 * time.Minute

// perPart is about how many calls there are about the records or the lock of one part of a history. What the search for an order
// takes grows with the square of that.
const perPart = 10_000

// part returns the part of the history in which the next calls are.
func (h *History) part() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.all) / perPart
}

// Check fails unless there is an order that explains all answers. It takes seconds for some ten thousand calls, and gives up
// when it has looked for two minutes at those of one record, item or lock.
func (h *History) Check() error {
	if h.also != nil {
		if err := h.also(h.all); err != nil {
			return fmt.Errorf("%s: %w", h.name, err)
		}
	}
	whole := h.model
	whole.Partition = nil
	for _, part := range h.model.Partition(h.all) {
		switch verdict, info := porcupine.CheckOperationsVerbose(whole, part, limit); verdict {
		case porcupine.Illegal:
			return fmt.Errorf("%s: fit no order: %s", h.name, show(part, info))
		case porcupine.Unknown:
			return fmt.Errorf("%s: no order was found in %v, and there may be one: %s", h.name, limit, show(part, info))
		}
	}
	return nil
}

// shown is how many operations of a history that fits no order are shown.
const shown = 40

// show shows the operations of a part, sorted by when they were called, near the first that the longest order lacks.
func show(part []porcupine.Operation, info porcupine.LinearizationInfo) string {
	var longest []porcupine.Operation
	for _, ops := range info.PartialLinearizationsOperations()[0] {
		if len(ops) > len(longest) {
			longest = ops
		}
	}
	ordered := make(map[int64]bool) // by when it was called, which is at no other's time
	for _, o := range longest {
		ordered[o.Call] = true
	}
	slices.SortFunc(part, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	at := 0
	for i, o := range part {
		if !ordered[o.Call] && (ordered[part[at].Call] || o.Return < part[at].Return) {
			at = i
		}
	}
	var text strings.Builder
	fmt.Fprintf(&text, "an order of %d of %d operations goes on no further; it lacks that of %v first", len(longest), len(part), time.Duration(part[at].Call))
	for _, o := range part[max(0, at-shown/2):min(len(part), at+shown/2)] {
		back := "-"
		if o.Return != math.MaxInt64 {
			back = time.Duration(o.Return).String()
		}
		fmt.Fprintf(&text, "\n  %v to %s, client %d: %+v: %v", time.Duration(o.Call), back, o.ClientId, o.Input, o.Output)
	}
	return text.String()
}
