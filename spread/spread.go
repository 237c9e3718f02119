package spread

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/internal/logs"
)

// Options are the optional settings of a [Backend]. Nil and the zero value mean the defaults.
type Options struct {
	// Open makes the backend of a cluster from its URL, and does not connect. Nil means Open of the
	// registered driver.
	Open func(url string) (backend.Backend, error)
	// Logger is told what a person wants to know: where an election was put, and moves. Nil
	// passes warnings on to [slog.Default], and discards the rest.
	Logger *slog.Logger
}

// A Backend is a process's handle on several clusters. It is safe for concurrent use.
type Backend struct {
	source Source
	opener func(url string) (backend.Backend, error)
	log    *slog.Logger

	life      context.Context // ends with Close
	end       context.CancelFunc
	following sync.WaitGroup

	mu       sync.Mutex
	listed   []string            // the clusters of the list as it was last read, sorted
	clusters map[string]*cluster // by name; also those that were in the list before
	stamp    *stamp              // what all clusters carry; nil until it is known
	homes    map[string]*home    // by election; those that this process has asked for
	moves    map[route]moving
	closed   bool
}

var _ backend.Backend = (*Backend)(nil)

// New returns a handle on the clusters that source lists. It does not block and does not connect:
// the first call that needs the list reports what is wrong with it. The caller closes it.
func New(source Source, o *Options) *Backend {
	if o == nil {
		o = new(Options)
	}
	b := &Backend{
		source:   source,
		opener:   o.Open,
		log:      logs.Or(o.Logger),
		clusters: make(map[string]*cluster),
		homes:    make(map[string]*home),
		moves:    make(map[route]moving),
	}
	if b.opener == nil {
		b.opener = coordinator.DefaultMux.Open
	}
	b.life, b.end = context.WithCancel(context.Background())
	return b
}

// For returns the backend of the election with the given name: a handle on the cluster that the
// election lives on, whichever that is. It does not block. It has the election's line, and the
// records that its leaders write. It has no other line, no shared members and no items. Whoever first
// joins the election, or writes a record by its backend, gives it a home. Until then who looks sees the cluster that its name falls
// to. The caller closes b, and not what For returns.
func (b *Backend) For(election string) backend.Backend {
	return &view{b: b, election: election}
}

// Reach asks the clusters which they are. It fails if that is not as the list says, or if no cluster can tell.
func (b *Backend) Reach(ctx context.Context) error {
	_, err := b.founding(ctx, false)
	return wrap("open", "", err)
}

// Session fails with [backend.ErrInvalid]. A session has one end and one deadline, and these differ
// between clusters: see [Backend.For].
func (b *Backend) Session(context.Context) (backend.Session, error) {
	return nil, wrap("session", "", fmt.Errorf("%w call: several clusters have no session in common; use the backend of one election, which For returns", backend.ErrInvalid))
}

// Close ends this process's sessions with all clusters, at the same time; see [backend.Backend].
func (b *Backend) Close() error {
	b.mu.Lock()
	b.closed = true
	var all []backend.Backend
	for _, c := range b.clusters {
		all = append(all, c.b)
	}
	for _, m := range b.moves {
		all = append(all, m)
	}
	b.mu.Unlock()
	b.end()
	b.following.Wait() // a step may still take back what it has begun
	errs := make([]error, len(all))
	var closing sync.WaitGroup
	for i, sub := range all {
		closing.Go(func() { errs[i] = sub.Close() })
	}
	closing.Wait()
	return wrap("close", "", errors.Join(errs...))
}

// step ties one step of an operator to the life of b: Close ends it, and waits for its end before it closes the clusters. The caller calls end.
func (b *Backend) step(ctx context.Context) (tied context.Context, end func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, nil, backend.ErrClosed
	}
	b.following.Add(1)
	tied, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(b.life, func() { cancel(backend.ErrClosed) })
	return tied, func() {
		stop()
		cancel(nil)
		b.following.Done()
	}, nil
}

// wrap wraps an error in this package's way; nil stays nil.
func wrap(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &backend.Error{Backend: Scheme, Op: op, Name: name, Err: err}
}
