package record

import (
	"context"
	"errors"

	"github.com/succession-dev/succession/backend"
)

// List returns the records directly below the name, such as config/limits below config, by their full names, as they are now: each
// as [Value.Get] shows it. They need not have been so at one moment. List blocks for about a round trip, or two
// where Refresh of a [backend.Session] takes one; on ZooKeeper it takes a request for each record. Nobody is told of a change:
// call List from time to time, or follow one record that has the list.
//
// If the codec refuses records, List returns the others, with an [ErrDecode] that names those. So give the records a folder of
// their own: whatever else is stored there is listed too, such as the header of an election.
func List[T any](ctx context.Context, b backend.Backend, name string, codec Codec[T]) (map[string]Entry[T], error) {
	s, err := b.Session(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.Refresh(ctx); err != nil {
		return nil, err
	}
	records, err := s.ReadAll(ctx, name)
	if err != nil {
		return nil, err
	}
	var refused []error
	entries := make(map[string]Entry[T], len(records))
	for _, r := range records {
		e, err := New(b, r.Name, codec).decode(r)
		if err != nil {
			refused = append(refused, err)
			continue
		}
		entries[r.Name] = e
	}
	return entries, errors.Join(refused...)
}
