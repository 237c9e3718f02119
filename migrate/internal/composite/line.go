package composite

import (
	"context"
	"errors"
	"slices"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/migrate/internal/protocol"
)

// Line returns the line of the coordinator where the election is; see
// [backend.Session]. Keys of To begin with "to:".
func (s *session) Line(ctx context.Context, line string) (l backend.Line, err error) {
	defer s.told("line", line, &err)
	if err := backend.CheckName(line); err != nil {
		return backend.Line{}, err
	}
	l, sd, err := s.wholeLine(ctx, line)
	if err != nil {
		return backend.Line{}, err
	}
	return shown(l, sd), nil
}

// wholeLine returns the line of the coordinator where the election is, as that has it.
func (s *session) wholeLine(ctx context.Context, line string) (backend.Line, protocol.Side, error) {
	l, sd, err := s.lineOf(ctx, line)
	if err == nil && sd == protocol.To && l.Header.Sealed != "" { // it has moved on, perhaps back
		s.setMoved(line, false)
		l, sd, err = s.lineOf(ctx, line)
	}
	return l, sd, err
}

// shown returns the line as callers know it. It leaves l as it is.
func shown(l backend.Line, sd protocol.Side) backend.Line {
	if _, ok := protocol.Gate(l); ok && sd == protocol.To && protocol.Gated(l.Header) {
		l.Members = l.Members[1:] // it is about to be taken away
	}
	l.Members = slices.Clone(l.Members)
	for i, m := range l.Members {
		l.Members[i] = tag(sd, m)
	}
	l.Version = tagVersion(sd, l.Version)
	return l
}

// lineOf returns the line of the coordinator where the election is, as far as is known.
func (s *session) lineOf(ctx context.Context, line string) (backend.Line, protocol.Side, error) {
	sd, err := s.sideOf(ctx, line)
	if err != nil {
		return backend.Line{}, sd, err
	}
	part, err := s.use(sd)
	if err != nil {
		return backend.Line{}, sd, err
	}
	l, err := part.Line(ctx, line)
	return l, sd, err
}

// WatchLine blocks until other members stand in the line than in after; see
// [backend.Session].
func (s *session) WatchLine(ctx context.Context, line string, after backend.Line) (l backend.Line, err error) {
	defer s.told("watch line", line, &err)
	if err := backend.CheckName(line); err != nil {
		return backend.Line{}, err
	}
	for {
		whole, sd, err := s.wholeLine(ctx, line)
		if err != nil {
			return backend.Line{}, err
		}
		if l := shown(whole, sd); !l.SameMembers(after) {
			return l, nil
		}
		part, err := s.use(sd)
		if err != nil {
			return backend.Line{}, err
		}
		// What changes may be the gate alone, which is nobody.
		if _, err := part.WatchLine(ctx, line, whole); err != nil {
			return backend.Line{}, err
		}
	}
}

// sideOf says where those look who do not stand in line: To where the election has
// moved, and From otherwise, also where no migration has begun.
func (s *session) sideOf(ctx context.Context, line string) (protocol.Side, error) {
	if s.hasMoved(line) {
		return protocol.To, nil
	}
	h, errs := s.headers(ctx, line)
	if errs[protocol.To] != nil && errs[protocol.From] != nil {
		return protocol.From, errs[protocol.To]
	}
	if phase, _ := s.route.Phase(h[protocol.From], h[protocol.To]); phase.HasMoved() {
		s.setMoved(line, true)
		return protocol.To, nil
	}
	if errs[protocol.From] != nil && !errors.Is(errs[protocol.From], backend.ErrHeader) {
		if _, err := s.use(protocol.From); err != nil { // it ends, so that the next one tries again
			return protocol.From, err
		}
		return protocol.From, errs[protocol.From]
	}
	return protocol.From, nil
}
