package memory

import (
	"context"
	"slices"

	"github.com/succession-dev/succession/backend"
)

// Get returns the record; see [backend.Records].
func (s *session) Get(ctx context.Context, name string) (backend.Record, error) {
	if err := backend.CheckName(name); err != nil {
		return backend.Record{}, driver.Wrap(string(OpGet), name, err)
	}
	return ask[backend.Record](ctx, s, OpGet, name, func() *call {
		return s.send(OpGet, lostAgain, func(*lease) (any, error) {
			return s.b.c.store.get(name), nil
		})
	})
}

// Put writes the record if the condition holds; see [backend.Records].
func (s *session) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	err := backend.CheckName(name)
	if err == nil {
		err = backend.CheckRecord(value)
	}
	if err != nil {
		return 0, driver.Wrap(string(OpPut), name, err)
	}
	value, cond = slices.Clone(value), cloneIf(cond)
	return ask[backend.Version](ctx, s, OpPut, name, func() *call {
		return s.send(OpPut, lostUnknown, func(*lease) (any, error) {
			return s.b.c.store.put(name, value, cond)
		})
	})
}

// Delete removes the record if the condition holds; see [backend.Records].
func (s *session) Delete(ctx context.Context, name string, cond *backend.If) error {
	if err := backend.CheckName(name); err != nil {
		return driver.Wrap(string(OpDelete), name, err)
	}
	cond = cloneIf(cond)
	_, err := ask[any](ctx, s, OpDelete, name, func() *call {
		return s.send(OpDelete, lostUnknown, func(*lease) (any, error) {
			return nil, s.b.c.store.del(name, cond)
		})
	})
	return err
}

// cloneIf copies a condition: once the call has returned, the caller may change it, and the
// request may still be on its way.
func cloneIf(cond *backend.If) *backend.If {
	if cond == nil {
		return nil
	}
	c := *cond
	return &c
}

// List returns the full names of the records directly under dir, sorted; see
// [backend.Records].
func (s *session) List(ctx context.Context, dir string) ([]string, error) {
	if err := backend.CheckName(dir); err != nil {
		return nil, driver.Wrap(string(OpList), dir, err)
	}
	return ask[[]string](ctx, s, OpList, dir, func() *call {
		return s.send(OpList, lostAgain, func(*lease) (any, error) {
			return s.b.c.store.list(dir), nil
		})
	})
}

// Watch blocks until the record has another version than after; see
// [backend.Records].
func (s *session) Watch(ctx context.Context, name string, after backend.Version) (backend.Record, error) {
	if err := backend.CheckName(name); err != nil {
		return backend.Record{}, driver.Wrap(string(OpWatch), name, err)
	}
	on := poll{topic{event: eventRecord, name: name}, after}
	r, err := ask[backend.Record](ctx, s, OpWatch, name, func() *call {
		return s.poll(OpWatch, on, func() (any, error) { return s.b.c.store.watch(name, after) })
	})
	r.Value = slices.Clone(r.Value) // others may have waited for the same
	return r, err
}
