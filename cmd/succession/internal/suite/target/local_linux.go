//go:build linux

package target

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/operator"
	driver "github.com/succession-dev/succession/local"
)

type local struct{ dir string }

func newLocal(u *backend.URL) (operator.Operator, error) {
	return &local{cmp.Or(u.Path, driver.DefaultDir())}, nil
}

func (l *local) path(name string) string { return filepath.Join(l.dir, filepath.FromSlash(name)) }

func (l *local) Exists(_ context.Context, name string) (bool, error) {
	_, err := os.Lstat(l.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func (l *local) Clear(ctx context.Context, name string) error { return l.Drop(ctx, name) }

func (l *local) Remove(_ context.Context, m backend.Member) error {
	return os.Remove(filepath.Join(l.path(m.Line), "@"+m.Key))
}

func (l *local) Drop(_ context.Context, line string) error { return os.RemoveAll(l.path(line)) }
