package kit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
)

// Rules are what a driver says of the life of one session.
type Rules struct {
	// Over returns why the session is over, by the clock or by what the driver was told,
	// and nil as long as it lives. It is asked at each call, so it must be cheap and safe for
	// concurrent use. nil is never.
	Over func() error

	// Left returns after what time Over is to be asked although there is no call: the time
	// until the deadline. nil is never.
	Left func() time.Duration

	// Explain returns the error of a call that has failed with err as one of the contract. nil
	// leaves it as it is.
	Explain func(ctx context.Context, err error) error

	// Ending makes the session's deadline pass. It must not block. nil does nothing.
	Ending func()

	// Release has the coordinator end the session, and returns when that has been confirmed,
	// when the coordinator must have ended it by itself, or when ctx ends: the backend
	// gives it up. It is called once.
	Release func(ctx context.Context) error

	// Stands says until when the members stand of a session that was not released, for
	// people, such as "etcd ends its lease, within 10s".
	Stands func() string
}

// A Life is that of one session. A driver's session embeds a pointer to it. It is safe for
// concurrent use.
type Life struct {
	sessions *Sessions
	rules    Rules

	ctx    context.Context // ends with the session; its cause says why
	cancel context.CancelCauseFunc

	released chan struct{} // closed when Release has returned
	left     error         // what Release has returned; to be read after released

	mu    sync.Mutex
	timer *time.Timer // at the end by the clock; nil before Start
	ended bool
}

// NewLife returns the life of a session that has just been opened, or is about to be.
// Somebody must end it, or start it.
func (b *Sessions) NewLife(r Rules) *Life {
	l := &Life{sessions: b, rules: r, released: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	b.began(l)
	return l
}

// Start begins to watch the clock, and runs each of run for the session in a goroutine of
// its own. They must return when the context of the session ends.
func (l *Life) Start(run ...func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	if l.rules.Left != nil {
		l.timer = time.AfterFunc(l.rules.Left(), l.look)
	}
	for _, f := range run {
		l.sessions.running.Go(f)
	}
}

// Go runs f for the session in a goroutine that Close of the backend waits for. It must
// return when the context of the session ends. Go reports false, and does not run f, where
// the session has ended.
func (l *Life) Go(f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.sessions.running.Go(f)
	}
	return !l.ended
}

// look runs in the timer.
func (l *Life) look() {
	if l.Alive() != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.timer.Reset(l.rules.Left())
	}
}

// Alive returns nil while the session lives, and else why it does not. It ends a session
// that is over.
func (l *Life) Alive() error {
	if l.rules.Over != nil && l.ctx.Err() == nil {
		if why := l.rules.Over(); why != nil {
			l.End(why)
		}
	}
	return l.Ended()
}

// Ended is Alive for a session that is not looked at: it may be over.
func (l *Life) Ended() error { return context.Cause(l.ctx) }

// End ends the session here and now, and has it released. It does nothing where the
// session has ended before. It does not block.
func (l *Life) End(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	l.ended = true
	if l.timer != nil {
		l.timer.Stop()
	}
	if l.rules.Ending != nil {
		l.rules.Ending()
	}
	if !errors.Is(why, backend.ErrSessionEnded) {
		why = fmt.Errorf("%w: %w", backend.ErrSessionEnded, why)
	}
	l.cancel(why)
	l.sessions.running.Go(l.release)
}

func (l *Life) release() {
	l.left = l.rules.Release(l.sessions.ctx)
	l.sessions.released(l)
	close(l.released)
}

// awaitReleased waits until the session has been released.
func (l *Life) awaitReleased(ctx context.Context) error {
	select {
	case <-l.released:
		return l.notReleased(l.left)
	default:
	}
	select {
	case <-l.released:
		return l.notReleased(l.left)
	case <-ctx.Done():
		return l.notReleased(context.Cause(ctx))
	}
}

func (l *Life) notReleased(why error) error {
	if why == nil {
		return nil
	}
	return fmt.Errorf("%w: what the session joined stands until %s: %w", backend.ErrUnavailable, l.rules.Stands(), why)
}

// Context returns the context of the session. It ends with the session; its cause wraps
// [backend.ErrSessionEnded] and says why.
func (l *Life) Context() context.Context { return l.ctx }

// Done is closed when the session has ended; see [backend.Session].
func (l *Life) Done() <-chan struct{} { return l.ctx.Done() }

// Err returns why the session has ended, or nil; see [backend.Session].
func (l *Life) Err() error { return l.sessions.Driver.Wrap("session", "", l.Alive()) }

// Close ends the session and waits until it has been released, or ctx ends; see
// [backend.Session].
func (l *Life) Close(ctx context.Context) error {
	l.End(errClosed)
	return l.sessions.Driver.Wrap("close", "", l.awaitReleased(ctx))
}
