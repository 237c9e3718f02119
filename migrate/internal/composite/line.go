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
	l, sd, err := s.lineAsKept(ctx, line, backend.Session.Line)
	if err != nil {
		return backend.Line{}, err
	}
	return shown(l, sd), nil
}

// Head returns the line with its first member alone; see [backend.Session].
func (s *session) Head(ctx context.Context, line string) (l backend.Line, err error) {
	defer s.told("head", line, &err)
	if err := backend.CheckName(line); err != nil {
		return backend.Line{}, err
	}
	l, sd, err := s.lineAsKept(ctx, line, backend.Session.Head)
	if err == nil && hidden(l, sd) { // the first member is the one behind the gate
		l, sd, err = s.lineAsKept(ctx, line, backend.Session.Line)
	}
	if err != nil {
		return backend.Line{}, err
	}
	l = shown(l, sd)
	l.Members = l.Members[:min(1, len(l.Members))]
	return l, nil
}

// A reader reads a line, or the head of it.
type reader func(part backend.Session, ctx context.Context, line string) (backend.Line, error)

// lineAsKept returns the line of the coordinator where the election is, unchanged.
func (s *session) lineAsKept(ctx context.Context, line string, read reader) (backend.Line, protocol.Side, error) {
	l, sd, err := s.lineOf(ctx, line, read)
	if err == nil && sd == protocol.To && l.Header.Sealed != "" { // the election has moved on, perhaps back
		s.setMoved(line, false)
		l, sd, err = s.lineOf(ctx, line, read)
	}
	return l, sd, err
}

// hidden reports whether the first member is the gate, which somebody is about to take away.
func hidden(l backend.Line, sd protocol.Side) bool {
	_, ok := protocol.Gate(l)
	return ok && sd == protocol.To && protocol.Gated(l.Header)
}

// shown returns the line as callers know it. It leaves l as it is.
func shown(l backend.Line, sd protocol.Side) backend.Line {
	if hidden(l, sd) {
		l.Members = l.Members[1:]
	}
	l.Members = slices.Clone(l.Members)
	for i, m := range l.Members {
		l.Members[i] = tag(sd, m)
	}
	l.Version = tagVersion(sd, l.Version)
	return l
}

// lineOf returns the line of the coordinator where the election is, as far as is known.
func (s *session) lineOf(ctx context.Context, line string, read reader) (backend.Line, protocol.Side, error) {
	sd, err := s.sideOf(ctx, line)
	if err != nil {
		return backend.Line{}, sd, err
	}
	part, err := s.use(sd)
	if err != nil {
		return backend.Line{}, sd, err
	}
	l, err := read(part, ctx, line)
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
		whole, sd, err := s.lineAsKept(ctx, line, backend.Session.Line)
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
		// Perhaps only the gate has changed, which is not shown.
		if _, err := part.WatchLine(ctx, line, whole); err != nil {
			return backend.Line{}, err
		}
	}
}

// sideOf says where a caller that does not stand in line must look: on To if the election has
// moved, and otherwise on From, also if no migration has begun.
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
		if _, err := s.use(protocol.From); err != nil { // the session ends, so that the next one tries From again
			return protocol.From, err
		}
		return protocol.From, errs[protocol.From]
	}
	return protocol.From, nil
}
