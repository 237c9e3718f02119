package consul

import (
	"context"
	"slices"

	"github.com/succession-dev/succession/backend"
)

// Head returns the line with its first member alone; see [backend.Session]. Of a line of
// more than four, the session remembers the first ones. As long as one of them stands,
// nobody stands in front of that one: those in front have gone for good, and new members stand
// behind; see [front]. So Head reads four of them at a time, and the whole line only when all have
// gone. It blocks for about a round trip.
func (s *session) Head(ctx context.Context, line string) (backend.Line, error) {
	folder := s.b.o.folder(line)
	s.mu.Lock()
	known := s.heads[line]
	s.mu.Unlock()
	for len(known) > 0 {
		some := known[:min(len(known), maxNear)]
		var keys []string
		for _, m := range some {
			keys = append(keys, folder+m.Key)
		}
		r, l, err := s.read(ctx, line, gets(keys...)...)
		if err != nil {
			return backend.Line{}, err
		}
		for i, m := range some {
			if p := r.find(keys[i]); p != nil && p.CreateIndex == m.Position {
				l.Members = []backend.Member{memberOf(line, folder, p)}
				s.disown(l.Members)
				s.heading(line, known[i:])
				return l, nil
			}
		}
		known = known[len(some):]
	}
	l, err := s.Line(ctx, line)
	if err != nil {
		return l, err
	}
	s.heading(line, l.Members)
	l.Members = slices.Clone(l.Members[:min(len(l.Members), 1)])
	return l, nil
}

const (
	maxHeads = 64  // how many members of a line are remembered
	maxLines = 256 // of how many lines
)

// heading remembers the first members of the line, if there are more than one request reads anyway.
func (s *session) heading(line string, first []backend.Member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.heads, line)
	if len(first) <= maxNear {
		return
	}
	if len(s.heads) == maxLines {
		clear(s.heads)
	}
	known := make([]backend.Member, 0, min(len(first), maxHeads))
	for _, m := range first[:cap(known)] {
		m.Value = ""
		known = append(known, m)
	}
	s.heads[line] = known
}
