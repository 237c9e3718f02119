package record

import (
	"context"
	"iter"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/internal/again"
)

// Follow yields the record at once, and again at each change. After a deletion it yields an entry
// that does not exist. A slow consumer may miss states, but never the newest one. Each step blocks
// until there is a change.
//
// Follow never goes back to an earlier state. If the coordinator cannot be reached, it waits in
// silence, so what it yielded last may be out of date then.
//
// It yields [ErrDecode], with the version, for a state that the codec refuses, and goes on: the
// next one may be right again. Any other error is the last that it yields: the cause of ctx, or
// an error that does not pass by itself.
func (v *Value[T]) Follow(ctx context.Context) iter.Seq2[Entry[T], error] {
	return func(yield func(Entry[T], error) bool) {
		var last backend.Version // 0 is no record's version
		newest := backend.Absent // the largest version that was seen, also of a record that was deleted since
		var onward again.Onward
		j := backoff.JitterOf(ctx)
		err := again.Until(ctx, again.Passing, func() (enough bool, err error) {
			s, err := v.b.Session(ctx)
			if err != nil {
				return false, err
			}
			r, err := v.look(ctx, s, last, j)
			if err != nil || r.Version == 0 { // there was no change for a session time
				return false, err
			}
			if ok, err := onward.Shows(ctx, s, r.Version <= newest); !ok {
				return false, err
			}
			last, newest = r.Version, max(newest, r.Version)
			e, err := v.decode(r)
			return !yield(e, err), nil
		})
		if err != nil {
			yield(Entry[T]{}, err)
		}
	}
}

// look waits for about a session time for a state with another version than last. It returns the
// zero Record if there is none.
func (v *Value[T]) look(ctx context.Context, s backend.Session, last backend.Version, j backoff.Jitter) (r backend.Record, err error) {
	err = again.ForAWhile(ctx, s, j, func(ctx context.Context) error {
		got, err := s.Watch(ctx, v.name, last)
		if err == nil {
			r = got
		}
		return err
	})
	return r, err
}
