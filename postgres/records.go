package postgres

import (
	"context"

	"github.com/succession-dev/succession/backend"
)

// Get returns the record; see [backend.Session].
func (s *session) Get(ctx context.Context, name string) (backend.Record, error) {
	return s.get(ctx, name, s.repeat)
}

func (s *session) get(ctx context.Context, name string, send func(context.Context, string, ...any) (answer, error)) (backend.Record, error) {
	a, err := send(ctx, "get", name)
	if err != nil {
		return backend.Record{}, err
	}
	r := a.first()
	record := backend.Record{Name: name, Value: r.bytes(), Version: r.version()}
	s.b.saw(int64(record.Version))
	return record, r.err()
}

// Watch blocks until the record has another version than after; see [backend.Session].
func (s *session) Watch(ctx context.Context, name string, after backend.Version) (r backend.Record, err error) {
	if after == backend.Any {
		return s.Get(ctx, name)
	}
	err = s.watch(ctx, []string{recordChannel(name)}, nil, func() (bool, error) {
		r, err = s.get(ctx, name, s.look)
		return err == nil && r.Version != after, err
	})
	return r, err
}

// Put writes the record if the condition holds; see [backend.Session].
func (s *session) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	if value == nil {
		value = []byte{}
	}
	return s.write(ctx, name, value, cond)
}

// Delete removes the record if the condition holds; see [backend.Session].
func (s *session) Delete(ctx context.Context, name string, cond *backend.If) error {
	_, err := s.write(ctx, name, nil, cond)
	return err
}

// write writes a record under a condition, or deletes it if value is nil.
func (s *session) write(ctx context.Context, name string, value any, cond *backend.If) (backend.Version, error) {
	var version backend.Version
	var line, position any
	if cond != nil {
		version = cond.Version
		if cond.Member != (backend.Member{}) {
			line, position = cond.Member.Line, cond.Member.Position
		}
	}
	a, err := s.once(ctx, "put", name, value, version, line, position)
	if err != nil {
		return 0, err
	}
	r := a.first()
	written := r.version()
	s.b.saw(int64(written))
	return written, r.err()
}

// List returns the names of the records directly below dir; see [backend.Session].
func (s *session) List(ctx context.Context, dir string) ([]string, error) {
	records, err := s.list(ctx, dir, false)
	var names []string
	for _, r := range records {
		names = append(names, r.Name)
	}
	return names, err
}

// ReadAll returns the records directly below dir; see [backend.Session].
func (s *session) ReadAll(ctx context.Context, dir string) ([]backend.Record, error) {
	return s.list(ctx, dir, true)
}

func (s *session) list(ctx context.Context, dir string, values bool) (records []backend.Record, err error) {
	a, err := s.repeat(ctx, "list", dir, values)
	if err != nil {
		return nil, err
	}
	for i := range a.rows[1:] {
		r := &a.rows[i+1]
		r.text()
		record := backend.Record{Name: r.text(), Value: r.bytes(), Version: r.version()}
		if err := r.err(); err != nil {
			return nil, err
		}
		records = append(records, record)
	}
	return records, nil
}
