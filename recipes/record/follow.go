package record

import (
	"context"
	"errors"
	"iter"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/internal/again"
)

// Follow yields the record as it is, at once, and then at each change; a deletion is an entry
// that does not exist. A slow consumer may miss states, but never the newest one. Each step
// blocks until there is a change.
//
// Follow never goes back to an earlier state. If the coordinator cannot be reached, it waits in
// silence, so what it yielded last may be out of date then.
//
// It yields [ErrDecode], with the version, for a state that the codec refuses, and goes on: the
// next one may be right again. Any other error is the last that it yields: the cause of ctx, or
// an error that does not pass by itself.
func (v *Value[T]) Follow(ctx context.Context) iter.Seq2[Entry[T], error] {
	return func(yield func(Entry[T], error) bool) {
		var last, doubted backend.Version // 0 is no record's version
		newest := backend.Absent
		wait := backoff.New(ctx)
		for {
			r, err := v.look(ctx, last, wait.Jitter)
			switch {
			case err == nil && r.Version == 0: // no change for a session time
				continue
			case err == nil && r.Version < newest && r.Version != doubted:
				// A server that lags behind may show the next session an earlier state, or
				// none. If the next look shows the same again, it is true: the record was
				// deleted.
				doubted, err = r.Version, errEarlier
			case err == nil:
				wait.Reset()
				last, newest, doubted = r.Version, max(newest, r.Version), 0
				if e, err := v.decode(r); !yield(e, err) {
					return
				}
				continue
			case ctx.Err() != nil:
				yield(Entry[T]{}, wait.Cause(ctx))
				return
			case !again.Passing(err):
				yield(Entry[T]{}, err)
				return
			}
			if err := wait.After(ctx, err); err != nil {
				yield(Entry[T]{}, err)
				return
			}
		}
	}
}

// errEarlier says why Follow looks again.
var errEarlier = errors.New("the coordinator shows an earlier state than before")

// look waits for about a session time for a state with another version than last. It returns the
// zero Record if there is none.
func (v *Value[T]) look(ctx context.Context, last backend.Version, j backoff.Jitter) (r backend.Record, err error) {
	s, err := v.b.Session(ctx)
	if err != nil {
		return r, err
	}
	err = again.ForAWhile(ctx, s, j, func(ctx context.Context) error {
		got, err := s.Watch(ctx, v.name, last)
		if err == nil {
			r = got
		}
		return err
	})
	return r, err
}
