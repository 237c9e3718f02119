package kit

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
)

// A Session is a driver's session: it embeds a *[Life].
type Session interface {
	backend.Session
	Alive() error
	End(why error)
}

// Config says what a driver's sessions are. All fields are required.
type Config struct {
	Driver Driver

	// Open opens a session and starts its life ([Life.Start]). ctx ends after Connect, and
	// when Close gives up. A session that Open does not return it must end.
	Open    func(ctx context.Context) (Session, error)
	Connect time.Duration

	// Patience is how long Close waits for the coordinator at most.
	Patience time.Duration
}

// Sessions are those of one backend. At most one is live; others that ended before it may
// not have been released yet. It is safe for concurrent use.
type Sessions struct {
	Config

	ctx     context.Context // ends when everything must be given up
	cancel  context.CancelFunc
	closing chan struct{}  // closed when Close begins
	running sync.WaitGroup // everything that runs for the backend

	mu      sync.Mutex
	closed  bool
	newest  Session  // may have ended; nil before the first
	opening *opening // while one is being opened
	lives   []*Life  // of those that have not been released
}

// An opening is a session on its way, shared by all who wait for it.
type opening struct {
	done    chan struct{} // closed when session or err is set
	session Session
	err     error
}

// errClosed is why a session ends that is closed, or whose backend is.
var errClosed = errors.New("it was closed")

// NewSessions returns the sessions of a backend that has none yet. The caller must call
// Close.
func NewSessions(c Config) *Sessions {
	b := &Sessions{Config: c, closing: make(chan struct{})}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	return b
}

// Session returns the live session and opens one where there is none; see
// [backend.Backend].
func (b *Sessions) Session(ctx context.Context) (backend.Session, error) {
	s, err := b.live(ctx)
	if err != nil {
		return nil, b.Driver.Wrap("session", "", err)
	}
	return s, nil
}

// Newest returns the newest session, which may have ended; nil before the first.
func (b *Sessions) Newest() backend.Session {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.newest
}

func (b *Sessions) live(ctx context.Context) (Session, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	b.mu.Lock()
	switch {
	case b.closed:
		b.mu.Unlock()
		return nil, backend.ErrClosed
	case b.newest != nil && b.newest.Alive() == nil:
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

// open opens a session for all who wait for o.
func (b *Sessions) open(o *opening) {
	ctx, cancel := context.WithTimeout(b.ctx, b.Connect)
	defer cancel()
	s, err := b.Open(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.opening = nil
	switch {
	case b.closed:
		o.err = backend.ErrClosed
		if err == nil {
			s.End(errClosed)
		}
	case err != nil:
		o.err = err
	default:
		b.newest, o.session = s, s
	}
	close(o.done)
}

// Context returns a context that ends when Close gives up what has not ended by itself.
func (b *Sessions) Context() context.Context { return b.ctx }

// Close ends the session, if there is one, and waits until it and those before it have
// been released, for Patience at most; see [backend.Backend]. It returns when nothing runs
// for the backend any more.
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
	if o != nil { // what the coordinator grants now would stand for a session time
		select {
		case <-o.done:
		case <-ctx.Done():
		}
	}
	b.mu.Lock()
	lives := slices.Clone(b.lives)
	b.mu.Unlock()
	for _, l := range lives {
		l.End(errClosed) // so that all are released at the same time
	}
	var err error
	for _, l := range lives {
		err = errors.Join(err, l.awaitReleased(ctx))
	}
	b.cancel()
	b.running.Wait()
	return b.Driver.Wrap("close", "", err)
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
