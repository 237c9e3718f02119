package broken

import (
	"context"
	"errors"

	"github.com/succession-dev/succession/backend"
)

var leaveFlaws = []Flaw{
	{
		Name:    "leave by key",
		Breaks:  "L4: Leave takes out whoever stands under the key",
		Must:    "L4.same-key",
		session: func(_ *Backend, s backend.Session) backend.Session { return &leaveByKey{s} },
	},
}

type leaveByKey struct{ backend.Session }

func (s *leaveByKey) Leave(ctx context.Context, m backend.Member) error {
	line, err := s.Session.Line(ctx, m.Line)
	if err != nil && !errors.Is(err, backend.ErrHeader) {
		return err
	}
	for _, o := range line.Members {
		if o.Key == m.Key {
			m = o
		}
	}
	return s.Session.Leave(ctx, m)
}
