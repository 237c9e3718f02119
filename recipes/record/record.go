package record

import (
	"context"
	"errors"
	"fmt"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/again"
)

// ErrDecode says that there is a record, and that the codec refuses it.
var ErrDecode = errors.New("record cannot be decoded")

// A Value is a process's handle on one record. It is safe for concurrent use.
//
// A Value writes nothing that belongs to a line, such as that of an election or a lock E: the record E, whose
// header keeps tokens growing, what an election keeps beside it, such as E.fence, and what lies below
// E/, where it could be taken for a member. It then fails with [backend.ErrInvalid]. To find that out, the first
// write blocks for a few more round trips. A later write blocks for two more if somebody else has
// written meanwhile.
//
// What a recipe keeps in records of its own, such as E-owners of a group, is not looked for: docs/recipes.md has
// these names, so that you choose others.
type Value[T any] struct {
	b     backend.Backend
	name  string
	codec Codec[T]
	owned owned
}

// New returns a handle on the record with the given name on b. It does not block and does not
// talk to the coordinator. If the name is not allowed, every call fails with
// [backend.ErrInvalid]; where the backend has no records, with [errors.ErrUnsupported]. The
// caller still has to close b.
func New[T any](b backend.Backend, name string, codec Codec[T]) *Value[T] {
	return &Value[T]{b: b, name: name, codec: codec}
}

// Name returns the record's name.
func (v *Value[T]) Name() string { return v.name }

// An Entry is one state of a record.
type Entry[T any] struct {
	Value   T               // the zero value if there is no record
	Version backend.Version // [backend.Absent] if there is no record
}

// Exists reports whether there is a record. The zero Entry is none.
func (e Entry[T]) Exists() bool { return e.Version > 0 }

// Get returns the record as it is now. It shows every write that was answered before Get was
// called, or a later one. It blocks for about a round trip, or two where Refresh of a [backend.Session] takes
// one. It is no error that there is no record. If the codec refuses the record, Get fails with
// [ErrDecode], and returns the record's version with the error, so that the caller can replace it.
func (v *Value[T]) Get(ctx context.Context) (Entry[T], error) {
	s, err := v.b.Session(ctx)
	if err != nil {
		return Entry[T]{}, err
	}
	r, err := fresh(ctx, s, v.name)
	if err != nil {
		return Entry[T]{}, err
	}
	return v.decode(r)
}

// Set writes the record, whatever it was before, and returns its new version. It blocks for about
// a round trip, but see [Value]. It fails with [backend.ErrInvalid] if the encoded value is larger than
// [backend.MaxRecord]. If it fails with [backend.ErrUnavailable], or because ctx or the session has ended, the
// write may have happened: Get tells.
func (v *Value[T]) Set(ctx context.Context, value T) (backend.Version, error) {
	return v.write(ctx, backend.Any, value, false, v.unguarded)
}

// CompareAndSet is [Value.Set] on condition that the record still has the version at;
// [backend.Absent] means that there must be no record. Otherwise it fails with
// [backend.ErrVersion] and changes nothing.
func (v *Value[T]) CompareAndSet(ctx context.Context, at backend.Version, value T) (backend.Version, error) {
	if at == 0 {
		return 0, fmt.Errorf("record: %w version 0 of %s: no record has it; give the version of Get", backend.ErrInvalid, v.name)
	}
	return v.write(ctx, at, value, false, v.unguarded)
}

// A Guard is a term, or a lock that is held: what [elect.Term] and [lock.Held] have in common.
//
// [elect.Term]: https://pkg.go.dev/github.com/succession-dev/succession/elect#Term
// [lock.Held]: https://pkg.go.dev/github.com/succession-dev/succession/recipes/lock#Held
type Guard interface {
	Put(ctx context.Context, record string, value []byte, at backend.Version) (backend.Version, error)
}

// SetAs is [Value.Set] for a leader, or for the holder of a lock: the coordinator writes only if
// the leader's member still stands, in one atomic step. Otherwise SetAs fails with
// [backend.ErrNotMember] or [backend.ErrSessionEnded]. If the session has ended only meanwhile, the
// write may have happened. If at is not [backend.Any], the record must also still have that
// version. The record must be on the same coordinator as the election.
func (v *Value[T]) SetAs(ctx context.Context, g Guard, at backend.Version, value T) (backend.Version, error) {
	return v.write(ctx, at, value, true, func(ctx context.Context, _ backend.Session, b []byte, at backend.Version) (backend.Version, error) {
		return g.Put(ctx, v.name, b, at)
	})
}

// Update reads the record, calls change for the new value, and writes that on condition that nobody
// else has written meanwhile; otherwise it begins again. It returns what it has written. If change
// fails, Update changes nothing and returns that error. Update blocks as long as others are faster,
// or the coordinator cannot be reached, until ctx ends.
//
// change may be called several times, and with the zero value if there is no record. A write
// whose answer was lost may have happened: Update then finds a newer version, and calls change
// for that. So change must also be right for a value that it has already changed.
func (v *Value[T]) Update(ctx context.Context, change func(T) (T, error)) (Entry[T], error) {
	var e Entry[T]
	refused := false // change has failed
	err := again.Try(ctx, func(err error) bool { return !refused && again.Passing(err) }, func() (err error) {
		if e, err = v.Get(ctx); err != nil {
			return err
		}
		if e.Value, err = change(e.Value); err != nil {
			refused = true
			return err
		}
		e.Version, err = v.CompareAndSet(ctx, e.Version, e.Value)
		return err
	})
	if err != nil {
		return Entry[T]{}, err
	}
	return e, nil
}

// Delete deletes the record, if at is [backend.Any] or the record still has that version. Otherwise it fails
// with [backend.ErrVersion]. It is no error that there is no record, unless at names a version.
// It blocks for about a round trip.
func (v *Value[T]) Delete(ctx context.Context, at backend.Version) error {
	_, err := v.change(ctx, at, false, func(ctx context.Context, s backend.Session, at backend.Version) (backend.Version, error) {
		// Also where the record was seen to be absent: the server that was asked may lag behind.
		return backend.Absent, s.Delete(ctx, v.name, &backend.If{Version: at})
	})
	return err
}

// A put writes b if the record has the version at.
type put func(ctx context.Context, s backend.Session, b []byte, at backend.Version) (backend.Version, error)

func (v *Value[T]) unguarded(ctx context.Context, s backend.Session, b []byte, at backend.Version) (backend.Version, error) {
	return s.Put(ctx, v.name, b, &backend.If{Version: at})
}

// write writes the value by put, if the record has the version at, or whatever it has if at is
// [backend.Any]. guarded says that put belongs to a [Guard].
func (v *Value[T]) write(ctx context.Context, at backend.Version, value T, guarded bool, put put) (backend.Version, error) {
	b, err := v.encode(value)
	if err != nil {
		return 0, err
	}
	return v.change(ctx, at, guarded, func(ctx context.Context, s backend.Session, at backend.Version) (backend.Version, error) {
		return put(ctx, s, b, at)
	})
}

func (v *Value[T]) encode(value T) ([]byte, error) {
	b, err := v.codec.Encode(value)
	if err != nil {
		return nil, fmt.Errorf("record: %w value for %s: %w", backend.ErrInvalid, v.name, err)
	}
	return b, nil
}

func (v *Value[T]) decode(r backend.Record) (Entry[T], error) {
	e := Entry[T]{Version: r.Version}
	if r.Version == backend.Absent {
		return e, nil
	}
	value, err := v.codec.Decode(r.Value)
	if err != nil {
		return e, fmt.Errorf("record: %s at version %d: %w: %w", v.name, r.Version, ErrDecode, err)
	}
	e.Value = value
	return e, nil
}
