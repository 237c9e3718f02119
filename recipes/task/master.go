package task

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/again"
	"github.com/succession-dev/succession/internal/naming"
	"github.com/succession-dev/succession/recipes/internal/recipe"
)

// An assignment is what the master writes for a worker.
type assignment struct {
	ID    uint64 `json:"id"`
	Key   string `json:"key"` // of the task's item
	Name  string `json:"name,omitempty"`
	Value string `json:"value"`
	Run   uint64 `json:"run"` // 1 for the first worker that the task is assigned to, 2 for the second
}

// given is an assignment as it is stored.
type given struct {
	assignment
	at backend.Version
}

// given reads all assignments, by the positions of the workers.
func (p *Pool) given(ctx context.Context, s backend.Session) (map[uint64]given, error) {
	records, err := s.ReadAll(ctx, p.assigned())
	if err != nil {
		return nil, needsRecords(err)
	}
	all := make(map[uint64]given)
	for _, r := range records {
		worker, ok := naming.Position(strings.TrimPrefix(r.Name, p.assigned()+"/"))
		if !ok {
			continue // somebody else's
		}
		a, err := decode[assignment](r)
		if err != nil {
			return nil, err
		}
		all[worker] = given{a, r.Version}
	}
	return all, nil
}

// lead is the work of the master, under the term t: it gives the next task to each worker that has
// none. All that it knows is stored, so the next master goes on from there.
func (p *Pool) lead(ctx context.Context, t *elect.Term) error {
	wait := backoff.New(ctx)
	for {
		err := p.assignAll(ctx, t, &wait)
		if ctx.Err() != nil || !again.Passing(err) {
			return err
		}
		// It is not certain what was written, or the term is about to end.
		if err := wait.After(ctx, err); err != nil {
			return err
		}
	}
}

func (p *Pool) assignAll(ctx context.Context, t *elect.Term, wait *backoff.Backoff) error {
	// Reads after a write are at least as new as that write, so this master sees all that the one
	// before has written.
	if err := t.Acknowledge(ctx); err != nil {
		return needsRecords(err)
	}
	s, err := p.b.Session(ctx)
	if err != nil {
		return err
	}
	assigned, err := p.given(ctx, s)
	if err != nil {
		return err
	}
	for {
		// The workers are read before the tasks: if a worker has gone, the tasks that it removed
		// are then seen to be removed.
		workers, err := s.Line(ctx, p.workers())
		if err != nil {
			return err
		}
		todo, err := s.Line(ctx, p.todo())
		if err != nil {
			return err
		}
		for changed := false; !changed; {
			in, _ := recipe.In(workers)
			if err := p.assign(ctx, t, assigned, in, todo.Members); err != nil {
				return err
			}
			wait.Reset()
			next, moved := todo, false
			err := again.ForAWhile(ctx, s, wait.Jitter, func(ctx context.Context) error {
				return again.Either(ctx, func(ctx context.Context) error {
					_, err := s.WatchLine(ctx, p.workers(), workers)
					changed = err == nil
					return err
				}, func(ctx context.Context) error {
					l, err := s.WatchLine(ctx, p.todo(), todo)
					if err == nil {
						next, moved = l, true
					}
					return err
				})
			})
			if err != nil {
				return err
			}
			if todo = next; !changed && !moved { // it is time for a second look
				if err := p.restore(ctx, s, t, assigned); err != nil {
					return err
				}
			}
		}
	}
}

// restore writes again what somebody has deleted, maybe before its worker has read it. A worker that has read it ignores
// that.
func (p *Pool) restore(ctx context.Context, s backend.Session, t *elect.Term, all map[uint64]given) error {
	stored, err := p.given(ctx, s)
	if err != nil {
		return err
	}
	for worker, g := range all {
		if _, found := stored[worker]; found {
			continue
		}
		g.at = backend.Absent
		if err := p.give(ctx, t, worker, &g); err != nil {
			return err
		}
		all[worker] = g
	}
	return nil
}

// assign gives the next task to each worker that has none, first to the worker whose last task is
// the oldest. It gives a task to another worker only when the presence of the worker before has
// gone, because that one's context has then ended.
//
// The assignment of a worker that has gone stays until another worker has the task, so that the
// number of runs is kept.
func (p *Pool) assign(ctx context.Context, t *elect.Term, all map[uint64]given, workers, todo []backend.Member) error {
	standing, taken, present := make(map[uint64]bool), make(map[uint64]bool), make(map[uint64]bool)
	for _, item := range todo {
		standing[item.Position] = true
	}
	runs := make(map[uint64]uint64)
	for _, g := range all {
		runs[g.ID] = max(runs[g.ID], g.Run)
	}
	var free []uint64
	for _, w := range workers {
		present[w.Position] = true
		if id := all[w.Position].ID; standing[id] {
			taken[id] = true
		} else {
			free = append(free, w.Position)
		}
	}
	slices.SortStableFunc(free, func(a, b uint64) int { return cmp.Compare(all[a].ID, all[b].ID) })
	for _, item := range todo {
		if len(free) == 0 {
			break
		}
		if taken[item.Position] || !item.Pinned { // a member that is not pinned is not an item
			continue
		}
		name, value := nameOf(item)
		g := given{assignment{item.Position, item.Key, name, value, runs[item.Position] + 1}, all[free[0]].at}
		if err := p.give(ctx, t, free[0], &g); err != nil {
			return err
		}
		all[free[0]] = g
		taken[item.Position] = true
		free = free[1:]
	}
	for worker, g := range all {
		if !present[worker] && (taken[g.ID] || !standing[g.ID]) {
			if err := t.Delete(ctx, p.assignedTo(worker), g.at); err != nil {
				return err
			}
			delete(all, worker)
		}
	}
	return nil
}

// give writes an assignment if the record still has the version g.at, and sets g.at to the new one.
// If the answer is lost, nothing else may be written first: the request might arrive later, when
// another worker has the task.
func (p *Pool) give(ctx context.Context, t *elect.Term, worker uint64, g *given) error {
	name, value := p.assignedTo(worker), encode(g.assignment)
	unknown := func(err error) bool { return errors.Is(err, backend.ErrUnavailable) }
	return again.Try(ctx, unknown, func() error {
		at, err := t.Put(ctx, name, value, cmp.Or(g.at, backend.Absent))
		if errors.Is(err, backend.ErrVersion) { // the record may be what an earlier try has written
			if r, gerr := t.Get(ctx, name); gerr == nil && bytes.Equal(r.Value, value) {
				at, err = r.Version, nil
			}
		}
		if err == nil {
			g.at = at
		}
		return err
	})
}
