package composite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/migrate/internal/protocol"
)

// Scheme is the scheme of the composite's URLs, and the field Backend of its errors.
const Scheme = "migrate"

// Wrap wraps an error in the composite's way; nil stays nil.
func Wrap(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &backend.Error{Backend: Scheme, Op: op, Name: name, Err: err}
}

// Options are the settings of a [Backend].
type Options struct {
	Route    protocol.Route
	Patience time.Duration // as package migrate says of it
	Log      *slog.Logger
	// Begin begins the migration of an election for a process that joins it, if nobody has begun
	// one, as why says. Nil means that processes begin none.
	Begin func(ctx context.Context, election string, why error) error
}

// A Backend is the backends of two coordinators as one. It is safe for concurrent use.
type Backend struct {
	subs [2]backend.Backend
	o    Options

	opening lock // of a session

	mu      sync.Mutex
	session *session
	closed  bool
}

// New returns a composite, which owns both backends from now on.
func New(subs [2]backend.Backend, o Options) *Backend {
	return &Backend{subs: subs, o: o, opening: newLock()}
}

// Session returns the live session and opens one where there is none.
func (b *Backend) Session(ctx context.Context) (_ backend.Session, err error) {
	defer func() { err = Wrap("session", "", err) }()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := b.opening.take(ctx); err != nil {
		return nil, err
	}
	defer b.opening.release()
	b.mu.Lock()
	s, closed := b.session, b.closed
	b.mu.Unlock()
	switch {
	case closed:
		return nil, backend.ErrClosed
	case s != nil && s.alive() == nil:
		return s, nil
	case s != nil:
		// The part with the coordinator that did not end the session must be closed first.
		select {
		case <-s.over:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if s, err = b.open(ctx); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		s.end(errClosed)
		return nil, backend.ErrClosed
	}
	b.session = s
	return s, nil
}

var errClosed = fmt.Errorf("%w: the backend was closed", backend.ErrSessionEnded)

func (b *Backend) open(ctx context.Context) (*session, error) {
	var parts [2]backend.Session
	var errs [2]error
	Both(func(sd protocol.Side) { parts[sd], errs[sd] = b.subs[sd].Session(ctx) })
	switch {
	case errs[protocol.To] != nil:
		return nil, fmt.Errorf("%s: %w", b.o.Route.To, errs[protocol.To])
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errs[protocol.From] != nil && !errors.Is(errs[protocol.From], backend.ErrUnavailable):
		return nil, fmt.Errorf("%s: %w", b.o.Route.From, errs[protocol.From])
	}
	return newSession(b, parts, errs[protocol.From]), nil
}

// Close ends the session and closes both backends, at the same time; see
// [backend.Backend].
func (b *Backend) Close() error {
	b.mu.Lock()
	b.closed = true
	s := b.session
	b.mu.Unlock()
	if s == nil {
		return Wrap("close", "", b.closeSubs())
	}
	err := s.endBy(errClosed, b.closeSubs)
	<-s.over
	return Wrap("close", "", err)
}

func (b *Backend) closeSubs() error {
	var errs [2]error
	Both(func(sd protocol.Side) { errs[sd] = b.subs[sd].Close() })
	return errors.Join(errs[:]...)
}

// patience returns for how long a candidacy that is first on From tries to get a member on To,
// where a session has the given TTL.
func (b *Backend) patience(ttl time.Duration) time.Duration {
	if b.o.Patience > 0 {
		return b.o.Patience
	}
	return max(3*ttl, 15*time.Second)
}
