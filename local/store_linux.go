package local

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/succession-dev/succession/backend"
)

// load reads the state of a name. It needs no lock, because the file is replaced in one step.
func (f *folder) load(name string) (*state, error) {
	im, err := f.read(name)
	if err != nil {
		return nil, err
	}
	return im.whole()
}

// read is load for callers that need only a part of the state.
func (f *folder) read(name string) (*image, error) {
	d, err := f.dir(name)
	if errors.Is(err, fs.ErrNotExist) {
		return f.absent(name), nil
	}
	if err != nil {
		return nil, err
	}
	defer d.close()
	return f.readIn(d, name)
}

// readIn is read for callers that have opened the folder of the name.
func (f *folder) readIn(d dir, name string) (*image, error) {
	file, err := d.read(stateName)
	if errors.Is(err, fs.ErrNotExist) {
		return f.absent(name), nil
	}
	if err != nil {
		return nil, err
	}
	path := d.path(stateName)
	body, err := unseal(kindState, file)
	if err == nil {
		var im *image
		if im, err = parseImage(path, name, body); err == nil {
			return im, nil
		}
	}
	return nil, damagedState(path, name, err)
}

// absent returns the state of a name that has none.
func (f *folder) absent(name string) *image {
	return &image{state: state{name: name, version: backend.Absent}, path: f.at(name, stateName)}
}

// replaceState makes body the state of a name. The caller holds the name's lock.
func (f *folder) replaceState(name string, body []byte) error {
	return f.replace(name, stateName, lockByte(name), seal(kindState, body))
}

// store replaces the state of a name. The caller holds the name's lock. If the state has
// neither a record nor members, store removes the file, and the folder if it is empty.
func (f *folder) store(st *state) error {
	if len(st.members) > 0 || st.version != backend.Absent {
		return f.replaceState(st.name, st.encode())
	}
	d, err := f.dir(st.name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.close()
	if err := d.remove(stateName); err != nil {
		return err
	}
	if err := d.sync(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s was removed, but that may not outlast a power failure: %w", backend.ErrUnavailable, d.path(stateName), err)
	}
	f.tidy(st.name)
	return nil
}

// drop takes the members that have gone out of st. The result is certain only if the caller holds
// the line's lock, so that no member is pinned meanwhile.
func (f *folder) drop(st *state) error {
	if len(st.members) == 0 {
		return nil
	}
	d, err := f.dir(st.name)
	if errors.Is(err, fs.ErrNotExist) {
		st.members = nil
		return nil
	}
	if err != nil {
		return err
	}
	defer d.close()
	alive := st.members[:0]
	for _, m := range st.members {
		stands, err := d.stands(m)
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

// stands is [dir.stands] for callers that have not opened the line's folder.
func (f *folder) stands(m backend.Member) (bool, error) {
	is, err := f.probe(m)
	return is == held || is == dead && m.Pinned, err
}

// stands reports whether the member m of the line of d stands: its FIFO exists, and m is pinned or
// somebody holds the FIFO.
func (d dir) stands(m backend.Member) (bool, error) {
	is, err := d.probe(m.Position)
	return is == held || is == dead && m.Pinned, err
}

// sweep removes the FIFOs that im does not list: those of dead members, of a process that died
// while it joined, and of a line whose state an operator removed. The caller holds the line's lock.
// What cannot be removed is left to the next sweep.
func (f *folder) sweep(im *image) {
	d, err := f.dir(im.name)
	if err != nil {
		return
	}
	defer d.close()
	names, err := d.list()
	if err != nil {
		return
	}
	for _, name := range names {
		digits, ok := strings.CutPrefix(name, fifoPrefix)
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
			_ = d.remove(name)
		}
	}
}
