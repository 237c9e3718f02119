package migrate

import (
	"context"
	"errors"

	"github.com/succession-dev/succession/backend"
)

// Line returns the line of the coordinator where the election is; see
// [backend.Session]. Keys of To begin with "to:".
func (s *session) Line(ctx context.Context, line string) (backend.Line, error) {
	l, err := s.line(ctx, line)
	return l, s.told("line", line, err)
}

func (s *session) line(ctx context.Context, line string) (backend.Line, error) {
	if err := backend.CheckName(line); err != nil {
		return backend.Line{}, err
	}
	l, sd, err := s.lineOf(ctx, line)
	if err == nil && sd == sideTo && l.Header.Sealed != "" { // it has moved on, perhaps back
		s.forgetMoved(line)
		l, sd, err = s.lineOf(ctx, line)
	}
	if err != nil {
		return backend.Line{}, err
	}
	if _, ok := gate(l); ok && sd == sideTo && gated(l.Header) {
		l.Members = l.Members[1:] // it is about to be taken away
	}
	for i, m := range l.Members {
		l.Members[i] = sd.tag(m)
	}
	l.Version = sd.version(l.Version)
	return l, nil
}

// lineOf returns the line of the coordinator where the election is, as far as is known.
func (s *session) lineOf(ctx context.Context, line string) (backend.Line, side, error) {
	sd, err := s.sideOf(ctx, line)
	if err != nil {
		return backend.Line{}, sd, err
	}
	half, err := s.half(sd)
	if err != nil {
		return backend.Line{}, sd, err
	}
	l, err := half.Line(ctx, line)
	return l, sd, err
}

// Joined blocks until somebody stands in the line; see [backend.Session].
func (s *session) Joined(ctx context.Context, line string) error {
	return s.told("joined", line, s.joined(ctx, line))
}

func (s *session) joined(ctx context.Context, line string) error {
	if err := backend.CheckName(line); err != nil {
		return err
	}
	sd, err := s.sideOf(ctx, line)
	if err != nil {
		return err
	}
	half, err := s.half(sd)
	if err != nil {
		return err
	}
	for {
		if err := half.Joined(ctx, line); err != nil || sd == sideFrom {
			return err
		}
		l, err := half.Line(ctx, line)
		if err != nil {
			return err
		}
		g, stands := gate(l)
		if !stands || !gated(l.Header) || len(l.Members) > 1 {
			return nil
		}
		// The gate alone is nobody. Who takes it away may be long in coming.
		if err := half.Gone(ctx, g); err != nil {
			return err
		}
	}
}

// sideOf says where those look who do not stand in line: To where the election has
// moved, and From otherwise, also where no migration has begun.
func (s *session) sideOf(ctx context.Context, line string) (side, error) {
	if s.hasMoved(line) {
		return sideTo, nil
	}
	h, errs := s.headers(ctx, line)
	if errs[sideTo] != nil && errs[sideFrom] != nil {
		return sideFrom, errs[sideTo]
	}
	r, err := s.b.rule(h[sideFrom], h[sideTo])
	if err == nil && !r.both && r.alone == sideTo && (errs[sideFrom] == nil || errs[sideTo] == nil) {
		s.setMoved(line)
		return sideTo, nil
	}
	if errs[sideFrom] != nil && !errors.Is(errs[sideFrom], backend.ErrHeader) {
		if _, err := s.half(sideFrom); err != nil { // it ends, so that the next one tries again
			return sideFrom, err
		}
		return sideFrom, errs[sideFrom]
	}
	return sideFrom, nil
}
