package broken

import (
	"context"

	"github.com/succession-dev/succession/backend"
)

var guardFlaws = []Flaw{
	{
		Name:    "no guard",
		Breaks:  "G3: the member in the condition of a write is not looked at",
		Must:    "Records.guard G3.resigned G3.removed G3.dropped",
		session: func(_ *Backend, s backend.Session) backend.Session { return &noGuard{s} },
	},
}

type noGuard struct{ backend.Session }

func (s *noGuard) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	if cond != nil {
		cond = &backend.If{Version: cond.Version}
	}
	return s.Session.Put(ctx, name, value, cond)
}
