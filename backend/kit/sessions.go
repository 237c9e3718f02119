package kit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/backend/kit/clock"
)

// A Session is a driver's session: it embeds a *[Life]. Its callers have it in an [Adapter].
type Session interface {
	backend.Session
	life() *Life
}

// Config says how a driver opens and ends sessions. Scheme, Open, Connect and Patience are required.
type Config struct {
	Scheme Scheme

	// Open opens a session and starts its life ([Life.Start]). ctx ends when the time of the call is over, or
	// when Close gives up. If Open fails, it must end the life that it has made.
	Open    func(ctx context.Context) (Session, error)
	Connect time.Duration

	// Attempt is how long a call of Open may take at first. If it takes longer, or fails with an error that may
	// pass, Open is called again after a pause, until Connect is over. After a call that was given up, the next one
	// may take twice as long: where a coordinator is slow because many connect to it, a call that is given up has
	// cost it as much as one that succeeds. 0 stands for one call, which may take Connect.
	Attempt time.Duration

	// Passing says of an error of Open whether it may pass by itself. since is how long ago Open was
	// called first. nil stands for [backend.ErrUnavailable].
	Passing func(err error, since time.Duration) bool

	// Patience is the longest time that Close waits for the coordinator.
	Patience time.Duration

	// CheckName fails if the driver cannot keep an election or a record of that name. If it is nil,
	// [backend.CheckName] is used.
	CheckName func(name string) error
}

// Sessions holds the sessions of one backend. At most one of them is live. Others have ended,
// but have not been released yet. It is safe for concurrent use.
type Sessions struct {
	Config

	ctx     context.Context // ends when everything must be given up
	cancel  context.CancelFunc
	closing chan struct{}  // closed when Close is called
	running sync.WaitGroup // everything that runs for the backend

	mu      sync.Mutex
	closed  bool
	newest  *Adapter // its session may have ended; nil before the first
	opening *opening // nil while none is being opened
	lives   []*Life  // of the sessions that have not been released
}

// An opening is the attempt to open a session. All callers of Session share it.
type opening struct {
	done    chan struct{} // closed when session or err has been set
	session *Adapter
	err     error
}

// errClosed is why a session ends when somebody closes it or its backend.
var errClosed = errors.New("it was closed")

// NewSessions returns an empty Sessions for a new backend. The caller must call Close.
func NewSessions(c Config) *Sessions {
	b := &Sessions{Config: c, closing: make(chan struct{})}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	if b.CheckName == nil {
		b.CheckName = backend.CheckName
	}
	return b
}

// Session returns the live session, and opens one if there is none; see [backend.Backend].
func (b *Sessions) Session(ctx context.Context) (backend.Session, error) {
	s, err := b.live(ctx)
	if err != nil {
		return nil, b.Scheme.Wrap("session", "", err)
	}
	return s, nil
}

// Newest returns the driver's newest session, which may have ended. It returns nil if there was
// none.
func (b *Sessions) Newest() Session {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.newest == nil {
		return nil
	}
	return b.newest.Session
}

func (b *Sessions) live(ctx context.Context) (*Adapter, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	b.mu.Lock()
	switch {
	case b.closed:
		b.mu.Unlock()
		return nil, backend.ErrClosed
	case b.newest != nil && b.newest.life().Alive() == nil:
		defer b.mu.Unlock()
		return b.newest, nil
	case b.opening == nil:
		o := &opening{done: make(chan struct{})}
		b.opening = o
		b.running.Go(func() { b.open(o) })
	}
	o := b.opening
	b.mu.Unlock()
	select {
	case <-o.done:
		return o.session, o.err
	case <-b.closing:
		return nil, backend.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// open opens a session for all callers that wait for o.
func (b *Sessions) open(o *opening) {
	ctx, cancel := context.WithTimeout(b.ctx, b.Connect)
	defer cancel()
	s, err := b.insist(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.opening = nil
	switch {
	case b.closed:
		o.err = backend.ErrClosed
		if err == nil {
			s.life().End(errClosed)
		}
	case err != nil:
		o.err = err
	default:
		s.life().given = true // before any Close of it, and any of the backend that waits for it
		o.session = &Adapter{s}
		b.newest = o.session
	}
	close(o.done)
}

// insist calls Open until it opens a session, ctx ends, or Open fails for good.
func (b *Sessions) insist(ctx context.Context) (Session, error) {
	if b.Attempt == 0 {
		return b.Open(ctx)
	}
	passing := b.Passing
	if passing == nil {
		passing = func(err error, _ time.Duration) bool { return errors.Is(err, backend.ErrUnavailable) }
	}
	var why error // what went wrong last, apart from that all time was over
	pause, begun := backoff.Backoff{Min: 20 * time.Millisecond, Max: time.Second}, clock.Now()
	for attempt := b.Attempt; ; {
		slow := fmt.Errorf("%w: no answer within %v", backend.ErrUnavailable, attempt)
		bounded, cancel := context.WithTimeoutCause(ctx, attempt, slow)
		s, err := b.Open(bounded)
		late := bounded.Err() != nil
		cancel()
		if err == nil {
			return s, nil
		}
		over := ctx.Err() != nil
		if why == nil || !over {
			why = err
		}
		gaveUp := late && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, slow))
		if !gaveUp && !passing(err, clock.Since(begun)) {
			return nil, err
		}
		select {
		case <-b.closing:
			return nil, backend.ErrClosed
		default:
		}
		if over || pause.Sleep(ctx) != nil {
			return nil, fmt.Errorf("%w: no session was opened within %v: %w", backend.ErrUnavailable, b.Connect, why)
		}
		if late {
			attempt *= 2
		}
	}
}

// Context returns a context that ends when Close stops waiting for sessions to be released.
func (b *Sessions) Context() context.Context { return b.ctx }

// Close ends the live session, if there is one. It waits until that session and all before it
// have been released, but not longer than Patience; see [backend.Backend]. It returns when no
// goroutine of the backend runs any more.
func (b *Sessions) Close() error {
	b.mu.Lock()
	if !b.closed {
		b.closed = true
		close(b.closing)
	}
	o := b.opening
	b.mu.Unlock()

	ctx, cancel := context.WithTimeout(context.Background(), b.Patience)
	defer cancel()
	if o != nil { // otherwise a session that is granted now would stay for a session time
		select {
		case <-o.done:
		case <-ctx.Done():
		}
	}
	b.mu.Lock()
	lives := slices.Clone(b.lives)
	b.mu.Unlock()
	for _, l := range lives {
		l.End(errClosed) // all of them first, so that they are released at the same time
	}
	var err error
	for _, l := range lives {
		err = errors.Join(err, l.awaitReleased(ctx))
	}
	b.cancel()
	b.running.Wait()
	return b.Scheme.Wrap("close", "", err)
}

func (b *Sessions) began(l *Life) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lives = append(b.lives, l)
}

func (b *Sessions) released(l *Life) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lives = slices.DeleteFunc(b.lives, func(o *Life) bool { return o == l })
}
