package broken

import (
	"context"

	"github.com/succession-dev/succession/backend"
)

var recordFlaws = []Flaw{
	{
		Name:    "read, then write",
		Breaks:  "Records: the version is compared before the write and not with it",
		Must:    "Records.one-wins Records.counter",
		session: func(_ *Backend, s backend.Session) backend.Session { return &readThenWrite{s} },
	},
	{
		Name:    "lossy watch",
		Breaks:  "Records: Watch that is called late waits for a change to come",
		Must:    "Records.watch",
		May:     "Records.watch-last",
		session: func(_ *Backend, s backend.Session) backend.Session { return &lossyWatch{s} },
	},
}

type readThenWrite struct{ backend.Session }

func (s *readThenWrite) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	if cond == nil || cond.Version == 0 {
		return s.Session.Put(ctx, name, value, cond)
	}
	r, err := s.Get(ctx, name)
	if err != nil {
		return 0, err
	}
	if r.Version != cond.Version {
		return 0, backend.ErrVersion
	}
	return s.Session.Put(ctx, name, value, &backend.If{Member: cond.Member})
}

type lossyWatch struct{ backend.Session }

func (s *lossyWatch) Watch(ctx context.Context, name string, after backend.Version) (backend.Record, error) {
	r, err := s.Get(ctx, name)
	if err != nil || after == 0 {
		return r, err
	}
	return s.Session.Watch(ctx, name, r.Version)
}
