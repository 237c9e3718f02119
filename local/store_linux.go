package local

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/succession-dev/succession/backend"
)

// load reads the state of a name. It needs no lock, because each file is replaced in one step.
func (f *folder) load(name string) (*state, error) {
	im, err := f.read(name)
	if err != nil {
		return nil, err
	}
	return im.whole()
}

// read is load for callers that need only a part of the state.
func (f *folder) read(name string) (*image, error) {
	d, im, err := f.readOpen(name)
	d.close()
	return im, err
}

// readOpen is read for callers that then write: it also returns the folder of the name, which the caller closes. That is the zero
// value if there is none.
func (f *folder) readOpen(name string) (dir, *image, error) {
	d, err := f.dir(name)
	if errors.Is(err, fs.ErrNotExist) {
		im := &image{state: *absent(name), pins: lines{kind: kindState, top: f.path, name: name}, loose: lines{kind: kindLine, top: f.path, name: name}}
		return dir{}, im, im.join(lines{})
	}
	if err != nil {
		return dir{}, nil, err
	}
	im, err := d.image(name)
	return d, im, err
}

// image is [folder.read] for callers that have opened the folder of the name.
//
// It reads @line before @state, so that no member is missed that is pinned meanwhile: that one is in @line, or
// in @state by then. The header is then no older than the line.
func (d dir) image(name string) (*image, error) {
	loose, err := d.line(name)
	if err != nil {
		return nil, err
	}
	st, pins, err := d.record(name)
	if err != nil {
		return nil, err
	}
	im, again := &image{state: *st, pins: pins, loose: loose}, lines{}
	if len(pins.text) > 0 {
		if again, err = d.line(name); err != nil {
			return nil, err
		}
	}
	return im, im.join(again)
}

// record reads @state alone: the record, and the pinned members.
func (f *folder) record(name string) (*state, lines, error) {
	d, err := f.dir(name)
	if errors.Is(err, fs.ErrNotExist) {
		return absent(name), lines{}, nil
	}
	if err != nil {
		return nil, lines{}, err
	}
	defer d.close()
	return d.record(name)
}

// record is [folder.record] for callers that have opened the folder of the name.
func (d dir) record(name string) (*state, lines, error) {
	file, err := d.tryRead(stateName)
	if err == unix.ENOENT {
		return absent(name), lines{kind: kindState, top: d.top.path, name: name}, nil
	}
	if err != nil {
		return nil, lines{}, d.explain("read", stateName, err)
	}
	body, err := unseal(kindState, file)
	if err == nil {
		var st *state
		var pins lines
		if st, pins, err = parseRecord(d.top.path, name, body); err == nil {
			return st, pins, nil
		}
	}
	return nil, lines{}, damagedState(d.path(stateName), name, err)
}

// line reads @line.
//
// It is not synced. So after a power loss it may be cut off, empty, or an old one. An old one does no harm: the
// processes of its members are dead, and so are their members; and no position is used again. One that cannot be
// read is as good as none if nobody holds a FIFO of the folder, because then no member stands that is not pinned.
// Otherwise a member may stand, and the file has been damaged since.
func (d dir) line(name string) (l lines, err error) {
	empty := lines{kind: kindLine, top: d.top.path, name: name}
	for again := false; ; again = true {
		file, err := d.tryRead(lineName)
		if err == unix.ENOENT {
			return empty, nil
		}
		if err != nil {
			return l, d.explain("read", lineName, err)
		}
		body, err := unseal(kindLine, file)
		if err == nil {
			if l, err = parseLines(kindLine, empty.top, name, body); err == nil {
				return l, nil
			}
		}
		if again {
			return l, damagedLine(empty.path(), name, err)
		}
		if held, err := d.anyHeld(); err != nil {
			return l, err
		} else if !held {
			empty.torn = true
			return empty, nil
		}
		// The one who holds a FIFO has removed such a file before: so look again.
	}
}

// anyHeld reports whether somebody holds a FIFO of d.
func (d dir) anyHeld() (bool, error) {
	names, err := d.list()
	if err != nil {
		return false, err
	}
	for _, name := range names {
		if !strings.HasPrefix(name, fifoPrefix) {
			continue
		}
		if is, err := d.probeFIFO(name); err != nil || is == held {
			return true, err
		}
	}
	return false, nil
}

// keep makes body the @state of a name, and syncs it. The caller holds the name's lock.
func (f *folder) keep(name string, body []byte) error {
	return f.replace(name, stateName, lockByte(name), seal(kindState, body), true)
}

// keepNot makes l the @line of a name, and syncs nothing. The caller holds the name's lock.
func (f *folder) keepNot(l lines) error {
	return f.replace(l.name, lineName, lockByte(l.name), seal(kindLine, l.encode()), false)
}

// takeOut takes a member out of @line, if it is there. The caller holds the name's lock.
func (f *folder) takeOut(im *image, position uint64) error {
	if removed, err := im.loose.remove(position); err != nil || !removed {
		return err
	}
	return f.keepNot(im.loose)
}

// keepNot is [folder.keepNot] for callers that have opened the folder of the name, and know that it is not empty.
func (d dir) keepNot(l lines) error {
	return d.top.do(func(top dir) error {
		tmp := tmp(lockByte(l.name))
		data := seal(kindLine, l.encode())
		err := checkSize(len(data), d.path(lineName))
		if err == nil {
			err = top.write(tmp, data, false)
		}
		if err == nil {
			err = d.explain("rename", lineName, swap(top, tmp, d, lineName))
		}
		if err != nil {
			_ = top.remove(tmp)
		}
		return err
	})
}

// store replaces @state, which has the record of im and its pinned members. The caller holds the
// name's lock. If there are none, store removes the file. If no other member is left either, it removes @line,
// and the folder if that is empty.
func (f *folder) store(im *image) error {
	if im.version != backend.Absent || len(im.pins.text) > 0 {
		return f.keep(im.name, im.encode(im.pins.text))
	}
	d, err := f.dir(im.name)
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
	if len(im.line.text) == 0 {
		_ = d.remove(lineName)
		f.tidy(im.name)
	}
	return nil
}

// confirm syncs that something is not in the folder of a name any more, or is there as it is. It is for a call
// that finds nothing left to do: another process may have been killed after it had done that, and before it had
// synced it.
func (f *folder) confirm(name string) error {
	for {
		d, err := f.dir(name)
		if errors.Is(err, fs.ErrNotExist) && name != "" {
			name, _ = split(name)
			continue
		}
		if errors.Is(err, fs.ErrNotExist) { // there is no folder at all
			return nil
		}
		if err != nil {
			return err
		}
		err = d.sync()
		d.close()
		if err != nil {
			return fmt.Errorf("%w: %s is as it should be, but that may not outlast a power failure: %w", backend.ErrUnavailable, d.path(""), err)
		}
		return nil
	}
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
	return d.drop(st)
}

// drop is [folder.drop] for callers that have opened the folder of the line.
func (d dir) drop(st *state) error {
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

// sweep removes the FIFOs that neither part of im lists: those of dead members, of a process that died
// while it joined, and of a line whose state an operator removed. The caller holds the line's lock.
// What cannot be removed is left to the next sweep.
func (f *folder) sweep(im *image) {
	if d, err := f.dir(im.name); err == nil {
		d.sweep(im)
		d.close()
	}
}

// sweep is [folder.sweep] for callers that have opened the folder of the line.
func (d dir) sweep(im *image) {
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
			if listed, err = im.lists(position); err != nil {
				return
			}
		}
		if !listed {
			_ = d.remove(name)
		}
	}
}
