package local

import (
	"context"
	"errors"
	"fmt"

	"github.com/succession-dev/succession/backend"
)

// Append adds an item at the end of the line. It syncs the file that lists it; see [backend.Session].
func (s *session) Append(ctx context.Context, line, value string) (backend.Member, error) {
	j, err := s.join(ctx, backend.Member{Line: line, Value: value, Pinned: true})
	return j.Member, err
}

// Remove removes the item m if by stands; see [backend.Session]. It holds the locks of both lines.
// If by goes meanwhile, the next one cannot lead yet: it needs the same lock to find that out.
func (s *session) Remove(ctx context.Context, m, by backend.Member) error {
	return s.write(ctx, func(context.Context, *hold) error {
		if err := s.dir.guard(by); err != nil {
			return err
		}
		pinned, err := s.dir.pinned(m)
		if err != nil {
			return err
		}
		if pinned {
			return s.unpin(m)
		}
		switch err := s.dir.guard(m); {
		case err == nil:
			return fmt.Errorf("%w: member %s is no item", backend.ErrDenied, m.Key)
		case errors.Is(err, backend.ErrNotMember):
			return s.dir.confirm(m.Line)
		default:
			return err
		}
	}, claim{m.Line, decide}, claim{by.Line, decide})
}
