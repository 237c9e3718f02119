package task

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/ending"
	"github.com/succession-dev/succession/recipes"
	"github.com/succession-dev/succession/recipes/record"
)

// Hot stands in the line of the task until ctx ends, and calls run whenever this machine is first
// and the task is started: it runs the task, or stands by. While the task is stopped or finished,
// the first in line waits until it is started, and the others behind it do nothing.
//
// The context of run ends when ctx ends; when the task is stopped, with the cause [ErrStopped];
// when the task gets another configuration, with [ErrConfigured]; when somebody moves the task,
// with [elect.ErrAsked]; and when the run is lost, with an [elect.LostError]. Hot then waits for
// run, drops what it returns unless ctx has ended, leaves the line, and stands at its end again. If run returns while
// its context lasts,
//
//   - nil says that the task is finished: that is recorded, and nobody runs the task before the
//     next Start;
//   - an error is what Hot returns, and what [Status] says of the task until it runs again.
//
// If the run is lost before nil is recorded, the task is run again. If ctx ends, Hot returns the
// cause of ctx, or what run returned if that says more than that it was to end, as
// [elect.Election.Run] does; it also returns an error that does not pass by itself, such as [backend.ErrDenied].
// Before it returns, run has returned and the machine has left the line, as [elect.Election.Run]
// says. If run panics, Hot leaves the line and passes the panic on.
func (s *Standby) Hot(ctx context.Context, task string, run func(context.Context, *Run) error) error {
	if err := s.check(task); err != nil {
		return err
	}
	if run == nil {
		return errNoFunction("Hot")
	}
	for {
		t, err := s.election(task).Campaign(ctx)
		if err != nil {
			return err
		}
		if err := s.lead(ctx, t, task, true, run); err != nil {
			return err
		}
	}
}

func errNoFunction(call string) error {
	return fmt.Errorf("task: %w call of %s: it was given no function", backend.ErrInvalid, call)
}

// lead runs the task under the term t, and then resigns t. If the task is not started, lead waits
// until it is, or returns if waits is false. It returns nil if the machine is to stand in line, or
// to look, again.
func (s *Standby) lead(ctx context.Context, t *elect.Term, task string, waits bool, run func(context.Context, *Run) error) error {
	defer t.Resign(ctx)
	alive, cancel := during(ctx, t)
	var following sync.WaitGroup
	defer following.Wait()
	defer cancel(nil)

	started := make(chan definition, 1)
	following.Go(func() { s.follow(alive, cancel, task, waits, started) })
	r := &Run{Hold: recipes.NewHold(t), Task: task, ctx: alive, record: s.position(task)}
	select {
	case r.as = <-started:
	case <-alive.Done():
		return outcome(ctx, alive, t, nil)
	}
	err := r.begin(alive, s.o.ID)
	if err == nil {
		err = run(alive, r)
		switch {
		case ctx.Err() != nil && !replaced(t, err):
			return ending.Told(ctx, err, overOf(alive, t), elect.ErrLost)
		case r.Check() != nil:
		case err == nil:
			err = s.finish(alive, r)
		case !replaced(t, err):
			r.failed(alive, err)
			return err // also if the run was lost meanwhile, or is to end
		}
	}
	return outcome(ctx, alive, t, err)
}

// follow sends what the record says to started when the task is started. It calls cancel when the
// task is stopped after that, or gets another configuration, or, if waits is false, when it is not
// started.
func (s *Standby) follow(ctx context.Context, cancel context.CancelCauseFunc, task string, waits bool, started chan<- definition) {
	var begun *definition // with which the run has begun; nil before
	for e, err := range record.New(s.b, s.definition(task), record.JSON[definition]()).Follow(ctx) {
		switch {
		case err == nil && e.Value.State == Started:
			waits = false
			switch d := e.Value; {
			case begun == nil:
				begun = &d
				started <- d
			case d.Starts != begun.Starts: // it was stopped in between
				cancel(ErrStopped)
				return
			case d != *begun:
				cancel(ErrConfigured)
				return
			}
		case err != nil && !errors.Is(err, record.ErrDecode):
			cancel(needsRecords(err))
		case !waits: // a record that cannot be understood does not say that the task is to run
			cancel(ErrStopped)
			return
		}
	}
}

// finish records that the task is finished, unless it was stopped meanwhile, also if it was started
// again, or is to run with another configuration.
func (s *Standby) finish(ctx context.Context, r *Run) error {
	return insist(ctx, func() error {
		got, err := r.Get(ctx, s.definition(r.Task))
		if err != nil {
			return guarded(r.Term(), err)
		}
		d, err := decode[definition](got)
		if err != nil || d != r.as {
			return err
		}
		d.State = Finished
		_, err = r.Put(ctx, got.Name, encode(d), got.Version)
		return guarded(r.Term(), err)
	})
}
