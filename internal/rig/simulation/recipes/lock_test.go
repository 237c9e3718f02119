package recipes_test

import (
	"context"
	"slices"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	. "github.com/succession-dev/succession/internal/rig/simulation/recipes"
	"github.com/succession-dev/succession/recipes/lock"
)

// options are those of what the process holds.
func (p *process) options() *elect.Options {
	return &elect.Options{ID: p.Name(), ResignTimeout: 3 * time.Second}
}

// holds takes a lock again and again, and holds it for a while each time.
func (w *world) holds(p *process, what string, shares int, worked func(), take func(context.Context) (*lock.Held, error)) func(context.Context) error {
	return func(ctx context.Context) error {
		for ctx.Err() == nil {
			h, err := take(ctx)
			if err != nil {
				return err
			}
			worked()
			leave := w.enter(p, h.Term(), what, shares)
			w.works(h.Context(), ctx, p)
			leave()
			_ = h.Unlock(ctx) // it is tried on if it fails
			linger(ctx, 200*time.Millisecond)
		}
		return nil
	}
}

// works is the work of p under a term. Every other process works for long, as long as there are
// faults.
func (w *world) works(term, ctx context.Context, p *process) {
	calmed := w.calmed
	if p.nth%2 != 0 || closed(w.calmed) {
		calmed = nil // never ready
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 500*time.Millisecond)
		defer cancel()
	}
	select {
	case <-calmed:
	case <-term.Done():
	case <-ctx.Done():
	case <-time.After(2 * TTL):
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// linger waits for d, or until ctx ends.
func linger(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

var mutex = recipe{processes: 2, process: func(w *world, p *process, worked func()) func(context.Context) error {
	return w.holds(p, "the lock", 1, worked, lock.NewMutex(p.b, "lock", p.options()).Lock)
}}

var rwMutex = recipe{processes: 3, process: func(w *world, p *process, worked func()) func(context.Context) error {
	m := lock.NewRWMutex(p.b, "lock", p.options())
	if p.slot%3 == 0 {
		return w.holds(p, "the lock", 1, worked, m.Lock)
	}
	return w.holds(p, "the lock", 100, worked, m.RLock)
}}

var semaphore = recipe{processes: 3, process: func(w *world, p *process, worked func()) func(context.Context) error {
	return w.holds(p, "a slot", 2, worked, lock.NewSemaphore(p.b, "slots", 2, p.options()).Acquire)
}}

// several takes three locks together, which every other process names in the opposite order.
var several = recipe{processes: 2, process: func(w *world, p *process, worked func()) func(context.Context) error {
	names := []string{"x", "y", "z"}
	var locks []*lock.Mutex
	for _, name := range names {
		locks = append(locks, lock.NewMutex(p.b, name, p.options()))
	}
	if p.slot%2 == 0 {
		slices.Reverse(locks)
	}
	return func(ctx context.Context) error {
		for ctx.Err() == nil {
			h, err := lock.All(ctx, locks...)
			if err != nil {
				if ctx.Err() == nil && passes(err) {
					continue // one was lost while it waited for the next
				}
				return err
			}
			worked()
			var leave []func()
			for i, one := range h.Locks() {
				leave = append(leave, w.enter(p, one.Term(), "the lock "+names[i], 1))
			}
			w.works(h.Context(), ctx, p)
			for _, f := range leave {
				f()
			}
			_ = h.Unlock(ctx) // it is tried on if it fails
			linger(ctx, 200*time.Millisecond)
		}
		return nil
	}
}}

// first takes everybody for first.
type first struct{ backend.Session }

func (s first) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.Session.Ahead(ctx, m)
	if err == nil && !p.First {
		p.First, p.Token = true, m.Position
	}
	return p, err
}

// optimist believes that its session lasts longer than it does.
type optimist struct{ backend.Session }

const optimism = 6 * time.Second

func (s optimist) Deadline() time.Time             { return s.Session.Deadline().Add(optimism) }
func (s optimist) Done() <-chan struct{}           { return nil }
func (s optimist) OnEnd(func(error)) (stop func()) { return func() {} }

func (s optimist) Err() error {
	if time.Until(s.Deadline()) > 0 {
		return nil
	}
	return s.Session.Err()
}

func (s optimist) Gone(ctx context.Context, m backend.Member) error {
	err := s.Session.Gone(ctx, m)
	if s.Session.Err() != nil {
		linger(ctx, time.Until(s.Deadline()))
	}
	return err
}

func (s optimist) Watch(ctx context.Context, name string, after backend.Version) (backend.Record, error) {
	r, err := s.Session.Watch(ctx, name, after)
	if s.Session.Err() != nil {
		linger(ctx, time.Until(s.Deadline()))
	}
	return r, err
}

func (s optimist) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	v, err := s.Session.Put(ctx, name, value, cond)
	if s.Session.Err() != nil {
		linger(ctx, time.Until(s.Deadline()))
	}
	return v, err
}

// deaf never hears that somebody has gone.
type deaf struct{ backend.Session }

func (s deaf) Gone(ctx context.Context, _ backend.Member) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.Done():
		return s.Err()
	}
}

// forgetful does not take its members out of the line.
type forgetful struct{ backend.Session }

func (s forgetful) Leave(context.Context, backend.Member) error { return nil }
