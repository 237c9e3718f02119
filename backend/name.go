package backend

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/succession-dev/succession/internal/redact"
)

const (
	// MaxValue is the longest value of a member, in bytes.
	MaxValue = 4 << 10
	// MaxName is the longest name of an election or a record, in bytes.
	MaxName = 255
	// MaxRecord is the longest value of a record, in bytes. Every coordinator accepts
	// that much with its default settings.
	MaxRecord = 256 << 10
)

// CheckName returns an [ErrInvalid] if name cannot be the name of an election or a record
// on every coordinator. A name is one or more segments with slashes between them. A
// segment is made of ASCII letters, digits, dot, underscore and hyphen, and is not "."
// or "..".
func CheckName(name string) error {
	bad := func(why string) error {
		return fmt.Errorf("%w name %q: %s", ErrInvalid, redact.Path(name), why) // it may be the path of a URL
	}
	switch {
	case name == "":
		return bad("it is empty")
	case len(name) > MaxName:
		return fmt.Errorf("%w name %.32q...: %d bytes, at most %d are possible", ErrInvalid, name, len(name), MaxName)
	case strings.HasPrefix(name, "/"):
		return bad("it begins with a slash; write it without")
	case strings.HasSuffix(name, "/"):
		return bad("it ends with a slash; write it without")
	}
	for seg := range strings.SplitSeq(name, "/") {
		switch seg {
		case "":
			return bad("it has an empty segment")
		case ".", "..":
			return bad("a segment must not be " + seg)
		}
		for _, r := range seg {
			if !nameRune(r) {
				return bad(fmt.Sprintf("%q is not possible; use letters, digits, '.', '_', '-' and '/'", r))
			}
		}
	}
	return nil
}

func nameRune(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' ||
		r == '.' || r == '_' || r == '-'
}

// CheckValue returns an [ErrInvalid] if value cannot be the value of a member (law L8).
func CheckValue(value string) error {
	if len(value) > MaxValue {
		return fmt.Errorf("%w member value: %d bytes, at most %d are possible", ErrInvalid, len(value), MaxValue)
	}
	if !utf8.ValidString(value) {
		return fmt.Errorf("%w member value: not UTF-8", ErrInvalid)
	}
	return nil
}

// CheckRecord returns an [ErrInvalid] if value is too long for a record.
func CheckRecord(value []byte) error {
	if len(value) > MaxRecord {
		return fmt.Errorf("%w record: %d bytes, at most %d are possible", ErrInvalid, len(value), MaxRecord)
	}
	return nil
}
