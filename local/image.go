package local

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/succession-dev/succession/backend"
)

// An image is what the file @state of one name says, with the line as text. Members are found in
// it without reading all others: a handover in a long line should take no longer than in a short
// one.
type image struct {
	state        // without members
	line  []byte // text, a line for each member, by position
	path  string // of the file
}

// parseImage reads what encode wrote, except the members.
func parseImage(path, name string, body []byte) (*image, error) {
	rest, ok := bytes.CutPrefix(body, []byte("name "+name+"\n"))
	if !ok {
		return nil, fmt.Errorf("it is not that of %s; a folder was renamed, or the file system takes upper and lower case for the same", name)
	}
	im := &image{state: state{name: name, version: backend.Absent}, line: rest, path: path}
	if n := len(rest); n > 0 && rest[n-1] != '\n' {
		return nil, errors.New("its last line is cut off")
	}
	if record, ok := bytes.CutPrefix(rest, []byte("record ")); ok {
		record, im.line, _ = bytes.Cut(record, []byte("\n"))
		version, value, ok := bytes.Cut(record, []byte(" "))
		if !ok {
			return nil, errors.New("its record is cut off")
		}
		n, err := parseNumber(string(version))
		if err != nil {
			return nil, err
		}
		im.version = backend.Version(n)
		if im.record, err = base64.StdEncoding.Strict().DecodeString(string(value)); err != nil {
			return nil, err
		}
	}
	return im, nil
}

// member reads the member whose line begins at the offset at, and says where the next one does.
func (im *image) member(at int) (m backend.Member, next int, err error) {
	text, _, _ := bytes.Cut(im.line[at:], []byte("\n"))
	if m, err = parseMember(im.name, string(text)); err != nil {
		err = damagedState(im.path, im.name, err)
	}
	return m, at + len(text) + 1, err
}

// find returns where the line of the first member at position, or behind it, begins.
func (im *image) find(position uint64) (at int, err error) {
	low, high := 0, len(im.line)
	for low < high {
		at := im.lineOf((low + high) / 2)
		m, next, err := im.member(at)
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

// lineOf returns where the line begins that the offset at is in.
func (im *image) lineOf(at int) int { return bytes.LastIndexByte(im.line[:at], '\n') + 1 }

// get returns the member at a position. ok says whether there is one.
func (im *image) get(position uint64) (m backend.Member, ok bool, err error) {
	at, err := im.find(position)
	if err != nil || at == len(im.line) {
		return m, false, err
	}
	m, _, err = im.member(at)
	return m, m.Position == position, err
}

// listed returns how many members there are.
func (im *image) listed() int { return bytes.Count(im.line, []byte("\n")) }

// newest returns the largest number.
func (im *image) newest() (uint64, error) {
	n := uint64(max(im.version, 0))
	if len(im.line) == 0 {
		return n, nil
	}
	m, _, err := im.member(im.lineOf(len(im.line) - 1))
	return max(n, m.Position), err
}

// encode returns the body of the file.
func (im *image) encode() []byte { return append(im.state.encode(), im.line...) }

// whole reads all members.
func (im *image) whole() (*state, error) {
	s := im.state
	last := uint64(0)
	for at := 0; at < len(im.line); {
		m, next, err := im.member(at)
		if err != nil {
			return nil, err
		}
		if m.Position <= last {
			return nil, damagedState(im.path, im.name, fmt.Errorf("%s is out of order", m.Key))
		}
		s.members, last, at = append(s.members, m), m.Position, next
	}
	return &s, nil
}
