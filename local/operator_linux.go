package local

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/succession-dev/succession/backend"
)

// An operator is a [backend.Operator] that has a shell on this machine. It is the folder.
type operator string

func newOperator(u *backend.URL) (backend.Operator, error) {
	return operator(cmp.Or(u.Path, DefaultDir())), nil
}

func (o operator) path(name string) string { return filepath.Join(string(o), filepath.FromSlash(name)) }

func (o operator) Exists(_ context.Context, name string) (bool, error) {
	_, err := os.Lstat(o.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func (o operator) Remove(_ context.Context, m backend.Member) error {
	return remove(filepath.Join(o.path(m.Line), "@"+m.Key))
}

// Drop takes out the last member first.
func (o operator) Drop(_ context.Context, election string) error {
	at := o.path(election)
	files, err := os.ReadDir(at) // sorted by name
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, f := range slices.Backward(files) {
		if strings.HasPrefix(f.Name(), "@n_") {
			if err := remove(filepath.Join(at, f.Name())); err != nil {
				return err
			}
		}
	}
	return os.RemoveAll(at)
}

func (o operator) Clear(_ context.Context, name string) error { return os.RemoveAll(o.path(name)) }

// remove deletes a file, if it is there.
func remove(file string) error {
	if err := os.Remove(file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
