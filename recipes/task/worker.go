package task

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/recipes"
	"github.com/succession-dev/succession/recipes/record"
)

// A Task is one run of a task by a worker. Put writes a record only while the task cannot be given
// to another worker.
type Task struct {
	recipes.Hold // of the worker's presence
	ctx          context.Context

	ID    uint64
	Name  string // the task's name; no other task has it, except a copy (see [Pool.Submit])
	Value string // the value that was given to Submit
	// Run is 1 for the first worker that runs the task, and larger for each later one. A store
	// that refuses a run smaller than the largest it has seen of this task is safe from a worker
	// that was paused.
	Run uint64
}

// Token returns Run, which grows from run to run of this task; so it means something only together with ID. With package fence
// give each task a resource of its own: with one for the pool, a second run of one task would lock out the first runs of all others. The
// token of the worker's presence is that of Term.
func (t *Task) Token() uint64 { return t.Run }

// Context returns the context that was given to the function.
func (t *Task) Context() context.Context { return t.ctx }

// Check returns nil while the run may go on, and afterwards the cause of its context. It notices a
// pause of the process that no timer has noticed yet, as [elect.Term.Check] does. It does not block.
func (t *Task) Check() error { return overOf(t.ctx, t.Term()) }

// Work makes this process a worker of the pool until ctx ends: it calls fn for each task that the
// master assigns to it, one at a time. It also stands for master. A process that is to run several
// tasks at the same time calls Work several times.
//
// What fn returns is the task's result, also if it is an error. The context of fn ends when this
// worker's presence is lost, with an [elect.LostError], and when ctx ends; what fn returns after
// that is dropped, and another worker runs the task. So fn must be right for a task that was run
// before, in part or as a whole: a worker can die after the work and before the result. As long as
// fn ends when its context does, two workers never run a task at the same time.
//
// While an operator has paused the line NAME-workers, Work waits. It fails with [backend.ErrInvalid]
// if somebody stands there who is no worker, such as the holder of a lock of that name.
//
// Work returns the cause of ctx if ctx ends, or an error that does not pass by itself, such as
// [backend.ErrDenied]. Before it returns, fn has returned and this process has left the lines, as
// [elect.Election.Run] says. If fn panics, Work leaves the lines and passes the panic on.
func (p *Pool) Work(ctx context.Context, fn func(context.Context, *Task) (string, error)) error {
	if p.err != nil {
		return p.err
	}
	if fn == nil {
		return errNoFunction("Work")
	}
	working, cancel := context.WithCancelCause(ctx) // until it fails as the master
	ended := make(chan struct{})
	defer func() { <-ended }()
	defer cancel(nil)
	go func() {
		defer close(ended)
		cancel(p.master.Run(working, p.lead))
	}()
	for {
		t, err := aPool.Join(working, p.b, p.name, p.presence)
		if err == nil {
			err = p.serve(working, t, fn)
		}
		switch {
		case err != nil && working.Err() != nil && ctx.Err() == nil:
			return context.Cause(working)
		case err != nil:
			return err
		}
	}
}

// serve runs the tasks that are assigned to the worker under the presence t, and then resigns t. It
// returns nil if the worker is to be present again.
func (p *Pool) serve(ctx context.Context, t *elect.Term, fn func(context.Context, *Task) (string, error)) (err error) {
	defer t.Resign(ctx)
	alive, cancel := during(ctx, t)
	defer cancel(nil)
	done := uint64(0)
	for e, err := range record.New(p.b, p.assignedTo(t.Member().Position), record.JSON[assignment]()).Follow(alive) {
		if a := e.Value; err == nil && e.Exists() && a.ID != done {
			err = p.do(alive, &Task{Hold: recipes.NewHold(t), ctx: alive, ID: a.ID, Name: a.Name, Value: a.Value, Run: a.Run}, a.Key, fn)
			done = a.ID
		}
		if err != nil {
			return outcome(ctx, alive, t, err)
		}
	}
	return outcome(ctx, alive, t, nil)
}

// do runs the task, stores the result, and then removes the task from the line. The coordinator
// does each of the last two only while the worker is present. If the worker crashes before the
// result is stored, the task is run again. If it crashes later, the next worker finds the result,
// and only removes the task.
func (p *Pool) do(ctx context.Context, t *Task, key string, fn func(context.Context, *Task) (string, error)) error {
	stored := false
	if t.Run > 1 { // the worker before may have stored a result
		err := insist(ctx, func() error {
			s, err := p.b.Session(ctx)
			if err == nil {
				err = s.Refresh(ctx) // the coordinator may read from a server that lags behind
			}
			if err != nil {
				return err
			}
			r, err := t.Get(ctx, p.result(t.ID))
			stored = r.Version != backend.Absent
			return guarded(t.Term(), err)
		})
		if err != nil {
			return err
		}
		if !stored { // or somebody has forgotten it: Forget removes the task before the result
			if stands, err := p.stands(ctx, t); err != nil || !stands {
				return err
			}
		}
	}
	if !stored {
		value, err := fn(ctx, t)
		if over := t.Check(); over != nil {
			return over
		}
		if err := p.store(ctx, t, p.resultOf(value, err, key, t.Name)); err != nil {
			return err
		}
	}
	return insist(ctx, func() error { return guarded(t.Term(), t.Term().Remove(ctx, p.item(t.ID, key))) })
}

// resultOf returns the record of the result. A result that cannot be stored is a failure of the
// task.
func (p *Pool) resultOf(value string, err error, key, name string) []byte {
	r := result{Value: value, Name: name, Key: key, Worker: p.presence.ID()}
	if err == nil && !utf8.ValidString(value) {
		err = fmt.Errorf("%w result: not UTF-8", backend.ErrInvalid)
	}
	if err == nil {
		err = backend.CheckRecord(encode(r))
	}
	if err != nil {
		r.Value, r.Failed = "", textOf(err)
	}
	return encode(r)
}

// store writes the result, if there is none. If the answer to an earlier try was lost, that may have written it, and somebody may
// have forgotten it since: then store deletes what it has written.
func (p *Pool) store(ctx context.Context, t *Task, value []byte) error {
	tries := 0
	err := insist(ctx, func() error {
		tries++
		_, err := t.Put(ctx, p.result(t.ID), value, backend.Absent)
		if errors.Is(err, backend.ErrVersion) {
			tries = 0 // an earlier one has written it
			return nil
		}
		return guarded(t.Term(), err)
	})
	if err != nil || tries < 2 {
		return err
	}
	if stands, err := p.stands(ctx, t); err != nil || stands {
		return err
	}
	return insist(ctx, func() error { return guarded(t.Term(), t.Delete(ctx, p.result(t.ID), 0)) })
}

// stands reports whether the task is in line. It reads the whole line.
func (p *Pool) stands(ctx context.Context, t *Task) (stands bool, err error) {
	err = insist(ctx, func() error {
		s, err := p.b.Session(ctx)
		if err == nil {
			err = s.Refresh(ctx) // the coordinator may read from a server that lags behind
		}
		if err != nil {
			return err
		}
		todo, err := s.Line(ctx, p.todo())
		stands = slices.ContainsFunc(todo.Members, func(m backend.Member) bool { return m.Position == t.ID })
		return err
	})
	return stands, err
}
