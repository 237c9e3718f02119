package broken

import (
	"context"
	"errors"

	"github.com/succession-dev/succession/backend"
)

var folderFlaws = []Flaw{
	{
		Name:    "litter",
		Breaks:  "L7: it keeps a record of its own in the election's folder",
		Must:    "L7.folder",
		May:     "L1.cancelled L1.cancelled-lost G1.restart G6.cancelled G6.first",
		session: func(_ *Backend, s backend.Session) backend.Session { return &litter{s} },
	},
	{
		Name:    "forgiving",
		Breaks:  "L7: a header that is damaged is taken for none",
		Must:    "L7.damaged",
		session: func(_ *Backend, s backend.Session) backend.Session { return &forgiving{s} },
	},
}

type litter struct{ backend.Session }

func (s *litter) Join(ctx context.Context, line, value string) (backend.Member, error) {
	m, err := s.Session.Join(ctx, line, value)
	if err == nil {
		_, err = s.Session.Put(ctx, line+"/owner", []byte(m.Key), nil)
	}
	return m, err
}

type forgiving struct{ backend.Session }

func (s *forgiving) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.Session.Ahead(ctx, m)
	if errors.Is(err, backend.ErrHeader) {
		return backend.Place{First: true, Token: m.Position}, nil
	}
	return p, err
}
