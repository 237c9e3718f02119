package conformance_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/internal/again"
)

// A toy is the coordinator of somebody who uses the suite for the first time: lines in the
// memory of one process. It has no records and no pins, and a session ends only by Close.
type toy struct {
	mu      sync.Mutex
	newest  uint64 // the position of the newest member
	lines   map[string][]toyPlace
	changed chan struct{} // closed and replaced at each change
}

type toyPlace struct {
	backend.Member
	owner *toySession
}

func newToy() *toy {
	return &toy{lines: make(map[string][]toyPlace), changed: make(chan struct{})}
}

// change wakes all that wait. The caller holds the lock.
func (c *toy) change() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// remove removes the members for which gone is true. The caller holds the lock.
func (c *toy) remove(line string, gone func(toyPlace) bool) {
	c.lines[line] = slices.DeleteFunc(c.lines[line], gone)
	c.change()
}

// A toyBackend is a client of a toy.
type toyBackend struct {
	c      *toy
	live   *toySession // c.mu guards live and closed
	closed bool
}

func (c *toy) dial() *toyBackend { return &toyBackend{c: c} }

func (b *toyBackend) Session(ctx context.Context) (backend.Session, error) {
	b.c.mu.Lock()
	defer b.c.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case b.closed:
		return nil, backend.ErrClosed
	case b.live == nil || b.live.Err() != nil:
		b.live = &toySession{c: b.c, done: make(chan struct{})}
	}
	return b.live, nil
}

func (b *toyBackend) Close() error {
	b.c.mu.Lock()
	b.closed = true
	s := b.live
	b.c.mu.Unlock()
	if s == nil {
		return nil
	}
	return s.Close(context.Background())
}

// A toySession is a client's session.
type toySession struct {
	kit.NoShares
	kit.NoPins
	kit.NoItems
	kit.NoRecords
	kit.AlwaysFresh
	kit.NoLines
	kit.NoSurvey
	kit.NoImports
	kit.NoDates
	kit.NoFiles
	kit.Ender
	c    *toy
	done chan struct{}
}

func (s *toySession) TTL() time.Duration       { return 0 }
func (s *toySession) MaxMargin() time.Duration { return 0 }
func (s *toySession) Deadline() time.Time      { return time.Time{} }
func (s *toySession) Done() <-chan struct{}    { return s.done }

func (s *toySession) Err() error {
	select {
	case <-s.done:
		return fmt.Errorf("toy: %w: closed", backend.ErrSessionEnded)
	default:
		return nil
	}
}

// until calls look at once and after each change, with the lock held, until look returns true or
// an error.
func (s *toySession) until(ctx context.Context, line string, look func() (bool, error)) error {
	if err := backend.CheckName(line); err != nil {
		return err
	}
	for {
		s.c.mu.Lock()
		if ctx.Err() != nil {
			s.c.mu.Unlock()
			return context.Cause(ctx)
		}
		ok, err := false, s.Err()
		if err == nil {
			ok, err = look()
		}
		changed := s.c.changed
		s.c.mu.Unlock()
		if ok || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-s.done:
		case <-ctx.Done():
		}
	}
}

func (s *toySession) TraceHeartbeats(func(backend.Heartbeat)) (stop func()) { return func() {} }

func (s *toySession) Join(ctx context.Context, line, value, _ string) (j backend.Joined, err error) {
	if err := backend.CheckValue(value); err != nil {
		return j, err
	}
	err = s.until(ctx, line, func() (bool, error) {
		s.c.newest++
		m := backend.Member{Line: line, Key: fmt.Sprint(s.c.newest), Position: s.c.newest, Value: value}
		s.c.lines[line] = append(s.c.lines[line], toyPlace{m, s})
		s.c.change()
		j.Member = m
		return true, nil
	})
	return j, err
}

// index returns the index of m in its line, or -1 if it is not there. The caller holds the lock.
func (s *toySession) index(m backend.Member) int {
	return slices.IndexFunc(s.c.lines[m.Line], func(p toyPlace) bool { return p.Position == m.Position && p.Key == m.Key })
}

func (s *toySession) Ahead(ctx context.Context, m backend.Member) (p backend.Place, err error) {
	err = s.until(ctx, m.Line, func() (bool, error) {
		switch i := s.index(m); i {
		case -1:
			return false, backend.ErrNotMember
		case 0:
			p = backend.Place{First: true, Token: m.Position}
		default:
			p = backend.Place{Ahead: s.c.lines[m.Line][i-1].Member}
		}
		return true, nil
	})
	return p, err
}

func (s *toySession) WatchPlace(ctx context.Context, m backend.Member, p *backend.Place) error {
	return again.WatchPlace(ctx, s, m, p)
}

func (s *toySession) Head(ctx context.Context, line string) (backend.Line, error) {
	l, err := s.Line(ctx, line)
	l.Members = l.Members[:min(1, len(l.Members))]
	return l, err
}

func (s *toySession) Gone(ctx context.Context, m backend.Member) error {
	return s.until(ctx, m.Line, func() (bool, error) { return s.index(m) < 0, nil })
}

func (s *toySession) Leave(ctx context.Context, m backend.Member) error {
	return s.until(ctx, m.Line, func() (bool, error) {
		i := s.index(m)
		if i >= 0 && s.c.lines[m.Line][i].owner != s {
			return false, backend.ErrDenied
		}
		if i >= 0 {
			s.c.remove(m.Line, func(p toyPlace) bool { return p.Position == m.Position })
		}
		return true, nil
	})
}

func (s *toySession) Line(ctx context.Context, line string) (l backend.Line, err error) {
	l.Version = backend.Absent
	err = s.until(ctx, line, func() (bool, error) {
		for _, p := range s.c.lines[line] {
			l.Members = append(l.Members, p.Member)
		}
		return true, nil
	})
	return l, err
}

func (s *toySession) WatchLine(ctx context.Context, line string, after backend.Line) (l backend.Line, err error) {
	for {
		if l, err = s.Line(ctx, line); err != nil || !kit.SameMembers(l, after) {
			return l, err
		}
		if err := s.until(ctx, line, func() (bool, error) {
			n := len(s.c.lines[line])
			return n != len(l.Members) || n > 0 && s.c.lines[line][n-1].Member != l.Members[n-1], nil
		}); err != nil {
			return backend.Line{}, err
		}
	}
}

func (s *toySession) Close(context.Context) error {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	if s.Err() == nil {
		close(s.done)
		s.TellEnd(s.Err())
		for line := range s.c.lines {
			s.c.remove(line, func(p toyPlace) bool { return p.owner == s })
		}
	}
	return nil
}
