package local

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
)

// Lines returns the names of the lines in which somebody stands; see [backend.Lister]. It tests
// the lock of each member.
func (s *session) Lines(ctx context.Context) (map[string]int, error) {
	lines := make(map[string]int)
	err := filepath.WalkDir(s.b.dir.path, func(path string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // nobody has used the folder, or a line has just ended
		case err != nil || e.Name() != stateName:
			return err
		}
		dir, err := filepath.Rel(s.b.dir.path, filepath.Dir(path))
		if err != nil {
			return err
		}
		line := filepath.ToSlash(dir)
		st, err := s.lineOf(ctx, line)
		if err == nil && len(st.members) > 0 {
			lines[line] = len(st.members)
		}
		return err
	})
	return lines, err
}
