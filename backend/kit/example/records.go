package example

import (
	"context"
	"slices"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

func (s *session) Get(ctx context.Context, name string) (backend.Record, error) {
	a, err := s.do(ctx, repeat, "get", request{Name: name})
	return backend.Record{Name: name, Value: a.Value, Version: backend.Version(a.Version)}, err
}

func (s *session) Watch(ctx context.Context, name string, after backend.Version) (backend.Record, error) {
	a, err := s.do(ctx, wait, "watch", request{Name: name, RecordVersion: int64(after)})
	return backend.Record{Name: name, Value: a.Value, Version: backend.Version(a.Version)}, err
}

func (s *session) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	a, err := s.do(ctx, once, "put", write(name, value, cond))
	return backend.Version(a.Version), err
}

func (s *session) Delete(ctx context.Context, name string, cond *backend.If) error {
	_, err := s.do(ctx, once, "delete", write(name, nil, cond))
	return err
}

// write returns the request for a write under a condition.
func write(name string, value []byte, cond *backend.If) (q request) {
	if cond != nil {
		q = about(cond.Member)
		q.RecordVersion = int64(cond.Version)
	}
	q.Name, q.Value = name, value
	return q
}

func (s *session) List(ctx context.Context, dir string) ([]string, error) {
	a, err := s.do(ctx, repeat, "list", request{Name: dir})
	slices.Sort(a.Names)
	return a.Names, err
}

func (s *session) ReadAll(ctx context.Context, dir string) ([]backend.Record, error) {
	return kit.ReadEach(ctx, s, dir)
}
