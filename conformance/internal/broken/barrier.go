package broken

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/succession-dev/succession/backend"
)

var barrierFlaws = []Flaw{
	{
		Name:    "lines that begin alike",
		Breaks:  "L2, L3: Line and WatchLine also show shared members of a line whose name begins with that of the one that is asked for",
		Must:    "Barrier.opens",
		session: func(_ *Backend, s backend.Session) backend.Session { return &alike{Session: s} },
	},
}

// An alike session knows only the members that it has joined itself. That is enough to show the
// flaw.
type alike struct {
	backend.Session
	mu     sync.Mutex
	joined []backend.Member
}

func (s *alike) JoinShared(ctx context.Context, line, value, record string) (backend.Joined, error) {
	m, err := s.Session.JoinShared(ctx, line, value, record)
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.joined = append(s.joined, m.Member)
	}
	return m, err
}

func (s *alike) Line(ctx context.Context, line string) (backend.Line, error) {
	l, err := s.Session.Line(ctx, line)
	return s.with(l, line), err
}

func (s *alike) WatchLine(ctx context.Context, line string, after backend.Line) (backend.Line, error) {
	after.Members = slices.DeleteFunc(slices.Clone(after.Members), func(m backend.Member) bool { return m.Line != line })
	l, err := s.Session.WatchLine(ctx, line, after)
	return s.with(l, line), err
}

// with returns l with the members of lines whose names begin alike.
func (s *alike) with(l backend.Line, line string) backend.Line {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.joined {
		if m.Line != line && strings.HasPrefix(m.Line, line) {
			l.Members = append(l.Members, m)
		}
	}
	slices.SortFunc(l.Members, func(a, b backend.Member) int { return cmp.Compare(a.Position, b.Position) })
	return l
}
