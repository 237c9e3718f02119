package task

import (
	"context"
	"errors"
	"fmt"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/internal/naming"
	"github.com/succession-dev/succession/internal/recipe"
	"github.com/succession-dev/succession/internal/value"
	"github.com/succession-dev/succession/internal/view"
	"github.com/succession-dev/succession/recipes/record"
)

// A Pool is a process's handle on tasks that clients put in line, and on the workers that run them.
// It is safe for concurrent use.
type Pool struct {
	b        backend.Backend
	name     string
	master   *elect.Election
	presence *elect.Election // in which all who stand are first
	err      error           // what is wrong with the name or the options
}

var aPool = recipe.Recipe{Package: "task", Owner: naming.Pool, History: true}

// NewPool returns a handle on the pool with the given name on b. It does not block and does not
// talk to the coordinator. If the name or an option is not allowed, or Ready, Priority or Site is set, every call
// fails with [backend.ErrInvalid]; where the backend has no items, no shared members or no records, with
// [errors.ErrUnsupported]. The caller still has to close b.
func NewPool(b backend.Backend, name string, o *Options) *Pool {
	same := Options{}
	if o != nil {
		same = *o
	}
	same.Trace = trace.Named(name, same.Trace)
	p := &Pool{b: b, name: name, master: elect.New(b, name+naming.Master, &same), err: aPool.Check(name, o)}
	same.ID = p.master.ID()
	p.presence = elect.New(view.Of(b, func(s backend.Session) backend.Session {
		return view.Shared{Session: s, Instead: "a Standby, or another coordinator"}
	}), p.workers(), &same)
	return p
}

func (p *Pool) todo() string    { return p.name + naming.Todo }
func (p *Pool) workers() string { return p.name + naming.Workers }

// assigned returns the name of the folder of assignments.
func (p *Pool) assigned() string { return p.name + naming.Assigned }

// assignedTo returns the name of the record of the worker whose presence has that position.
func (p *Pool) assignedTo(worker uint64) string {
	return naming.At(p.name, naming.Assigned, worker)
}

func (p *Pool) result(id uint64) string { return naming.At(p.name, naming.Results, id) }

// Submit puts a task in line, behind all others, and returns its ID: a number that grows from task
// to task. The task then stays until a worker has run it, whatever becomes of this process. value
// says what is to be done: UTF-8, at most [backend.MaxValue] bytes. Submit blocks for about a round
// trip.
//
// Submit does not try again if the answer is lost, for it would put the task in line twice: after
// [backend.ErrUnavailable], or if ctx or the session has ended, the task may be in line.
func (p *Pool) Submit(ctx context.Context, value string) (id uint64, err error) {
	if p.err != nil {
		return 0, p.err
	}
	s, err := p.b.Session(ctx)
	if err != nil {
		return 0, err
	}
	item, err := s.Append(ctx, p.todo(), value)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return 0, fmt.Errorf("task: this backend keeps no items, and so no tasks in line; use a Standby, or another coordinator: %w", err)
	case errors.Is(err, backend.ErrUnavailable):
		return 0, fmt.Errorf("task: the task may be in line or not; look at Status before it is submitted again: %w", err)
	}
	return item.Position, err
}

// ErrFailed says that the function that ran a task has returned an error. That is the task's
// result: it is not run again.
var ErrFailed = errors.New("the task has failed")

// A result is the record of a task that has been run.
type result struct {
	Value  string `json:"value,omitempty"`
	Failed string `json:"failed,omitempty"` // the text of the error; empty: there was none
	Key    string `json:"key"`              // of the task's item
	Worker string `json:"worker"`           // the ID of who has run it
}

// Result returns what running the task has returned. It blocks until there is a result, or ctx
// ends. If that was an error, Result fails with [ErrFailed] and the text of the error. A task of
// which the result was forgotten, or which was never submitted, never has one. Result costs the
// coordinator a request and a watch.
func (p *Pool) Result(ctx context.Context, id uint64) (string, error) {
	if p.err != nil {
		return "", p.err
	}
	for e, err := range record.New(p.b, p.result(id), record.JSON[result]()).Follow(ctx) {
		switch {
		case err != nil:
			return "", err
		case e.Exists() && e.Value.Failed != "":
			return "", fmt.Errorf("task: %d of %s: %w: %s", id, p.name, ErrFailed, e.Value.Failed)
		case e.Exists():
			return e.Value.Value, nil
		}
	}
	panic("unreachable: Follow ends with an error")
}

// Forget deletes the result of the task, which stays otherwise. It is not an error that there is
// none. A task that has not been run yet is run nevertheless. Forget blocks for about three round
// trips, and while the coordinator cannot be reached it tries on until ctx ends.
func (p *Pool) Forget(ctx context.Context, id uint64) error {
	if p.err != nil {
		return p.err
	}
	return insist(ctx, func() error {
		s, err := p.b.Session(ctx)
		if err != nil {
			return err
		}
		r, err := s.Get(ctx, p.result(id))
		if err != nil || r.Version == backend.Absent {
			return err
		}
		done, err := decode[result](r)
		if err != nil {
			return err
		}
		// The worker may have died just before it could remove the item. Without a result,
		// the task would be run again.
		if err := s.Leave(ctx, p.item(id, done.Key)); err != nil {
			return err
		}
		return s.Delete(ctx, r.Name, nil)
	})
}

func (p *Pool) item(id uint64, key string) backend.Member {
	return backend.Member{Line: p.todo(), Key: key, Position: id, Pinned: true}
}

// A PoolStatus says how it stands with a pool.
type PoolStatus struct {
	Master  string          `json:"master"`  // the ID of the process that assigns tasks; empty: nobody does
	Workers []string        `json:"workers"` // the IDs of those present
	Tasks   []PendingStatus `json:"tasks"`   // those without a result, in order
}

// A PendingStatus says how it stands with a task that has no result yet.
type PendingStatus struct {
	ID     uint64 `json:"id"`
	Value  string `json:"value"`
	Worker string `json:"worker,omitempty"` // the ID of the worker that it is assigned to; empty: it waits
	Run    uint64 `json:"run,omitempty"`    // how often it was assigned
}

// Status returns how it stands with the pool. It blocks for about four round trips, and one for
// each worker. What it returns need not have been so at any one moment.
func (p *Pool) Status(ctx context.Context) (PoolStatus, error) {
	var st PoolStatus
	if p.err != nil {
		return st, p.err
	}
	s, err := p.b.Session(ctx)
	if err != nil {
		return st, err
	}
	given, err := p.given(ctx, s)
	if err != nil {
		return st, err
	}
	master, err := p.master.Leader(ctx)
	if err != nil && !errors.Is(err, elect.ErrNoLeader) {
		return st, err
	}
	st.Master = master.ID
	workers, err := s.Line(ctx, p.workers())
	if err != nil {
		return st, err
	}
	tasks := make(map[uint64]PendingStatus) // what is known of those that are assigned
	for _, w := range workers.Members {
		id := value.ID(w.Value)
		st.Workers = append(st.Workers, id)
		g := given[w.Position]
		tasks[g.ID] = PendingStatus{Worker: id, Run: g.Run}
	}
	todo, err := s.Line(ctx, p.todo())
	if err != nil {
		return st, err
	}
	for _, item := range todo.Members {
		t := tasks[item.Position]
		t.ID, t.Value = item.Position, item.Value
		st.Tasks = append(st.Tasks, t)
	}
	return st, nil
}
