package memory

import (
	"context"
	"slices"

	"github.com/succession-dev/succession/backend"
)

// Get returns the record; see [backend.Session].
func (s *session) Get(ctx context.Context, name string) (backend.Record, error) {
	return ask[backend.Record](ctx, s, OpGet, name, nil, func() *call {
		return s.send(OpGet, lostAgain, func(*lease) (any, error) {
			return s.b.view().get(name), nil
		})
	})
}

// Put writes the record if the condition holds; see [backend.Session].
func (s *session) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	value, cond = slices.Clone(value), cloneIf(cond)
	return ask[backend.Version](ctx, s, OpPut, name, backend.CheckRecord(value), func() *call {
		return s.send(OpPut, lostUnknown, func(*lease) (any, error) {
			return s.b.c.store.put(name, value, cond)
		})
	})
}

// Delete removes the record if the condition holds; see [backend.Session].
func (s *session) Delete(ctx context.Context, name string, cond *backend.If) error {
	cond = cloneIf(cond)
	_, err := ask[any](ctx, s, OpDelete, name, nil, func() *call {
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
// [backend.Session].
func (s *session) List(ctx context.Context, dir string) ([]string, error) {
	return ask[[]string](ctx, s, OpList, dir, nil, func() *call {
		return s.send(OpList, lostAgain, func(*lease) (any, error) {
			return s.b.view().list(dir), nil
		})
	})
}

// ReadAll returns the records directly under dir, as they are at one instant; see [backend.Session].
func (s *session) ReadAll(ctx context.Context, dir string) ([]backend.Record, error) {
	return ask[[]backend.Record](ctx, s, OpReadAll, dir, nil, func() *call {
		return s.send(OpReadAll, lostAgain, func(*lease) (any, error) {
			return s.b.view().readAll(dir), nil
		})
	})
}

// Watch blocks until the record has another version than after; see
// [backend.Session].
func (s *session) Watch(ctx context.Context, name string, after backend.Version) (backend.Record, error) {
	on := poll{topic: topic{event: eventRecord, name: name}, after: after}
	r, err := ask[backend.Record](ctx, s, OpWatch, name, nil, func() *call {
		return s.poll(OpWatch, on, func() (any, error) { return s.b.c.store.watch(name, after) })
	})
	r.Value = slices.Clone(r.Value) // others may have waited for the same
	return r, err
}
