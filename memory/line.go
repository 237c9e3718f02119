package memory

import (
	"context"

	"github.com/succession-dev/succession/backend"
)

// Line returns the whole line in order; see [backend.Session].
func (s *session) Line(ctx context.Context, line string) (backend.Line, error) {
	return ask[backend.Line](ctx, s, OpLine, line, nil, func() *call {
		return s.send(OpLine, lostAgain, func(*lease) (any, error) {
			return s.b.view().line(line)
		})
	})
}

// Lines returns the names of the lines in which somebody stands; see [backend.Session].
func (s *session) Lines(ctx context.Context) (map[string]int, error) {
	v, err := s.ask(ctx, func() *call {
		return s.send(OpLines, lostAgain, func(*lease) (any, error) {
			return s.b.view().standing(), nil
		})
	})
	if err != nil {
		return nil, driver.Wrap(string(OpLines), "", err)
	}
	return v.(map[string]int), nil
}

// Survey returns what is at each name; see [backend.Session].
func (s *session) Survey(ctx context.Context) (map[string]backend.Standing, error) {
	v, err := s.ask(ctx, func() *call {
		return s.send(OpSurvey, lostAgain, func(*lease) (any, error) {
			return s.b.view().survey(), nil
		})
	})
	if err != nil {
		return nil, driver.Wrap(string(OpSurvey), "", err)
	}
	return v.(map[string]backend.Standing), nil
}

// Head returns the line with its first member alone; see [backend.Session].
func (s *session) Head(ctx context.Context, line string) (backend.Line, error) {
	return ask[backend.Line](ctx, s, OpHead, line, nil, func() *call {
		return s.send(OpHead, lostAgain, func(*lease) (any, error) {
			return s.b.view().head(line)
		})
	})
}
