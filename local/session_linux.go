package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/succession-dev/succession/backend"
)

// A Session is what this process holds in a folder: it lives until it is closed or
// the process dies. It is safe for concurrent use.
type Session struct {
	b    *Backend
	ctx  context.Context // ends with the session; its cause is Err
	stop context.CancelCauseFunc

	// writing is held shared over each write, and by the one who ends the session:
	// nothing is written once that has happened.
	writing sync.RWMutex

	mu     sync.Mutex
	places map[uint64]*place // by position
}

var _ backend.Session = (*Session)(nil)

func newSession(b *Backend) *Session {
	s := &Session{b: b, places: make(map[uint64]*place)}
	s.ctx, s.stop = context.WithCancelCause(context.Background())
	return s
}

// Done is closed when the session was closed.
func (s *Session) Done() <-chan struct{} { return s.ctx.Done() }

// Err returns nil until the session was closed.
func (s *Session) Err() error {
	if s.ctx.Err() == nil {
		return nil
	}
	return context.Cause(s.ctx)
}

// Close ends the session; its members are gone when it returns. It waits for
// writes in progress, which take milliseconds. Closing twice is not an error.
func (s *Session) Close(context.Context) error {
	s.end(errors.New("it was closed"))
	return nil
}

func (s *Session) end(why error) {
	s.stop(fmt.Errorf("%w: %w", backend.ErrSessionEnded, why)) // those who wait give up
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.places {
		p.leave()
	}
	clear(s.places)
}

// usable returns why a call cannot be made, or cannot go on.
func (s *Session) usable(ctx context.Context) error {
	if err := s.Err(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// write runs fn with the names locked, unless the session has ended. What fn does
// is not broken off when ctx ends: it is short, and half of it would be worse.
func (s *Session) write(ctx context.Context, fn func(ctx context.Context, h *hold) error, names ...string) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	ctx, cancel := s.bounded(ctx, names[0])
	defer cancel()
	h, err := s.b.acquire(ctx, exclusive, names...)
	if err != nil {
		return err
	}
	defer h.release()
	s.writing.RLock()
	defer s.writing.RUnlock()
	if err := s.Err(); err != nil {
		return err
	}
	return fn(ctx, h)
}

func (s *Session) hold(m backend.Member) (*os.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.places[m.Position]
	if p == nil || p.path != s.b.dir.fifo(m.Line, m.Position) {
		return nil, backend.ErrNotMember
	}
	return p.hold()
}
