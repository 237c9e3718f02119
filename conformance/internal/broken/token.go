package broken

import (
	"context"
	"strconv"
	"strings"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/header"
)

var tokenFlaws = []Flaw{
	{
		Name:    "key token",
		Breaks:  "G2: the token is the number in the key, which begins again with the path",
		Must:    "L7.fence G2.drop G2.fence-drop Fault.dropped",
		May:     "L7.fence-cut G10",
		session: func(_ *Backend, s backend.Session) backend.Session { return &keyToken{s} },
	},
	{
		Name:    "mortal fence",
		Breaks:  "G2: the record that keeps a raised fence goes with the election",
		Must:    "G2.fence-drop",
		session: func(_ *Backend, s backend.Session) backend.Session { return &mortalFence{s} },
	},
}

type keyToken struct{ backend.Session }

func (s *keyToken) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.Session.Ahead(ctx, m)
	if err == nil && p.First {
		n, _ := strconv.ParseUint(m.Key[strings.LastIndexByte(m.Key, '_')+1:], 10, 64)
		p.Token += n + 1 - m.Position
	}
	return p, err
}

type mortalFence struct{ backend.Session }

func (s *mortalFence) Get(ctx context.Context, name string) (backend.Record, error) {
	r, err := s.Session.Get(ctx, name)
	if election, ok := strings.CutSuffix(name, header.Suffix); ok && err == nil {
		var of backend.Record
		if of, err = s.Session.Get(ctx, election); err == nil && of.Version == backend.Absent {
			r = backend.Record{Name: name, Version: backend.Absent}
		}
	}
	return r, err
}
