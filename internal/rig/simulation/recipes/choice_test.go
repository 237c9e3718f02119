package recipes_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/elect/trace"
	. "github.com/succession-dev/succession/internal/rig/simulation/recipes"
)

// A contest is an election whose candidates have priorities, and are ready at times. Operators name who is
// to follow, and pause it.
type contest struct {
	mu       sync.Mutex
	standing map[*process]time.Time // since when it stands in line
	yields   map[*process]int       // since all faults have ended
	token    uint64                 // the largest of a term so far
}

// ready says whether the process is ready. After the last fault nothing changes any more.
func (w *world) ready(p *process) bool {
	if closed(w.calmed) {
		return p.slot != 0
	}
	return (int(time.Since(w.began)/(3*time.Second))+p.nth)%3 != 0
}

func priority(p *process) int { return p.nth % 3 }

var errNotNow = errors.New("not now")

func newChoice() recipe {
	all := make(map[*world]*contest)
	var mu sync.Mutex
	of := func(w *world) *contest {
		mu.Lock()
		defer mu.Unlock()
		if all[w] == nil {
			all[w] = &contest{standing: make(map[*process]time.Time), yields: make(map[*process]int)}
		}
		return all[w]
	}
	return recipe{
		processes: 4, // so that one stands behind where another leads after a third
		process: func(w *world, p *process, worked func()) func(context.Context) error {
			c, o := of(w), p.options()
			o.Priority = priority(p)
			o.Trace = func(ev trace.Event) { c.trace(w, p, ev) }
			o.Ready = func(context.Context) error {
				if w.ready(p) {
					return nil
				}
				return errNotNow
			}
			e := elect.New(p.b, "choice", o)
			return func(ctx context.Context) error {
				go disturb(ctx, w, p, e, operate.New(p.b, e.Name(), e.ID()), worked)
				for ctx.Err() == nil {
					err := e.Run(ctx, func(lead context.Context, t *elect.Term) error {
						c.leads(w, p, t)
						leave := w.enter(p, t, "the election", 1)
						defer leave()
						w.works(lead, ctx, p)
						worked()
						return nil
					})
					if err != nil && ctx.Err() == nil {
						return err
					}
					linger(ctx, 200*time.Millisecond)
				}
				return nil
			}
		},
		calm: func(w *world) {
			c := of(w)
			c.mu.Lock()
			defer c.mu.Unlock()
			for p, n := range c.yields {
				if n > 50 {
					w.fail("%s has yielded %d times in %v without a fault", p.Name(), n, Bound)
				}
			}
		},
		end: func(w *world) {
			mu.Lock()
			defer mu.Unlock()
			delete(all, w)
		},
	}
}

// trace notes who stands in line, and who yields.
func (c *contest) trace(w *world, p *process, ev trace.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch ev.Kind {
	case trace.Joined:
		c.standing[p] = time.Now()
	case trace.Left, trace.SessionLost:
		delete(c.standing, p)
	case trace.Yielded:
		w.note("%s yields: %v", p.Name(), ev.Err)
		if closed(w.calmed) {
			c.yields[p]++
		}
	}
}

// leads checks that tokens grow, and once there are no faults that nobody better stands in line.
func (c *contest) leads(w *world, p *process, t *elect.Term) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.Token() <= c.token && t.Check() == nil && !w.excused(p) {
		w.fail("%s leads with token %d after %d", p.Name(), t.Token(), c.token)
	}
	c.token = max(c.token, t.Token())
	delete(c.standing, p) // when the next one leads, it stands no more, though it may not have said so
	if !closed(w.calmed) || !w.steady(2*time.Second) || t.Check() != nil {
		return
	}
	// Whoever joins has been asked whether it is ready, and p looked at the line a moment ago.
	const seen = 100 * time.Millisecond
	for _, q := range w.processes { // which do not change any more
		since, stands := c.standing[q]
		if q != p && stands && time.Since(since) > seen && w.ready(q) && priority(q) > priority(p) {
			w.fail("%s leads with priority %d, and %s stands behind it, ready, with %d", p.Name(), priority(p), q.Name(), priority(q))
		}
	}
}

// steady reports whether there has been no fault for half of [Bound], and d more.
func (w *world) steady(d time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.calmAt.IsZero() && time.Since(w.calmAt) > Bound/2+d
}

// disturb asks leaders to resign in favour of others, and pauses the election, until all faults have
// ended. Whoever is not the best need not lead then, and makes progress nevertheless.
func disturb(ctx context.Context, w *world, p *process, e *elect.Election, op *operate.Operator, worked func()) {
	draw := rand.New(rand.NewPCG(w.seed, uint64(p.nth)))
	for ctx.Err() == nil && !closed(w.calmed) {
		linger(ctx, time.Duration(2000+draw.IntN(8000))*time.Millisecond)
		bounded, cancel := context.WithTimeout(ctx, 3*time.Second)
		if draw.IntN(3) > 0 {
			if _, line, err := e.Line(bounded); err == nil && len(line) > 1 {
				_, _ = op.AskToResign(bounded, &operate.ResignOptions{To: line[1+draw.IntN(len(line)-1)].Key, Within: 5 * time.Second})
			}
		} else if _, err := op.Pause(bounded, "for a while"); !errors.Is(err, elect.ErrPaused) {
			linger(ctx, time.Second)
			reopen(ctx, op)
		}
		cancel()
	}
	reopen(ctx, op)
	best := false
	for ctx.Err() == nil {
		w.mu.Lock()
		best = w.ready(p)
		for _, q := range w.processes {
			best = best && (!w.ready(q) || priority(q) <= priority(p))
		}
		w.mu.Unlock()
		if !best {
			worked()
		}
		linger(ctx, time.Second)
	}
}

// reopen opens the election, whoever has paused it.
func reopen(ctx context.Context, op *operate.Operator) {
	for ctx.Err() == nil {
		if _, err := op.Resume(ctx, nil); err == nil || errors.Is(err, operate.ErrNotPaused) {
			return
		}
		linger(ctx, time.Second)
	}
}

// unpreferring shows nobody behind who is preferred.
type unpreferring struct{ backend.Session }

func (s unpreferring) Line(ctx context.Context, line string) (backend.Line, error) {
	l, err := s.Session.Line(ctx, line)
	l.Members = append([]backend.Member(nil), l.Members...)
	for i := range l.Members {
		l.Members[i].Value = "x"
	}
	return l, err
}
