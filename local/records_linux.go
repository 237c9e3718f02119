package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/succession-dev/succession/backend"
)

// Get returns the record; see [backend.Session].
func (s *session) Get(_ context.Context, name string) (backend.Record, error) {
	st, _, err := s.dir.record(name)
	if err != nil {
		return backend.Record{}, err
	}
	return backend.Record{Name: name, Value: st.record, Version: st.version}, nil
}

// Put writes the record if the condition holds; see [backend.Session]. The value is on disk
// when Put returns.
func (s *session) Put(ctx context.Context, name string, value []byte, cond *backend.If) (v backend.Version, err error) {
	err = s.change(ctx, name, cond, func(ctx context.Context, h *hold, im *image) error {
		newest, err := im.newest()
		if err != nil {
			return err
		}
		version, err := s.dir.next(ctx, h, newest)
		if err != nil {
			return err
		}
		im.record, im.version = value, backend.Version(version)
		if err := s.dir.keep(name, im.encode(im.pins.text)); err != nil {
			return err
		}
		v = im.version
		return nil
	})
	return v, err
}

// Delete removes the record if the condition holds; see [backend.Session].
func (s *session) Delete(ctx context.Context, name string, cond *backend.If) error {
	return s.change(ctx, name, cond, func(_ context.Context, _ *hold, im *image) error {
		if im.version == backend.Absent {
			return s.dir.confirm(name)
		}
		st, err := im.whole()
		if err != nil {
			return err
		}
		st.record, st.version = nil, backend.Absent
		if err := s.dir.drop(st); err != nil {
			return err
		}
		if len(st.members) == 0 {
			s.dir.sweep(&image{state: *st}) // of nobody, so that the folder can go
		}
		im.set(st)
		return s.dir.store(im)
	})
}

// change runs fn on the state of the record if the condition holds. It holds the lock of the
// record, and that of the line of the condition's member. If that member goes meanwhile, the
// next one cannot lead yet: it needs the same lock to find that out.
func (s *session) change(ctx context.Context, name string, cond *backend.If, fn func(context.Context, *hold, *image) error) error {
	if cond == nil {
		cond = &backend.If{}
	}
	guarded := cond.Member != backend.Member{}
	claims := []claim{{name, write}}
	if guarded {
		if err := backend.CheckName(cond.Member.Line); err != nil {
			return err
		}
		claims = append(claims, claim{cond.Member.Line, decide})
		if cond.Member.Line == name {
			claims = claims[1:]
		}
	}
	return s.write(ctx, func(ctx context.Context, h *hold) error {
		im, err := s.dir.read(name)
		if err != nil {
			return err
		}
		if cond.Version != backend.Any && cond.Version != im.version {
			return backend.ErrVersion
		}
		if guarded {
			if err := s.dir.guard(cond.Member); err != nil {
				return err
			}
		}
		return fn(ctx, h, im)
	}, claims...)
}

// guard returns ErrNotMember unless m stands. The caller holds the lock of m's line.
func (f *folder) guard(m backend.Member) error {
	im, err := f.read(m.Line)
	if err != nil {
		return err
	}
	now, ok, err := im.line.get(m.Position)
	if err == nil && ok {
		ok, err = f.stands(now)
	}
	if err == nil && !ok {
		err = backend.ErrNotMember
	}
	return err
}

// List returns the names of the records directly under dir; see
// [backend.Session]. It reads each of them.
func (s *session) List(ctx context.Context, dir string) (names []string, err error) {
	records, err := s.ReadAll(ctx, dir)
	for _, r := range records {
		names = append(names, r.Name)
	}
	return names, err
}

// ReadAll returns the records directly under dir; see [backend.Session].
func (s *session) ReadAll(_ context.Context, dir string) ([]backend.Record, error) {
	d, err := s.dir.dir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer d.close()
	steps, err := d.folders()
	if err != nil {
		return nil, err
	}
	var records []backend.Record
	for _, step := range steps {
		if has, err := d.has(step + "/" + stateName); err != nil {
			return nil, err
		} else if !has {
			continue
		}
		name := dir + "/" + step
		st, _, err := s.dir.record(name)
		if err != nil {
			return nil, err
		}
		if st.version != backend.Absent {
			records = append(records, backend.Record{Name: name, Value: st.record, Version: st.version})
		}
	}
	slices.SortFunc(records, func(a, b backend.Record) int { return strings.Compare(a.Name, b.Name) })
	return records, nil
}

// Watch blocks until the record has another version than after; see
// [backend.Session].
func (s *session) Watch(ctx context.Context, name string, after backend.Version) (r backend.Record, err error) {
	err = s.follow(ctx, name, newBell(), func() (changed bool, err error) {
		r, err = s.Get(ctx, name)
		return r.Version != after, err
	})
	return r, err
}

// follow calls check at once, and again whenever the state of the name may have changed or
// the bell is rung. It returns when check reports true or fails, or when ctx or the session
// ends.
func (s *session) follow(ctx context.Context, name string, bell bell, check func() (bool, error)) error {
	defer context.AfterFunc(ctx, bell.ring)()
	for {
		done, err := s.followFolder(ctx, name, bell, check)
		if done || err != nil {
			return err
		}
	}
}

// followFolder follows the name until its folder is made or removed, because inotify must
// then watch another folder. If the name has no folder, it watches the nearest one above,
// and does not make the folder, because a call that only looks makes nothing.
func (s *session) followFolder(ctx context.Context, name string, bell bell, check func() (bool, error)) (done bool, err error) {
	if err := s.Usable(ctx); err != nil {
		return false, err
	}
	watched, err := nearest(s.dir.of(name))
	if err != nil {
		return false, err
	}
	defer s.b.watches.watch(watched, bell.ring)()
	if strings.HasPrefix(watched, s.dir.path+"/") { // whether the top folder is where it was is looked at all the time
		defer s.b.watches.watchRemoval(watched)()
	}
	if next := below(watched, s.dir.of(name)); next != watched {
		defer s.b.watches.watch(next, bell.ring)()
	}
	for {
		if err := s.Usable(ctx); err != nil {
			return false, err
		}
		if done, err := check(); done || err != nil {
			return done, err
		}
		// Whether it is the same folder only inotify knows: a new one may get the number of one that has gone.
		if path, err := nearest(s.dir.of(name)); err != nil || path != watched || !s.b.watches.isWatched(watched) {
			return false, err
		}
		<-bell
	}
}

// nearest says what inotify can watch: it only looks. It returns dir, or the nearest folder above
// it that exists.
func nearest(dir string) (path string, err error) {
	for path = dir; ; path = filepath.Dir(path) {
		_, err = os.Stat(path)
		if !errors.Is(err, fs.ErrNotExist) || path == filepath.Dir(path) {
			return path, err
		}
	}
}

// below returns the path one step from top towards dir, which is top or below it.
func below(top, dir string) string {
	for filepath.Dir(dir) != top && dir != top {
		dir = filepath.Dir(dir)
	}
	return dir
}
