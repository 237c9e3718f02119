package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/succession-dev/succession/backend"
)

// load reads the state of a name. It needs no lock, because the file is replaced in one step.
func (b *Backend) load(name string) (*state, error) {
	im, err := b.read(name)
	if err != nil {
		return nil, err
	}
	return im.whole()
}

// read is load for those who need only a part of the state.
func (b *Backend) read(name string) (*image, error) {
	path := b.dir.state(name)
	var file []byte
	var err error
	if b.dir.rights.Load() == nil { // a folder that was made meanwhile must be checked, too
		err = b.dir.prepare()
	}
	if err == nil {
		file, err = readWhole(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return &image{state: state{name: name, version: backend.Absent}, path: path}, nil
	}
	if err != nil {
		return nil, err
	}
	body, err := unseal(kindState, file)
	if err == nil {
		var im *image
		if im, err = parseImage(path, name, body); err == nil {
			return im, nil
		}
	}
	return nil, damagedState(path, name, err)
}

// readWhole reads a file that never changes in place. It does without package os, which would offer
// the descriptor to the poller and look for more at the end: whoever is next reads on the way to
// leadership.
func readWhole(path string) ([]byte, error) {
	fail := func(op string, err error) ([]byte, error) { return nil, &fs.PathError{Op: op, Path: path, Err: err} }
	// The first who reads a file would note when, and may then wait for a write to the disk that is
	// under way. Only the file's owner and root may do without (open(2)).
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOATIME, 0)
	if err == unix.EPERM {
		fd, err = unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return fail("open", err)
	}
	defer unix.Close(fd)
	var is unix.Stat_t
	if err := unix.Fstat(fd, &is); err != nil {
		return fail("stat", err)
	}
	file := make([]byte, is.Size)
	for done := 0; done < len(file); {
		n, err := unix.Read(fd, file[done:])
		switch {
		case err == unix.EINTR:
		case err != nil:
			return fail("read", err)
		case n == 0: // somebody has cut it off
			return file[:done], nil
		default:
			done += n
		}
	}
	return file, nil
}

// replace makes body the state of a name. The caller holds the name's lock.
func (b *Backend) replace(name string, body []byte) error {
	return b.dir.replace(b.dir.tmp(lockByte(name)), b.dir.state(name), seal(kindState, body))
}

// store replaces the state of a name. The caller holds the name's lock. If the state has
// neither a record nor members, store removes the file, and the folder if it is empty.
func (b *Backend) store(st *state) error {
	if len(st.members) > 0 || st.version != backend.Absent {
		return b.replace(st.name, st.encode())
	}
	path := b.dir.state(st.name)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := syncDir(filepath.Dir(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s was removed, but that may not outlast a power failure: %w", backend.ErrUnavailable, path, err)
	}
	b.dir.tidy(st.name)
	return nil
}

// drop takes the members that have gone out of st. What is left out is certain only if the
// caller holds the line's lock, so that nobody is pinned meanwhile.
func (b *Backend) drop(st *state) error {
	alive := st.members[:0]
	for _, m := range st.members {
		stands, err := b.stands(m)
		if err != nil {
			return err
		}
		if stands {
			alive = append(alive, m)
		}
	}
	st.members = alive
	return nil
}

// stands reports whether the member m of a state stands: its FIFO exists, and m is pinned or
// somebody holds the FIFO.
func (b *Backend) stands(m backend.Member) (bool, error) {
	is, err := probe(b.dir.fifo(m.Line, m.Position))
	return is == held || is == dead && m.Pinned, err
}

// sweep removes the FIFOs that im does not list: those of the dead, of a process that died
// while it joined, and of a line whose state an operator removed. The caller holds the
// line's lock. What cannot be removed is left to the next sweep.
func (b *Backend) sweep(im *image) {
	dir := b.dir.of(im.name)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), fifoPrefix)
		if !ok {
			continue
		}
		listed := false
		if position, err := parseKey("n_" + digits); err == nil {
			if _, listed, err = im.get(position); err != nil {
				return
			}
		}
		if !listed {
			os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}
