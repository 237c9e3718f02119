package page

import (
	"context"
	"sync"
	"time"
)

// linger is how long a task goes on when nobody needs it any more: a page that is loaded again, or
// shows another election for a moment, finds what it has seen.
const linger = 10 * time.Second

// A shared task runs while somebody needs it.
type shared struct {
	run func(context.Context)
	on  *tasks

	mu     sync.Mutex
	needed int
	stop   context.CancelFunc // nil while it does not run
	ended  chan struct{}      // is closed when the newest run has ended; nil before the first
	late   *time.Timer        // stops it
}

// tasks are those that run. Close ends them, and waits for that.
type tasks struct {
	ctx  context.Context
	stop context.CancelFunc

	mu  sync.Mutex
	all sync.WaitGroup
}

func newTasks() *tasks {
	t := new(tasks)
	t.ctx, t.stop = context.WithCancel(context.Background())
	return t
}

// start runs f with a context that stop ends, unless t is closed.
func (t *tasks) start(f func(context.Context)) (stop context.CancelFunc) {
	t.mu.Lock()
	defer t.mu.Unlock()
	ctx, stop := context.WithCancel(t.ctx)
	if ctx.Err() == nil {
		t.all.Go(func() { f(ctx) })
	}
	return stop
}

func (t *tasks) close() {
	t.mu.Lock()
	t.stop()
	t.mu.Unlock()
	t.all.Wait()
}

// need starts the task unless it runs, and returns what to call once when it is not needed any more.
func (s *shared) need() (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.needed++
	if s.late != nil {
		s.late.Stop()
	}
	if s.stop == nil {
		before, ended := s.ended, make(chan struct{})
		s.ended = ended
		s.stop = s.on.start(func(ctx context.Context) {
			defer close(ended)
			if before != nil { // two at a time would undo what the other does
				<-before
			}
			s.run(ctx)
		})
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.needed--; s.needed == 0 {
			s.late = time.AfterFunc(linger, s.rest)
		}
	}
}

// idle reports whether the task does not run.
func (s *shared) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stop == nil
}

// rest stops the task, if nobody needs it.
func (s *shared) rest() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.needed == 0 && s.stop != nil {
		s.stop()
		s.stop = nil
	}
}

// A bell wakes all who wait for a change.
type bell struct {
	also *bell // rings too; nil is none

	mu sync.Mutex
	c  chan struct{}
}

// next returns a channel that is closed at the next ring.
func (b *bell) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.c == nil {
		b.c = make(chan struct{})
	}
	return b.c
}

func (b *bell) ring() {
	if b.also != nil {
		b.also.ring()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.c != nil {
		close(b.c)
		b.c = nil
	}
}
