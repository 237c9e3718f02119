package recipes_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	. "github.com/succession-dev/succession/internal/rig/simulation/recipes"
	"github.com/succession-dev/succession/recipes/task"
)

// A tape is how far a replicated task has come, as the machines were told.
type tape struct {
	mu  sync.Mutex
	far map[string]uint64 // the largest position of which Commit has succeeded, by the task
}

var jobs = []string{"orders", "mails"}

func newStandby(cold bool) recipe {
	tapes := make(map[*world]*tape)
	var mu sync.Mutex
	return recipe{
		processes: 3,
		process: func(w *world, p *process, worked func()) func(context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			if tapes[w] == nil {
				tapes[w] = &tape{far: make(map[string]uint64)}
			}
			tp := tapes[w]
			s := task.NewStandby(p.b, "bus", p.options())
			run := func(ctx context.Context, r *task.Run) error { return tp.replicates(ctx, w, p, r) }
			return func(ctx context.Context) error {
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				for _, job := range jobs {
					if err := s.Start(ctx, job); err != nil {
						return err
					}
				}
				go looksAt(ctx, s, worked)
				if cold {
					return s.Cold(ctx, run)
				}
				return s.Hot(ctx, jobs[p.slot%len(jobs)], run)
			}
		},
		calm: func(w *world) {
			for _, job := range jobs {
				if n := w.holders("the task " + job); n != 1 {
					w.fail("%d run the task %s", n, job)
				}
			}
		},
		end: func(w *world) {
			mu.Lock()
			defer mu.Unlock()
			delete(tapes, w)
		},
	}
}

// replicates runs a task for a while, or as long as it may.
func (tp *tape) replicates(ctx context.Context, w *world, p *process, r *task.Run) error {
	leave := w.enter(p, r.Term(), "the task "+r.Task, 1)
	defer leave()
	tp.mu.Lock()
	if at := r.Position(); at < tp.far[r.Task] {
		w.fail("%s goes on with %s at %d, and %d was recorded", p.Name(), r.Task, at, tp.far[r.Task])
	}
	tp.mu.Unlock()
	for {
		at := r.Position() + 1
		switch err := r.Commit(context.WithoutCancel(ctx), at); {
		case err == nil:
			tp.mu.Lock()
			tp.far[r.Task] = max(tp.far[r.Task], at)
			tp.mu.Unlock()
		case ctx.Err() == nil && !passes(err):
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
		linger(ctx, time.Second)
	}
}

// looksAt tells from time to time that the process can see who runs what.
func looksAt(ctx context.Context, s *task.Standby, worked func()) {
	for ctx.Err() == nil {
		if _, err := s.Status(ctx); err == nil {
			worked()
		}
		linger(ctx, time.Second)
	}
}

// A ledger is what the world knows of the tasks of a pool.
type ledger struct {
	mu        sync.Mutex
	submitted map[uint64]bool
}

func newPool() recipe {
	ledgers := make(map[*world]*ledger)
	var mu sync.Mutex
	return recipe{
		processes: 3,
		process: func(w *world, p *process, worked func()) func(context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			if ledgers[w] == nil {
				ledgers[w] = &ledger{submitted: make(map[uint64]bool)}
			}
			l := ledgers[w]
			pool := task.NewPool(p.b, "pool", p.options())
			if p.slot == 0 {
				return func(ctx context.Context) error { return l.submits(ctx, pool, worked) }
			}
			return func(ctx context.Context) error {
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				go func() {
					for ctx.Err() == nil {
						if _, err := pool.Status(ctx); err == nil {
							worked()
						}
						linger(ctx, time.Second)
					}
				}()
				return pool.Work(ctx, func(ctx context.Context, t *task.Task) (string, error) {
					leave := w.enter(p, t.Term(), "the work "+t.Value, 1)
					defer leave()
					linger(ctx, 300*time.Millisecond)
					return "done", nil
				})
			}
		},
		calm: func(w *world) {
			mu.Lock()
			l := ledgers[w]
			delete(ledgers, w)
			mu.Unlock()
			last := w.c.Client("last")
			defer last.Close()
			pool := task.NewPool(last, "pool", nil)
			ctx, cancel := context.WithTimeout(context.Background(), Bound)
			defer cancel()
			l.mu.Lock()
			defer l.mu.Unlock()
			for id := range l.submitted {
				if got, err := pool.Result(ctx, id); got != "done" || err != nil {
					w.fail("the task %d was submitted, and its result is %q, %v", id, got, err)
					return
				}
			}
		},
	}
}

func (l *ledger) submits(ctx context.Context, pool *task.Pool, worked func()) error {
	for ctx.Err() == nil {
		id, err := pool.Submit(ctx, time.Now().String())
		switch {
		case err == nil:
			l.mu.Lock()
			l.submitted[id] = true
			l.mu.Unlock()
			worked()
		case !errors.Is(err, backend.ErrUnavailable) && !errors.Is(err, backend.ErrSessionEnded) && !errors.Is(err, elect.ErrLost):
			return err
		}
		linger(ctx, time.Second)
	}
	return nil
}
