package migrate

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/along"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/internal/naming"
	"github.com/succession-dev/succession/migrate/internal/composite"
	"github.com/succession-dev/succession/migrate/internal/protocol"
)

// Records that leaders with both coordinators have guarded move by themselves. Nobody can know
// whether other records go with the election: a record that only leaders of From alone have written
// looks like one that belongs to another program. So records whose names begin like the election's
// are named, and a person decides.

// beside returns the records on From whose names begin with the election's name and a hyphen or a
// dot, and those of the task whose line the election is, if they are not known to move. It leaves
// out those of another election with a longer name. If records cannot be listed, as at the top level
// or without the right, it finds only those of a task and E-position, the name that package elect
// proposes.
func (v *view) beside(ctx context.Context, election string, known along.Guarded) (names []string, err error) {
	from := v.on[protocol.From]
	all := append(naming.OfTask(election), election+naming.Positions)
	if dir := path.Dir(election); dir != "." {
		listed, err := from.List(ctx, dir)
		if err != nil && !errors.Is(err, backend.ErrDenied) && !errors.Is(err, errors.ErrUnsupported) {
			return nil, err
		}
		for _, name := range listed {
			if rest, begins := strings.CutPrefix(name, election); begins && rest != "" && (rest[0] == '-' || rest[0] == '.') {
				all = append(all, name)
			}
		}
	}
	slices.Sort(all)
	for _, name := range slices.Compact(all) {
		if known.Has(name) || backend.CheckName(name) != nil {
			continue
		}
		if _, _, kept := naming.Kept(name); kept {
			continue
		}
		r, err := from.Get(ctx, name)
		if err != nil {
			return nil, err
		}
		if r.Version == backend.Absent || header.Is(r.Value) {
			continue
		}
		others, err := v.others(ctx, election, name)
		if err != nil {
			return nil, err
		}
		if !others {
			names = append(names, name)
		}
	}
	return names, nil
}

// others reports whether the record stands beside another election, whose name begins like this one's.
func (v *view) others(ctx context.Context, election, name string) (bool, error) {
	if !strings.HasPrefix(name, election) { // it is that of a task
		return false, nil
	}
	for i := len(election) + 1; i < len(name); i++ {
		if name[i] != '-' && name[i] != '.' {
			continue
		}
		l, err := v.on[protocol.From].Head(ctx, name[:i])
		if err != nil || len(l.Members) > 0 || l.Header != (backend.Header{}) {
			return true, err
		}
	}
	return false, nil
}

// chosen fails if a record of [Options] Carry does not exist.
func (b *Backend) chosen(ctx context.Context, v view) error {
	for _, name := range b.carry {
		r, err := v.on[protocol.From].Get(ctx, name)
		if err == nil && r.Version == backend.Absent {
			err = fmt.Errorf("%w: on %s there is no record %s to carry over", ErrRefused, b.route.From, name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// adopt notes that the records of [Options] Carry go with the election.
func (b *Backend) adopt(ctx context.Context, election string, v view) error {
	if len(b.carry) == 0 {
		return nil
	}
	for _, name := range b.carry {
		if err := along.Claim(ctx, v.on[protocol.From], election, backend.Member{}, name); err != nil {
			return err
		}
	}
	_, err := along.Add(ctx, v.on[protocol.From], election, backend.Member{}, b.carry...)
	return err
}

// unclear fails while it is not known of some records whether they move. Once the election has moved,
// only records that are not on To either count.
func (b *Backend) unclear(ctx context.Context, election string, v view, moved bool) error {
	if b.leave {
		return nil
	}
	known, err := along.Read(ctx, v.on[protocol.From], election)
	if err != nil {
		return err
	}
	known.Records = append(known.Records, b.carry...) // not yet in the list if this is only planned
	slices.Sort(known.Records)
	names, err := v.beside(ctx, election, known)
	if err != nil {
		return err
	}
	if moved {
		left := names[:0]
		for _, name := range names {
			r, err := v.on[protocol.To].Get(ctx, name)
			if err != nil {
				return err
			}
			if r.Version == backend.Absent {
				left = append(left, name)
			}
		}
		names = left
	}
	if known.More {
		names = append(names, "and more records that its leaders have guarded than are noted")
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("%w: on %s these stand beside the election, and nobody knows whether they go with it: %s; say which are to be carried over, or that the others may stay", ErrRefused, b.route.From, strings.Join(names, ", "))
}

// carryLeft carries over the records that a cutover has left behind, and fails while any are left; see
// [composite.CarryLate].
func (b *Backend) carryLeft(ctx context.Context, election string, v view, chosen []string) error {
	if v.fromErr != nil {
		return fmt.Errorf("which records stand on %s cannot be seen: %w", b.route.From, v.fromErr)
	}
	err := b.chosen(ctx, v)
	if err == nil {
		err = b.adopt(ctx, election, v)
	}
	if err != nil {
		return err
	}
	left, err := composite.CarryLate(ctx, v.on[protocol.From], v.on[protocol.To], election, b.movedBy(v), chosen)
	if err != nil {
		return err
	}
	if len(left) > 0 && !b.leave {
		return fmt.Errorf("%w: these records could not be carried over to %s, and stay on %s: %w", ErrRefused, b.route.To, b.route.From, left)
	}
	return nil
}

// movedBy returns the ID of the migration that has moved the election to To.
func (b *Backend) movedBy(v view) string {
	if m := v.line[protocol.To].Header.Migration; m.Step == protocol.StepMoved {
		return m.ID
	}
	return v.line[protocol.From].Header.Migration.ID
}
