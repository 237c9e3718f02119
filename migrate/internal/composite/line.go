package composite

import (
	"context"
	"errors"
	"slices"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/migrate/internal/protocol"
)

// Line returns the line of the coordinator where the election is; see
// [backend.Session]. Keys of To begin with "to:".
func (s *session) Line(ctx context.Context, line string) (_ backend.Line, err error) {
	defer s.told("line", line, &err)
	if err := backend.CheckName(line); err != nil {
		return backend.Line{}, err
	}
	l, err := s.lineAsKept(ctx, line, backend.Session.Line)
	if err != nil {
		return backend.Line{}, err
	}
	return l.shown(), nil
}

// Head returns the line with its first member alone; see [backend.Session].
func (s *session) Head(ctx context.Context, line string) (_ backend.Line, err error) {
	defer s.told("head", line, &err)
	if err := backend.CheckName(line); err != nil {
		return backend.Line{}, err
	}
	l, err := s.lineAsKept(ctx, line, backend.Session.Head)
	if err == nil && l.gated { // the first member is the one behind the gate
		l, err = s.lineAsKept(ctx, line, backend.Session.Line)
	}
	if err != nil {
		return backend.Line{}, err
	}
	head := l.shown()
	head.Members = head.Members[:min(1, len(head.Members))]
	return head, nil
}

// A keptLine is a line as the coordinator on that side keeps it.
type keptLine struct {
	backend.Line
	side  protocol.Side
	gated bool // the first member is the gate, which somebody is about to take away
}

// A reader reads a line, or the head of it.
type reader func(part backend.Session, ctx context.Context, line string) (backend.Line, error)

// lineAsKept returns the line of the coordinator where the election is, unchanged.
func (s *session) lineAsKept(ctx context.Context, line string, read reader) (keptLine, error) {
	l, err := s.lineOf(ctx, line, read)
	if err == nil && l.side == protocol.To && l.Header.Sealed != "" { // the election has moved on, perhaps back
		s.setMoved(line, false)
		l, err = s.lineOf(ctx, line, read)
	}
	return l, err
}

// shown returns the line as callers know it. It leaves l as it is.
func (l keptLine) shown() backend.Line {
	out := l.Line
	if l.gated {
		out.Members = out.Members[1:]
	}
	out.Members = slices.Clone(out.Members)
	for i, m := range out.Members {
		out.Members[i] = tag(l.side, m)
	}
	out.Version = tagVersion(l.side, out.Version)
	return out
}

// lineOf returns the line of the coordinator where the election is, as far as is known.
func (s *session) lineOf(ctx context.Context, line string, read reader) (keptLine, error) {
	sd, err := s.sideOf(ctx, line)
	if err != nil {
		return keptLine{}, err
	}
	part, err := s.use(sd)
	if err != nil {
		return keptLine{}, err
	}
	l, err := read(part, ctx, line)
	if err != nil {
		return keptLine{}, err
	}
	noted, err := header.LineOf(l)
	_, stands := protocol.Gate(noted)
	return keptLine{l, sd, stands && sd == protocol.To && protocol.Gated(noted.Header)}, err
}

// WatchLine blocks until other members stand in the line than in after; see
// [backend.Session].
func (s *session) WatchLine(ctx context.Context, line string, after backend.Line) (l backend.Line, err error) {
	defer s.told("watch line", line, &err)
	if err := backend.CheckName(line); err != nil {
		return backend.Line{}, err
	}
	for {
		whole, err := s.lineAsKept(ctx, line, backend.Session.Line)
		if err != nil {
			return backend.Line{}, err
		}
		if l := whole.shown(); !kit.SameMembers(l, after) {
			return l, nil
		}
		part, err := s.use(whole.side)
		if err != nil {
			return backend.Line{}, err
		}
		// Perhaps only the gate has changed, which is not shown.
		if _, err := part.WatchLine(ctx, line, whole.Line); err != nil {
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

// LineOn reads a line on one coordinator.
func LineOn(ctx context.Context, part backend.Session, line string) (header.Line, error) {
	l, err := part.Line(ctx, line)
	if err != nil {
		return header.Line{}, err
	}
	return header.LineOf(l)
}
