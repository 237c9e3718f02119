package record

import (
	"context"
	"errors"
	"sync"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/internal/header"
)

// owned is what a Value knows about whether a line owns its record.
type owned struct {
	mu    sync.Mutex
	free  bool            // no line owns the name
	known backend.Version // a version in which the record was seen not to be a header; 0 if there is none
}

// change calls write with the version at, and makes sure that the record is not the header of an
// election. If at is 0, the record may have any version: change then reads it, and lets write
// replace just that version; if somebody else writes in between, change tries again. guarded says
// that write belongs to a [Guard].
func (v *Value[T]) change(ctx context.Context, at backend.Version, guarded bool, write func(context.Context, backend.Session, backend.Version) (backend.Version, error)) (backend.Version, error) {
	s, err := v.b.Session(ctx)
	if err != nil {
		return 0, err
	}
	known, err := v.free(ctx, s)
	if err != nil {
		return 0, err
	}
	wait := backoff.New(ctx)
	for {
		look := known == 0 || at != 0 && at != backend.Absent && at != known
		if look {
			r, err := s.Get(ctx, v.name)
			if err != nil {
				return 0, err
			}
			if header.Is(r.Value) {
				return 0, header.OfLine(v.name, v.name)
			}
			known = r.Version
		}
		from := at
		if from == 0 {
			from = known
		}
		now, err := write(ctx, s, from)
		if guarded && at == 0 && look && errors.Is(err, backend.ErrVersion) {
			// Either somebody else has written, perhaps an election its header, or the guard knows the record by other
			// versions than s does: a term that moves between two coordinators knows versions of both.
			r, lerr := fresh(ctx, s, v.name)
			switch {
			case lerr != nil:
				err = lerr
			case r.Version == known:
				now, err = write(ctx, s, 0)
			}
		}
		if err == nil {
			v.owned.mu.Lock()
			defer v.owned.mu.Unlock()
			if v.owned.known = now; now == backend.Absent { // after a deletion no version is known
				v.owned.known = 0
			}
			return now, nil
		}
		if at != 0 || !errors.Is(err, backend.ErrVersion) || ctx.Err() != nil {
			return 0, err
		}
		known = 0
		if !look { // the version was known before
			continue
		}
		if err := wait.After(ctx, err); err != nil {
			return 0, err
		}
	}
}

// fresh returns the record as it is now.
func fresh(ctx context.Context, s backend.Session, name string) (backend.Record, error) {
	if err := s.Refresh(ctx); err != nil {
		return backend.Record{}, err
	}
	return s.Get(ctx, name)
}

// free fails if a line owns the name. It returns the version that the record was last seen to have, or 0.
func (v *Value[T]) free(ctx context.Context, s backend.Session) (known backend.Version, err error) {
	v.owned.mu.Lock()
	free, known := v.owned.free, v.owned.known
	v.owned.mu.Unlock()
	if free {
		return known, nil
	}
	if err := header.CheckFree(ctx, s, v.name); err != nil {
		return 0, err
	}
	v.owned.mu.Lock()
	defer v.owned.mu.Unlock()
	v.owned.free = true
	return v.owned.known, nil
}
