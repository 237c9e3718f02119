package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

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

// TTL is 0: only the end of the process, or Close, ends the session.
func (s *Session) TTL() time.Duration { return 0 }

// MaxMargin is 0, as TTL is; see [backend.Session].
func (s *Session) MaxMargin() time.Duration { return 0 }

// Deadline is the zero time, never: the kernel holds the places of a process as
// long as the process lives.
func (s *Session) Deadline() time.Time { return time.Time{} }

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

// Join adds a member at the end of the line. It writes two files to the disk; see
// [backend.Session].
func (s *Session) Join(ctx context.Context, line, value string) (backend.Member, error) {
	m, err := s.join(ctx, line, value)
	return m, wrap("join", line, err)
}

func (s *Session) join(ctx context.Context, line, value string) (m backend.Member, err error) {
	if err := errors.Join(backend.CheckName(line), backend.CheckValue(value)); err != nil {
		return m, err
	}
	return m, s.write(ctx, func(ctx context.Context, h *hold) error {
		st, err := s.b.load(line)
		if err != nil {
			return err
		}
		position, err := s.b.next(ctx, h, st.newest())
		if err != nil {
			return err
		}
		if err := s.b.drop(st); err != nil {
			return err
		}
		p, err := s.b.dir.stand(line, position)
		if err != nil {
			return err
		}
		joined := newMember(line, position, value)
		st.members = append(st.members, joined)
		if err := s.b.store(st); err != nil {
			p.leave() // listed or not, it is nobody's
			return err
		}
		s.mu.Lock()
		s.places[position] = p
		s.mu.Unlock()
		m = joined
		s.b.sweep(st)
		return nil
	}, line)
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

// Leave removes m; see [backend.Session]. To leave one's own place is to let go of
// it: that takes no lock and writes nothing. A member that another session joined
// is refused with [backend.ErrDenied].
func (s *Session) Leave(ctx context.Context, m backend.Member) error {
	return wrap("leave", m.Line, s.leave(ctx, m))
}

func (s *Session) leave(ctx context.Context, m backend.Member) error {
	if err := backend.CheckName(m.Line); err != nil {
		return err
	}
	if err := s.usable(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	p := s.places[m.Position]
	if p != nil && !p.pinned && p.path == s.b.dir.fifo(m.Line, m.Position) {
		delete(s.places, m.Position)
		p.leave()
		s.mu.Unlock()
		return nil
	}
	s.mu.Unlock()
	return s.write(ctx, func(context.Context, *hold) error { return s.unpin(m) }, m.Line)
}

// unpin removes a pinned member, whoever pinned it. The caller holds the lock.
func (s *Session) unpin(m backend.Member) error {
	st, err := s.b.load(m.Line)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	path := s.b.dir.fifo(m.Line, m.Position)
	own := s.places[m.Position]
	i := st.index(m)
	switch {
	case i < 0:
		return nil
	case st.members[i].Pinned:
		st.members = append(st.members[:i], st.members[i+1:]...)
		if err := s.b.store(st); err != nil {
			return err
		}
	case own == nil:
		if is, err := probe(path); err != nil || is != held {
			return err
		}
		return fmt.Errorf("%w: member %s was joined by another session", backend.ErrDenied, m.Key)
	}
	if own != nil {
		delete(s.places, m.Position)
		own.leave()
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if len(st.members) == 0 && st.version == backend.Absent {
		s.b.dir.tidy(m.Line)
	}
	return nil
}

// Pin makes m permanent and writes the record of its election, in one file at
// once; see [backend.Session]. Where m is pinned and the record is hd already,
// nothing is left to do, whatever the version. A member that another session joined
// is refused with [backend.ErrDenied].
func (s *Session) Pin(ctx context.Context, m backend.Member, hd backend.Header, at backend.Version) error {
	return wrap("pin", m.Line, s.pin(ctx, m, hd, at))
}

func (s *Session) pin(ctx context.Context, m backend.Member, hd backend.Header, at backend.Version) error {
	if err := backend.CheckName(m.Line); err != nil {
		return err
	}
	return s.write(ctx, func(ctx context.Context, h *hold) error {
		st, err := s.b.load(m.Line)
		if err != nil {
			return err
		}
		i := st.index(m)
		if i < 0 {
			return backend.ErrNotMember
		}
		if stands, err := s.b.stands(st.members[i]); err != nil {
			return err
		} else if !stands {
			return backend.ErrNotMember
		}
		s.mu.Lock()
		own := s.places[m.Position]
		s.mu.Unlock()
		record := hd.Encode()
		if st.members[i].Pinned {
			if bytes.Equal(st.record, record) {
				return nil
			}
		} else if own == nil {
			return fmt.Errorf("%w: member %s was joined by another session", backend.ErrDenied, m.Key)
		}
		if st.version != at {
			return backend.ErrVersion
		}
		version, err := s.b.next(ctx, h, st.newest())
		if err != nil {
			return err
		}
		st.members[i].Pinned = true
		st.record, st.version = record, backend.Version(version)
		if own != nil {
			// Also when store fails, it may be listed as pinned: its FIFO must then
			// outlive us. If it is not, whoever joins next sweeps it up.
			s.mu.Lock()
			own.pinned = true
			s.mu.Unlock()
		}
		if err := s.b.store(st); err != nil {
			return err
		}
		// This changes nothing, but wakes those who watch the FIFO.
		_ = os.Chmod(s.b.dir.fifo(m.Line, m.Position), s.b.dir.filePerm())
		return nil
	}, m.Line)
}
