package elect

import (
	"context"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/header"
)

// RaiseFence makes every later token of this election larger than floor. An operator
// needs it after the coordinator was rebuilt or restored, because tokens then fall. It
// never makes tokens smaller. A leader that was elected before keeps its token.
//
// The fence is kept when the election is deleted: it also stands in a record named like
// the election with ".fence" at the end. RaiseFence blocks for about four round trips.
// Its error matches [errors.ErrUnsupported] if the backend has no records, and [backend.ErrInvalid] if floor
// is larger than [backend.MaxFence].
func (e *Election) RaiseFence(ctx context.Context, floor uint64) error {
	s, err := e.session(ctx)
	if err != nil {
		return err
	}
	return header.Raise(ctx, s, e.name, backend.Member{}, floor)
}
