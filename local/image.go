package local

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/succession-dev/succession/backend"
)

// An image is what the two files of one name say, with the line as text. Members are found in
// it without reading all others: a handover in a long line should take no longer than in a short
// one.
type image struct {
	state       // without members
	pins  lines // the members in @state, which are pinned
	loose lines // the members in @line; some may also be among the pins
	line  lines // the members of both
}

// whole reads all members.
func (im *image) whole() (*state, error) {
	s := im.state
	var err error
	s.members, err = im.line.whole()
	return &s, err
}

// set makes im say what st does.
func (im *image) set(st *state) {
	im.version, im.record = st.version, st.record
	im.pins.text = st.text(func(m backend.Member) bool { return m.Pinned })
	im.line.text = st.text(func(backend.Member) bool { return true })
}

// newest returns the largest number.
func (im *image) newest() (uint64, error) {
	m, err := im.line.last()
	return max(uint64(max(im.version, 0)), m.Position), err
}

// lists reports whether one of the files lists a position.
func (im *image) lists(position uint64) (bool, error) {
	_, pinned, err := im.pins.get(position)
	if pinned || err != nil {
		return pinned, err
	}
	_, loose, err := im.loose.get(position)
	return loose, err
}

// join sets im.line. again is @line as it was read after @state.
//
// Whoever stood when @state was read is in the result. If its member is in @state, that is clear. Otherwise it
// had either joined before @line was read for the first time, or it had not. If it had not, it counts only if a
// pinned member stands behind it, because otherwise it might be the first to see that member, and not the one in
// front. Then @line has it when it is read again. If no member is pinned, @line need not be read again.
func (im *image) join(again lines) error {
	switch {
	case len(im.pins.text) == 0:
		im.line = im.loose
		return nil
	case len(im.loose.text)+len(again.text) == 0: // only items stand
		im.line = im.pins
		return nil
	}
	pinned, err := im.pins.whole()
	if err != nil {
		return err
	}
	last := pinned[len(pinned)-1].Position
	first, err := im.loose.whole()
	if err != nil {
		return err
	}
	second, err := again.whole()
	if err != nil {
		return err
	}
	all := make(map[uint64]backend.Member)
	for _, m := range second {
		if m.Position < last {
			all[m.Position] = m
		}
	}
	for _, m := range slices.Concat(first, pinned) {
		all[m.Position] = m
	}
	st := &state{members: slices.SortedFunc(maps.Values(all), func(a, b backend.Member) int { return cmp.Compare(a.Position, b.Position) })}
	im.line = lines{name: im.name, top: im.pins.top, text: st.text(func(backend.Member) bool { return true })}
	return nil
}

// parseRecord reads the body of a @state, except the members. top is the path of the top folder, for messages.
func parseRecord(top, name string, body []byte) (*state, lines, error) {
	s := &state{name: name, version: backend.Absent}
	pins, err := parseLines(kindState, top, name, body)
	if err != nil {
		return nil, pins, err
	}
	if record, ok := bytes.CutPrefix(pins.text, []byte("record ")); ok {
		record, pins.text, _ = bytes.Cut(record, []byte("\n"))
		version, value, ok := bytes.Cut(record, []byte(" "))
		if !ok {
			return nil, pins, errors.New("its record is cut off")
		}
		n, err := parseNumber(string(version))
		if err != nil {
			return nil, pins, err
		}
		s.version = backend.Version(n)
		if s.record, err = base64.StdEncoding.Strict().DecodeString(string(value)); err != nil {
			return nil, pins, err
		}
	}
	return s, pins, nil
}

// Lines are members as text, a line for each, by position.
type lines struct {
	kind string // of the file; "" if some members are from one file and some from the other
	top  string // the path of the top folder
	name string
	text []byte
	torn bool // the file cannot be read, and need not be: see [dir.line]
}

// parseLines reads the body of a @line, except the members. Of a @state, the text then begins with the record.
func parseLines(kind, top, name string, body []byte) (lines, error) {
	l := lines{kind: kind, top: top, name: name}
	text, ok := bytes.CutPrefix(body, nameLine(name))
	if !ok {
		return l, fmt.Errorf("it is not that of %s; a folder was renamed, or the file system takes upper and lower case for the same", name)
	}
	if n := len(text); n > 0 && text[n-1] != '\n' {
		return l, errors.New("its last line is cut off")
	}
	l.text = text
	return l, nil
}

// path returns the path of the file, for messages.
func (l *lines) path() string {
	file := stateName
	if l.kind == kindLine {
		file = lineName
	}
	return filepath.Join(l.top, filepath.FromSlash(l.name), file)
}

// encode returns the body of a @line.
func (l *lines) encode() []byte { return append(nameLine(l.name), l.text...) }

// member reads the member whose line begins at the offset at, and says where the next one does.
func (l *lines) member(at int) (m backend.Member, next int, err error) {
	text, _, _ := bytes.Cut(l.text[at:], []byte("\n"))
	if m, err = parseMember(l.name, string(text)); err == nil && l.kind != "" && m.Pinned != (l.kind == kindState) {
		err = fmt.Errorf("%s does not belong here", m.Key)
	}
	if err != nil {
		err = damagedState(l.path(), l.name, err)
	}
	return m, at + len(text) + 1, err
}

// find returns where the line of the first member at position, or behind it, begins.
func (l *lines) find(position uint64) (at int, err error) {
	low, high := 0, len(l.text)
	for low < high {
		at := l.begin((low + high) / 2)
		m, next, err := l.member(at)
		if err != nil {
			return 0, err
		}
		if m.Position < position {
			low = next
		} else {
			high = at
		}
	}
	return low, nil
}

// begin returns where the line begins that the offset at is in.
func (l *lines) begin(at int) int { return bytes.LastIndexByte(l.text[:at], '\n') + 1 }

// get returns the member at a position. ok says whether there is one.
func (l *lines) get(position uint64) (m backend.Member, ok bool, err error) {
	at, err := l.find(position)
	if err != nil || at == len(l.text) {
		return m, false, err
	}
	m, _, err = l.member(at)
	return m, m.Position == position, err
}

// remove takes out the member at a position, and reports whether there was one.
func (l *lines) remove(position uint64) (removed bool, err error) {
	at, err := l.find(position)
	if err != nil || at == len(l.text) {
		return false, err
	}
	m, next, err := l.member(at)
	if err != nil || m.Position != position {
		return false, err
	}
	l.text = slices.Concat(l.text[:at], l.text[next:]) // a copy: others may have the same text
	return true, nil
}

// count returns how many members there are.
func (l *lines) count() int { return bytes.Count(l.text, []byte("\n")) }

// last returns the last member, or the zero Member.
func (l *lines) last() (m backend.Member, err error) {
	if len(l.text) > 0 {
		m, _, err = l.member(l.begin(len(l.text) - 1))
	}
	return m, err
}

// whole reads all members.
func (l *lines) whole() (members []backend.Member, err error) {
	last := uint64(0)
	for at := 0; at < len(l.text); {
		m, next, err := l.member(at)
		if err != nil {
			return nil, err
		}
		if m.Position <= last {
			return nil, damagedState(l.path(), l.name, fmt.Errorf("%s is out of order", m.Key))
		}
		members, last, at = append(members, m), m.Position, next
	}
	return members, nil
}
