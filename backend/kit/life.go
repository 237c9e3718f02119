package kit

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
)

// Rules say how a driver's sessions live and end. Each session has its own.
type Rules struct {
	// Over returns nil as long as the session lives. When it is over, by the clock or because
	// the coordinator said so, Over returns why. It is called at each call of the contract, so it
	// must be cheap and safe for concurrent use. If Over is nil, the session is never over by
	// itself.
	Over func() error

	// Left returns the time until the deadline. After that time Over is called, even if there is no
	// call of the contract; not so if Left is nil.
	Left func() time.Duration

	// Explain turns err, with which a call has failed, into an error of the contract. If Explain
	// is nil, err stays as it is.
	Explain func(ctx context.Context, err error) error

	// Ending makes the session's deadline pass. It must not block. It may be nil.
	Ending func()

	// Release has the coordinator end the session. It returns when the coordinator has confirmed
	// that, or must have ended the session by itself, or when ctx ends because the backend gives
	// up. It is called once.
	Release func(ctx context.Context) error

	// Stands says, for an error message, until when members stand if the session could not be
	// released: "etcd ends its lease, within 10s".
	Stands func() string
}

// A Life is the life of one session, from its opening to its release. A driver's session embeds
// a pointer to it. It is safe for concurrent use.
type Life struct {
	sessions *Sessions
	rules    Rules

	ctx    context.Context // ends with the session; its cause says why
	cancel context.CancelCauseFunc

	released chan struct{} // closed when Release has returned
	left     error         // what Release has returned; set before released is closed

	Ender

	given bool // to callers, who may have joined something

	mu    sync.Mutex
	timer *time.Timer // fires at the deadline; nil before Start
	ended bool

	beats beats
}

// NewLife returns the life of a session that has just been opened, or is about to be. The
// caller must start it, or end it if the session was not opened.
func (b *Sessions) NewLife(r Rules) *Life {
	l := &Life{sessions: b, rules: r, released: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	b.began(l)
	return l
}

var _ interface{ life() *Life } = (*Life)(nil) // for the sessions of drivers, which embed it

func (l *Life) life() *Life { return l }

// Start begins to watch the deadline, and runs each of the funcs in a goroutine of its own.
// They must return when the context of the session ends.
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

// Go runs f in a goroutine that [Sessions.Close] waits for. f must return when the context of
// the session ends. If the session has ended, Go does not run f and reports false.
func (l *Life) Go(f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.sessions.running.Go(f)
	}
	return !l.ended
}

// look runs when the timer fires.
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

// Alive returns nil while the session lives. If it does not, Alive returns why. It calls
// [Rules] Over, and ends a session that is over.
func (l *Life) Alive() error {
	if l.rules.Over != nil && l.ctx.Err() == nil {
		if why := l.rules.Over(); why != nil {
			l.End(why)
		}
	}
	return l.Ended()
}

// Ended is Alive without the call of Over: it returns nil until somebody has found the session
// over.
func (l *Life) Ended() error { return context.Cause(l.ctx) }

// End ends the session in this process at once, and begins to release it. It does nothing if
// the session has ended before. It does not block.
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
	why = SessionEnded(why)
	l.cancel(why)
	l.TellEnd(l.sessions.Scheme.Wrap("session", "", why))
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
	if why == nil || !l.given {
		return nil
	}
	return fmt.Errorf("%w: what the session joined stands until %s: %w", backend.ErrUnavailable, l.rules.Stands(), why)
}

// Context returns the context of the session. It ends with the session; its cause is a [SessionEnded].
func (l *Life) Context() context.Context { return l.ctx }

// Done returns a channel that is closed when the session has ended; see [backend.Session].
func (l *Life) Done() <-chan struct{} { return l.ctx.Done() }

// Err returns why the session has ended, or nil; see [backend.Session].
func (l *Life) Err() error { return l.sessions.Scheme.Wrap("session", "", l.Alive()) }

// Close ends the session, and waits until it has been released or ctx ends; see
// [backend.Session].
func (l *Life) Close(ctx context.Context) error {
	l.End(errClosed)
	return l.sessions.Scheme.Wrap("close", "", l.awaitReleased(ctx))
}
