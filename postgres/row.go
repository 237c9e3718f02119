package postgres

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"

	"github.com/succession-dev/succession/backend"
)

// A row is one row of an answer, in PostgreSQL's binary format. Its methods take the values one
// after the other. A value of another form than the schema's functions return is read as 0, and err says
// so: somebody may have changed a function.
type row struct {
	values [][]byte
	wrong  string
}

func strange(what string) error {
	return fmt.Errorf("%w: the answer is not that of a function of this package: %s", backend.ErrUnavailable, what)
}

// next takes the next value, which is nil for null.
func (r *row) next() []byte {
	if len(r.values) == 0 {
		r.wrong = "a value is missing"
		return nil
	}
	v := r.values[0]
	r.values = r.values[1:]
	return v
}

// err returns what is wrong with the values that were taken.
func (r *row) err() error {
	if r.wrong != "" {
		return strange(r.wrong)
	}
	return nil
}

// null reports whether the next value is null, and does not take it.
func (r *row) null() bool { return len(r.values) > 0 && r.values[0] == nil }

// text takes a text; null is the empty one.
func (r *row) text() string {
	v := r.next()
	if !utf8.Valid(v) {
		r.wrong = "a text is not UTF-8"
		return ""
	}
	return string(v)
}

// bytes takes a bytea.
func (r *row) bytes() []byte { return r.next() }

// int takes a number; null is 0.
func (r *row) int() int64 {
	switch v := r.next(); len(v) {
	case 0:
		return 0
	case 4:
		return int64(int32(binary.BigEndian.Uint32(v)))
	case 8:
		return int64(binary.BigEndian.Uint64(v))
	default:
		r.wrong = "a number has another length"
		return 0
	}
}

// bool takes a truth value; null is false.
func (r *row) bool() bool {
	switch v := r.next(); len(v) {
	case 0:
		return false
	case 1:
		return v[0] != 0
	default:
		r.wrong = "a truth value has another length"
		return false
	}
}

// uuid takes a uuid.
func (r *row) uuid() string {
	v := r.next()
	if len(v) != 16 {
		r.wrong = "a uuid has another length"
		return ""
	}
	return textOf([16]byte(v))
}

// version takes the version of a record; null is that of none.
func (r *row) version() backend.Version {
	if r.null() {
		r.next()
		return backend.Absent
	}
	return backend.Version(r.int())
}

// position takes the position of a member.
func (r *row) position() uint64 {
	n := r.int()
	if n < 0 {
		r.wrong = "a position is negative"
		return 0
	}
	return uint64(n)
}

// member takes a member of the line: position, value, and whether it is shared and pinned.
func (r *row) member(line string) backend.Member {
	m := memberAt(line, r.position(), r.bytes())
	m.Shared, m.Pinned = r.bool(), r.bool()
	return m
}
