package example

import (
	"context"
	"slices"

	"github.com/succession-dev/succession/backend"
)

func (s *session) Get(ctx context.Context, name string) (backend.Record, error) {
	a, err := s.call(ctx, repeat, "get", name, request{Name: name})
	return backend.Record{Name: name, Value: a.Value, Version: backend.Version(a.Version)}, err
}

func (s *session) Watch(ctx context.Context, name string, after backend.Version) (backend.Record, error) {
	a, err := s.call(ctx, wait, "watch", name, request{Name: name, RecordVersion: int64(after)})
	return backend.Record{Name: name, Value: a.Value, Version: backend.Version(a.Version)}, err
}

func (s *session) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	if err := backend.CheckRecord(value); err != nil {
		return 0, driver.Wrap("put", name, err)
	}
	a, err := s.call(ctx, once, "put", name, write(name, value, cond))
	return backend.Version(a.Version), err
}

func (s *session) Delete(ctx context.Context, name string, cond *backend.If) error {
	_, err := s.call(ctx, once, "delete", name, write(name, nil, cond))
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
	a, err := s.call(ctx, repeat, "list", dir, request{Name: dir})
	slices.Sort(a.Names)
	return a.Names, err
}
