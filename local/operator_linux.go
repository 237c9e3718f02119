package local

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
)

// An operator is a [coordinator.Operator] that has a shell on this machine. It is the path of the
// folder. It reaches files as sessions do, and so deletes nothing outside the folder: root may be
// the operator of another user's folder.
type operator string

func newOperator(u *coordinator.URL) (coordinator.Operator, error) {
	path, err := filepath.Abs(cmp.Or(u.Path, DefaultDir()))
	return operator(path), err
}

// in calls fn with the folder of a name, or the top folder for "". It does nothing if there is none.
func (o operator) in(name string, fn func(dir) error) error {
	f := newFolder(string(o), string(o) == DefaultDir(), &past{})
	d, err := f.dir(name)
	if err == nil {
		err = fn(d)
		d.close()
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, f.close())
}

func (o operator) Exists(_ context.Context, name string) (exists bool, err error) {
	above, step := split(name)
	err = o.in(above, func(d dir) error {
		_, err := d.stat(step)
		exists = err == nil
		return err
	})
	return exists, err
}

func (o operator) Remove(_ context.Context, m backend.Member) error {
	return o.in(m.Line, func(d dir) error { return d.remove("@" + m.Key) })
}

// Drop takes out the last member first.
func (o operator) Drop(ctx context.Context, election string) error {
	err := o.in(election, func(d dir) error {
		files, err := d.list()
		slices.Sort(files)
		for _, file := range slices.Backward(files) {
			if err == nil && strings.HasPrefix(file, fifoPrefix) {
				err = d.remove(file)
			}
		}
		return err
	})
	return cmp.Or(err, o.Clear(ctx, election))
}

func (o operator) Clear(ctx context.Context, name string) error {
	above, step := split(name)
	return o.in(above, func(d dir) error { return d.removeAll(ctx, step) })
}

// split returns the name that a name is below, or "", and its last step.
func split(name string) (above, step string) {
	above, step = path.Split(name)
	return strings.TrimSuffix(above, "/"), step
}

// removeAll removes the folder step of d with everything in it, and what others put there meanwhile, until ctx ends. It
// removes links, and follows none.
func (d dir) removeAll(ctx context.Context, step string) error {
	for {
		err := d.removeOnce(ctx, step)
		switch {
		case errors.Is(err, fs.ErrNotExist): // its owner was faster
			return nil
		case !errors.Is(err, unix.ENOTEMPTY) || ctx.Err() != nil:
			return err
		}
	}
}

// removeOnce is removeAll, and fails with ENOTEMPTY if others put something into the folder meanwhile.
func (d dir) removeOnce(ctx context.Context, step string) error {
	into, err := d.enter(step)
	if err != nil {
		return err
	}
	defer into.close()
	files, err := into.list()
	for _, file := range files {
		is, failed := into.stat(file)
		switch {
		case errors.Is(failed, fs.ErrNotExist):
		case failed == nil && is.Mode&unix.S_IFMT == unix.S_IFDIR:
			err = errors.Join(err, into.removeAll(ctx, file))
		default:
			err = errors.Join(err, into.remove(file))
		}
	}
	if err != nil {
		return err
	}
	if err := unix.Unlinkat(d.fd, step, unix.AT_REMOVEDIR); err != nil {
		return d.fail("remove", step, err)
	}
	return nil
}
