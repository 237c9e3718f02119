package local

import (
	"context"
	"errors"
	"io/fs"

	"github.com/succession-dev/succession/backend"
)

// Lines returns the names of the lines in which somebody stands; see [backend.Session]. It tests
// the lock of each member.
func (s *session) Lines(ctx context.Context) (map[string]int, error) {
	lines := make(map[string]int)
	return lines, s.dir.walk(func(name string) error {
		st, err := s.lineOf(ctx, name)
		if err == nil && len(st.members) > 0 {
			lines[name] = len(st.members)
		}
		return err
	})
}

// Survey returns what is at each name; see [backend.Session]. It tests the lock of each member.
func (s *session) Survey(ctx context.Context) (map[string]backend.Standing, error) {
	all := make(map[string]backend.Standing)
	return all, s.dir.walk(func(name string) error {
		st, err := s.lineOf(ctx, name)
		if err != nil {
			return err
		}
		at := backend.Standing{Stand: len(st.members), Record: backend.Record{Name: name, Value: st.record, Version: st.version}}
		if at.Stand > 0 {
			at.First = st.members[0]
		}
		if at.Stand > 0 || at.Record.Version != backend.Absent {
			all[name] = at
		}
		return nil
	})
}

// walk calls fn for each name that has a state. A folder without one belongs to the application, and may have elections
// below it all the same.
func (f *folder) walk(fn func(name string) error) error {
	d, err := f.dir("")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.close()
	return d.walk(fn)
}

func (d dir) walk(fn func(name string) error) error {
	steps, err := d.folders()
	for _, step := range steps {
		if err == nil {
			err = d.walkInto(step, fn)
		}
	}
	return err
}

// walkInto calls fn for the name of the folder step, and for those below it. That folder may be one that no session would enter: if it is on
// the way to a name that has a state, fn says why.
func (d dir) walkInto(step string, fn func(name string) error) error {
	into, err := d.pass(step)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer into.close()
	has, err := into.has(stateName, lineName)
	if has {
		err = fn(into.at)
	}
	if err != nil {
		return err
	}
	return into.walk(fn)
}
