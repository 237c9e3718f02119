package gocron

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/go-co-op/gocron/v2"

	"github.com/succession-dev/succession/elect"
)

// ErrNotLeader says that this scheduler does not lead, so that it runs no job.
var ErrNotLeader = errors.New("this scheduler does not lead")

// An Elector is a candidate of an election: gocron asks it whether this scheduler leads. It is safe
// for concurrent use.
type Elector struct {
	stop context.CancelFunc
	done chan struct{} // closed when it campaigns no more

	mu   sync.Mutex
	term *elect.Term     // nil while another leads
	jobs *sync.WaitGroup // the tasks that run in the term
	err  error           // why it campaigns no more
}

var _ gocron.Elector = (*Elector)(nil)

// NewElector returns a candidate of e, which campaigns in the background until [Elector.Close]. It does
// not block. The caller must call Close, and closes the backend of e after that.
//
// An error that does not pass by itself, as where the coordinator refuses the credentials, ends the
// campaign. From then on IsLeader returns that error, which gocron does not log, and this scheduler runs no
// job. So [slog.Default] is told of it, at the level Error, and [Elector.Done] is closed.
func NewElector(e *elect.Election) *Elector {
	ctx, stop := context.WithCancel(context.Background())
	x := &Elector{stop: stop, done: make(chan struct{})}
	go func() {
		defer close(x.done)
		err := e.Run(ctx, x.lead)
		if ctx.Err() == nil {
			slog.Error("gocron: this scheduler runs no more jobs, as its campaign has ended", "election", e.Name(), "id", e.ID(), "err", err)
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		x.err = err
	}()
	return x
}

// lead lets tasks begin until the term ends, and returns when those have returned.
func (x *Elector) lead(ctx context.Context, t *elect.Term) error {
	var jobs sync.WaitGroup
	x.set(t, &jobs)
	<-ctx.Done()
	x.set(nil, nil)
	jobs.Wait()
	if errors.Is(context.Cause(t.Context()), elect.ErrResigned) {
		return elect.ErrStepDown // a task has resigned the term
	}
	return nil
}

func (x *Elector) set(t *elect.Term, jobs *sync.WaitGroup) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.term, x.jobs = t, jobs
}

// IsLeader returns nil while this scheduler leads, at the moment of the call, and otherwise an error
// that matches [ErrNotLeader] and says why. It does not block.
func (x *Elector) IsLeader(context.Context) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	_, err := x.leads()
	return err
}

// leads returns the present term. x.mu is held.
func (x *Elector) leads() (*elect.Term, error) {
	switch {
	case x.err != nil:
		return nil, fmt.Errorf("%w: %w", ErrNotLeader, x.err)
	case x.term == nil:
		return nil, ErrNotLeader
	}
	if err := x.term.Check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotLeader, err)
	}
	return x.term, nil
}

// Task returns a function for gocron.NewTask that calls f while this scheduler leads, and otherwise
// fails as IsLeader does. The context of f ends with the term, with its cause, and with that of the job. A term
// that is resigned, as by [Elector.Close] or because somebody has asked for it, goes to the next in
// line when f has returned. After a loss nobody waits for f: give t.Token() with each write to
// what it writes to.
func (x *Elector) Task(f func(ctx context.Context, t *elect.Term) error) func(context.Context) error {
	return func(ctx context.Context) error {
		t, done, err := x.begin()
		if err != nil {
			return err
		}
		defer done()
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(t.Context(), func() { cancel(context.Cause(t.Context())) })()
		return f(ctx, t)
	}
}

// begin lets a task begin. done must be called when it has returned.
func (x *Elector) begin() (t *elect.Term, done func(), err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if t, err = x.leads(); err != nil {
		return nil, nil, err
	}
	x.jobs.Add(1)
	return t, x.jobs.Done, nil
}

// Done is closed when this candidate campaigns no more: after Close, or before, when an error has ended its
// campaign, which Close then returns. Let the process end then, so that it is started anew. Done does not
// block.
func (x *Elector) Done() <-chan struct{} { return x.done }

// Close leaves the line. It blocks until the functions of Task have returned and the coordinator has
// confirmed; see [elect.Election.Run]. So first shut the scheduler down, which ends the contexts
// of its jobs. It returns why the campaign had ended before, or nil. Calling it again is no error.
func (x *Elector) Close() error {
	x.stop()
	<-x.done
	x.mu.Lock()
	defer x.mu.Unlock()
	if errors.Is(x.err, context.Canceled) {
		return nil
	}
	return x.err
}
