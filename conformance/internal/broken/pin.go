package broken

import (
	"context"

	"github.com/succession-dev/succession/backend"
)

var pinFlaws = []Flaw{
	{
		Name:    "pin anyway",
		Breaks:  "Pin: the header is written whatever version it has",
		Must:    "Pin.version",
		session: func(_ *Backend, s backend.Session) backend.Session { return &pinAnyway{s} },
	},
}

type pinAnyway struct{ backend.Session }

func (s *pinAnyway) Pin(ctx context.Context, m backend.Member, h backend.Header, _ backend.Version) error {
	r, err := s.Get(ctx, m.Line)
	if err != nil {
		return err
	}
	return s.Session.Pin(ctx, m, h, r.Version)
}
