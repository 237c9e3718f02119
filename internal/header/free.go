package header

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/naming"
)

// CheckFree fails with [backend.ErrInvalid] if the record with that name belongs to a line: it is the header,
// or one that an election keeps beside it, or lies below it. A record below
// it could be taken for a member, behind which everybody would wait. CheckFree passes over a line
// that the caller may not read, because the rights for a record are enough to write it. CheckFree
// blocks for about a round trip for each part of the name, and one more if the coordinator may lag behind.
func CheckFree(ctx context.Context, s backend.Session, name string) error {
	if line, by, _ := naming.Kept(name); by == naming.Election { // an operator may have to delete what the others keep
		return fmt.Errorf("record: %w name %q: it belongs to the election, lock, queue or group %q, if there is one, which keeps a fence, a history or the like there; choose another name",
			backend.ErrInvalid, name, line)
	}
	if err := s.Refresh(ctx); err != nil {
		return err
	}
	for at := name; at != "."; at = path.Dir(at) {
		l, err := s.Head(ctx, at)
		if errors.Is(err, backend.ErrDenied) {
			continue
		}
		if err != nil {
			return err
		}
		if len(l.Members) > 0 || l.Header != (backend.Header{}) {
			return OfLine(name, at)
		}
	}
	return nil
}

// OfLine returns the error for a record whose name belongs to the line.
func OfLine(name, line string) error {
	if name == line {
		return fmt.Errorf("record: %w name %q: it is an election, a lock, a queue or a group, and its record keeps tokens growing; choose another name", backend.ErrInvalid, name)
	}
	return fmt.Errorf("record: %w name %q: %q is an election, a lock, a queue or a group, and a record below it could be taken for a member; choose another name", backend.ErrInvalid, name, line)
}
