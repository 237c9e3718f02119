package page

import (
	"context"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/view"
)

// still returns b with these lines as they were read. So what an application's packages make of a
// line, such as the candidates of an election and the items of a queue, is made here too, and costs
// no request, but one for the readiness of candidates that can be not ready.
func still(b backend.Backend, lines map[string]backend.Line) backend.Backend {
	return view.Of(b, func(s backend.Session) backend.Session { return stillSession{s, lines} })
}

type stillSession struct {
	backend.Session
	lines map[string]backend.Line
}

// Refresh does nothing: what was read stays as it was read.
func (s stillSession) Refresh(context.Context) error { return nil }

func (s stillSession) Line(ctx context.Context, name string) (backend.Line, error) {
	if l, ok := s.lines[name]; ok {
		return l, nil
	}
	return s.Session.Line(ctx, name)
}
