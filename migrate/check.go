package migrate

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/again"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/internal/naming"
	"github.com/succession-dev/succession/migrate/internal/composite"
	"github.com/succession-dev/succession/migrate/internal/protocol"
)

// Check says whether a migration of the election can be begun from here. Both coordinators must be
// reachable, must not be one under two addresses, must have a version that the driver supports, and
// must give this process the rights that a migration needs. On each it writes, reads and deletes a
// record, and holds an election of one, under the election's name with ".migrate-probe" at the end.
// The error names every coordinator and what is missing there. Check blocks for about a dozen round
// trips. If it is killed, the next Check removes what is left.
func (b *Backend) Check(ctx context.Context, election string) error {
	on, errs := b.sessions(ctx, election)
	var same error
	if errs == [2]error{} {
		if same = b.distinct(ctx, election, on); errors.Is(same, ErrRefused) {
			return composite.Wrap("check", election, same)
		}
	}
	composite.Both(func(sd protocol.Side) {
		if errs[sd] == nil {
			errs[sd] = check(ctx, on[sd], naming.Beside(election, naming.Probe))
		}
	})
	for sd, address := range []string{b.route.From, b.route.To} {
		if errs[sd] != nil {
			errs[sd] = fmt.Errorf("%s: %w", address, errs[sd])
		}
	}
	// It is more useful to know what a coordinator lacks than that the two could not be told apart.
	return composite.Wrap("check", election, cmp.Or(errors.Join(errs[:]...), same))
}

// distinct fails if the two addresses mean the same place on one coordinator: then a member that
// joins the line on From is seen in the line on To. URLs do not show that, because a coordinator
// has many names. distinct leaves nothing behind, also if it ends in the middle, because its
// members go with their sessions.
func (b *Backend) distinct(ctx context.Context, election string, on [2]backend.Session) error {
	name, mark := naming.Beside(election, naming.Probe), "probe "+rand.Text()
	var both [2]backend.Joined
	var err error
	// The join on To comes last, so the line there is as fresh as the line on From.
	for sd, s := range on {
		if both[sd], err = s.Join(ctx, name, mark+[2]string{" from", " to"}[sd], ""); err != nil {
			err = fmt.Errorf("%s: could not stand in line: %w", [2]string{b.route.From, b.route.To}[sd], err)
			break
		}
	}
	if err == nil {
		var l backend.Line
		l, err = on[protocol.To].Line(ctx, name)
		seen := func(m backend.Member) bool { return m.Value == both[protocol.From].Value }
		if err == nil && slices.ContainsFunc(l.Members, seen) {
			err = fmt.Errorf("%w: %s and %s are one coordinator: who stands in line on the one is seen on the other", ErrRefused, b.route.From, b.route.To)
		}
	}
	for sd, m := range both {
		if m.Key == "" {
			continue
		}
		lerr := on[sd].Leave(ctx, m.Member)
		if lerr == nil { // an empty line is removed, too
			lerr = on[sd].Delete(ctx, name, nil)
		}
		err = errors.Join(err, lerr)
	}
	return err
}

// check is Check of one coordinator. Another one's Check may be under way there.
func check(ctx context.Context, s backend.Session, name string) error {
	another := func(err error) bool { return errors.Is(err, backend.ErrVersion) && !errors.Is(err, backend.ErrDenied) }
	return again.Try(ctx, another, func() error { return errors.Join(probe(ctx, s, name), unprobe(ctx, s, name)) })
}

// probe does once each thing that a migration does. Its error says which of them failed.
func probe(ctx context.Context, s backend.Session, name string) error {
	failed := func(what string, err error) error { return fmt.Errorf("could not %s: %w", what, err) }
	h := header.Header{Migration: header.Migration{Step: "probe"}}
	if _, err := s.Put(ctx, name, h.Encode(), nil); err != nil {
		return failed("write a record", err)
	}
	r, err := s.Get(ctx, name)
	if err != nil {
		return failed("read a record", err)
	}
	if r.Version == backend.Absent || !bytes.Equal(r.Value, h.Encode()) {
		return fmt.Errorf("%w: the record %s is not what was written; does somebody else check?", backend.ErrVersion, name)
	}
	m, err := s.Join(ctx, name, "probe", "")
	if err != nil {
		return failed("stand in line", err)
	}
	if _, err = s.Ahead(ctx, m.Member); err != nil {
		err = failed("read the line", err)
	} else if err = s.Pin(ctx, m.Member, h.Stored(), r.Version); err != nil {
		err = failed("pin a member", err)
	}
	if lerr := s.Leave(ctx, m.Member); lerr != nil {
		err = errors.Join(err, failed("leave the line", lerr))
	}
	return err
}

// unprobe removes what this probe, or an earlier one, has left.
func unprobe(ctx context.Context, s backend.Session, name string) error {
	l, err := s.Line(ctx, name)
	if err != nil {
		return fmt.Errorf("could not read the line: %w", err)
	}
	for _, m := range l.Members {
		if m.Pinned {
			err = errors.Join(err, s.Leave(ctx, m))
		}
	}
	if derr := s.Delete(ctx, name, nil); derr != nil {
		err = errors.Join(err, fmt.Errorf("could not delete a record: %w", derr))
	}
	return err
}
