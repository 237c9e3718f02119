package task

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/naming"
	"github.com/succession-dev/succession/internal/value"
	"github.com/succession-dev/succession/internal/view"
	"github.com/succession-dev/succession/recipes/internal/recipe"
	"github.com/succession-dev/succession/recipes/record"
)

// A Pool is a process's handle on tasks that clients put in line, and on the workers that run them.
// It is safe for concurrent use.
type Pool struct {
	b        backend.Backend
	name     string
	master   *elect.Election
	presence *elect.Election // in which all members are first
	err      error           // what is wrong with the name or the options
}

var aPool = recipe.Recipe{Package: "task", Owner: naming.Pool, History: true}

// NewPool returns a handle on the pool with the given name on b. It does not block and does not
// talk to the coordinator. If the name or an option is not allowed, or Ready, Priority or Site is
// set, every call fails with [backend.ErrInvalid]; where the backend has no items, no shared
// members or no records, with [errors.ErrUnsupported]. The caller still has to close b.
//
// The options are those of [NewStandby].
func NewPool(b backend.Backend, name string, o *elect.Options) *Pool {
	same := aPool.Options(name, o)
	p := &Pool{b: b, name: name, err: aPool.Check(name, o)}
	p.master = elect.New(view.Beside(b, p.workers(), instead), name+naming.Master, same)
	p.presence = elect.New(view.Of(b, func(s backend.Session) backend.Session {
		return view.Shared{Session: s, Instead: instead}
	}), p.workers(), same)
	return p
}

// instead is what to use where there are no shared members.
const instead = "a Standby, or another coordinator"

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
// says what is to be done: UTF-8, at most [MaxValue] bytes. Submit blocks for about a round
// trip.
//
// While the coordinator cannot be reached, Submit tries on until ctx ends. If its answer is lost,
// it looks whether the task is in line, or has a result, and submits it again only if not. So the
// task is in line once, unless its first request arrives after that look: then it is run twice,
// with the same [Task] Name. After an error other than [backend.ErrInvalid] it may be in line.
func (p *Pool) Submit(ctx context.Context, value string) (uint64, error) {
	if err := p.checkTask(value); err != nil {
		return 0, err
	}
	return p.submit(ctx, rand.Text(), value, false)
}

// SubmitAs is [Pool.Submit] with a name for the task that no other task has, of 1 to 64 letters,
// digits, dots and hyphens. So a process that was restarted can submit a task that it may have
// submitted before: if the task is in line, or has a result that was not forgotten, SubmitAs
// returns its ID and changes nothing. To find that out, it reads the line and the results first.
// Two calls at the same moment may both put the task in line.
func (p *Pool) SubmitAs(ctx context.Context, name, value string) (id uint64, err error) {
	if err := p.checkTask(value); err != nil {
		return 0, err
	}
	if !isName(name) {
		return 0, fmt.Errorf("task: %w name of a task %.80q: it has 1 to %d letters, digits, dots and hyphens", backend.ErrInvalid, name, maxName)
	}
	return p.submit(ctx, name, value, true)
}

func (p *Pool) checkTask(value string) error {
	if p.err == nil && len(value) > MaxValue {
		return fmt.Errorf("task: %w value: %d bytes, at most %d are possible; keep it elsewhere, and submit where that is", backend.ErrInvalid, len(value), MaxValue)
	}
	return p.err
}

// MaxValue is the longest value of a task, in bytes, and maxName the longest name.
const (
	MaxValue = backend.MaxValue - maxName - 1
	maxName  = 64
)

func isName(s string) bool {
	return s != "" && len(s) <= maxName && !strings.ContainsFunc(s, func(c rune) bool {
		return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '-')
	})
}

// nameOf splits the value of an item into the name of the task and what is to be done. The name is
// empty if another program has made the item.
func nameOf(item backend.Member) (name, value string) {
	if name, value, ok := strings.Cut(item.Value, "\n"); ok && isName(name) {
		return name, value
	}
	return "", item.Value
}

// submit puts the task in line. If tried is set, the task may already be there, and submit looks
// first.
func (p *Pool) submit(ctx context.Context, name, value string, tried bool) (id uint64, err error) {
	run := false // a worker has run it already
	err = insist(ctx, func() error {
		s, err := p.b.Session(ctx)
		if err != nil {
			return err
		}
		for {
			if tried {
				if id, err = p.submitted(ctx, s, name); err != nil || id != 0 {
					return err
				}
			}
			if run {
				return fmt.Errorf("task: the task %s of %s has been run, and its result was forgotten before its ID was known", name, p.name)
			}
			tried = true
			item, err := s.Append(ctx, p.todo(), name+"\n"+value)
			if id = item.Position; err != nil || id != 0 {
				return itemless(err)
			}
			run = true // so it has no place any more
		}
	})
	return id, err
}

// submitted returns the ID of the task with the name, or 0 if there is none. A worker stores the
// result before it takes the task out of the line. So the results are read after the line.
func (p *Pool) submitted(ctx context.Context, s backend.Session, name string) (uint64, error) {
	if err := s.Refresh(ctx); err != nil {
		return 0, err
	}
	todo, err := s.Line(ctx, p.todo())
	if err != nil {
		return 0, err
	}
	for _, item := range todo.Members {
		if n, _ := nameOf(item); n == name {
			return item.Position, nil
		}
	}
	results, err := s.ReadAll(ctx, p.name+naming.Results)
	if err != nil {
		return 0, needsRecords(err)
	}
	for _, r := range results {
		id, ok := naming.Position(strings.TrimPrefix(r.Name, p.name+naming.Results+"/"))
		if done, err := decode[result](r); ok && err == nil && done.Name == name {
			return id, nil
		}
	}
	return 0, nil
}

// itemless says what to do if the backend has no items.
func itemless(err error) error {
	if errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("task: this backend keeps no items, and so no tasks in line; use a Standby, or another coordinator: %w", err)
	}
	return err
}

// ErrFailed says that the function that ran a task has returned an error. That is the task's
// result: it is not run again.
var ErrFailed = errors.New("the task has failed")

// A result is the record of a task that has been run.
type result struct {
	Value  string `json:"value,omitempty"`
	Failed string `json:"failed,omitempty"` // the text of the error; empty if there was none
	Name   string `json:"name,omitempty"`   // of the task
	Key    string `json:"key"`              // of the task's item
	Worker string `json:"worker"`           // the ID of the worker that has run it
}

// Result returns the result of the task. It blocks until there is one, or ctx ends. If the task's
// function has returned an error, Result fails with [ErrFailed] and the text of that error. If the
// task was never submitted, or its result was forgotten, there never is a result. Result costs the
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

// Forget deletes the result of the task; without Forget it stays. It is not an error that there is
// none. A task that has not been run yet is still run. Forget blocks for about three round trips,
// and while the coordinator cannot be reached it tries on until ctx ends.
func (p *Pool) Forget(ctx context.Context, id uint64) error {
	if p.err != nil {
		return p.err
	}
	return insist(ctx, func() error {
		s, err := p.b.Session(ctx)
		if err != nil {
			return err
		}
		if err := s.Refresh(ctx); err != nil { // the coordinator may read from a server that has not heard of the result
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

// A PoolStatus is the state of a pool.
type PoolStatus struct {
	Master  string          `json:"master"`  // the ID of the process that assigns tasks; empty if there is none
	Workers []string        `json:"workers"` // the IDs of the workers that are present
	Tasks   []PendingStatus `json:"tasks"`   // the tasks without a result, in order
}

// A PendingStatus is the state of a task that has no result yet.
type PendingStatus struct {
	ID     uint64 `json:"id"`
	Name   string `json:"name,omitempty"` // as [Task] has it
	Value  string `json:"value"`
	Worker string `json:"worker,omitempty"` // the ID of the worker that it is assigned to; empty if it waits
	Run    uint64 `json:"run,omitempty"`    // how often it was assigned
}

// Status returns the state of the pool. It blocks for about five round trips, and on ZooKeeper for
// one more for each worker. Each part was true when Status was called, or later, but not all parts
// need have been true at one moment.
func (p *Pool) Status(ctx context.Context) (PoolStatus, error) {
	var st PoolStatus
	if p.err != nil {
		return st, p.err
	}
	s, err := p.b.Session(ctx)
	if err != nil {
		return st, err
	}
	if err := s.Refresh(ctx); err != nil {
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
	tasks := make(map[uint64]PendingStatus) // what is known of the assigned tasks
	in, _ := recipe.In(workers)
	for _, w := range in {
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
		t.ID = item.Position
		t.Name, t.Value = nameOf(item)
		st.Tasks = append(st.Tasks, t)
	}
	return st, nil
}
