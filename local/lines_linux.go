package local

import (
	"context"
	"path"

	"github.com/succession-dev/succession/backend"
)

// Lines returns the names of the lines in which somebody stands; see [backend.Session]. It tests
// the lock of each member.
func (s *session) Lines(ctx context.Context) (map[string]int, error) {
	lines := make(map[string]int)
	return lines, s.dir.walk("", func(name string) error {
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
	return all, s.dir.walk("", func(name string) error {
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

// walk calls fn for each name below a name that may have a state.
func (f *folder) walk(name string, fn func(name string) error) error {
	steps, err := f.steps(name)
	for _, step := range steps {
		below := path.Join(name, step)
		if err == nil {
			err = fn(below)
		}
		if err == nil {
			err = f.walk(below, fn)
		}
	}
	return err
}
