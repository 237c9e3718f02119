package broken

import (
	"context"
	"strings"

	"github.com/succession-dev/succession/backend"
)

var valueFlaws = []Flaw{
	{
		Name:    "trim",
		Breaks:  "L8: values are stored without surrounding space",
		Must:    "L8.intact",
		session: func(_ *Backend, s backend.Session) backend.Session { return &trim{s} },
	},
}

type trim struct{ backend.Session }

func (s *trim) Join(ctx context.Context, line, value string) (backend.Member, error) {
	return s.Session.Join(ctx, line, strings.TrimSpace(value))
}
