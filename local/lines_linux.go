package local

import (
	"context"
	"path"
)

// Lines returns the names of the lines in which somebody stands; see [backend.Lister]. It tests
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
