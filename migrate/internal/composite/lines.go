package composite

import (
	"context"
	"errors"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/migrate/internal/protocol"
)

// Lines returns the lines of both coordinators, or of To alone while From cannot be reached; see
// [backend.Session]. For a line on both it returns the larger number: before the cutover all members
// on To, except the gate, have a member on From too.
func (s *session) Lines(ctx context.Context) (all map[string]int, err error) {
	defer s.told("lines", "", &err)
	if err := s.alive(); err != nil {
		return nil, err
	}
	var lines [2]map[string]int
	var errs [2]error
	Both(func(sd protocol.Side) {
		if part := s.part(sd); part == nil {
			errs[sd] = backend.ErrUnavailable
		} else {
			lines[sd], errs[sd] = part.Lines(ctx)
		}
	})
	if errors.Is(errs[protocol.From], backend.ErrUnavailable) {
		errs[protocol.From] = nil
	}
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	all = make(map[string]int)
	for _, side := range lines {
		for line, n := range side {
			all[line] = max(all[line], n)
		}
	}
	return all, nil
}
