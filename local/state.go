package local

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"

	"github.com/succession-dev/succession/backend"
)

// A state is what the two files of one name say: its record, and its line in order, also the members
// whose processes have died since. The record and the pinned members are in @state, and the others in @line.
type state struct {
	name    string
	version backend.Version // backend.Absent when there is no record
	record  []byte
	members []backend.Member // by position, which grows
}

// absent returns the state of a name that has none.
func absent(name string) *state { return &state{name: name, version: backend.Absent} }

// limit is above every position and version. The rest of int64 is for the fence in tokens.
const limit = 1 << 62

// The files of a name.
const (
	stateName = "@state"
	lineName  = "@line"
)

// The kinds of file, as their first line names them, and the version of their format. What an earlier
// version of this package wrote is refused, and the other way round, because the two would not see each
// other's members.
const (
	kindState   = "state 2"
	kindLine    = "line 1"
	kindCounter = "counter 2"
	kindNext    = "next 1"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seal returns the contents of a file: body, behind a first line with the format and the
// checksum of body.
func seal(kind string, body []byte) []byte {
	return append(append([]byte(firstLine(kind, body)), '\n'), body...)
}

func firstLine(kind string, body []byte) string {
	return fmt.Sprintf("succession %s %08x", kind, crc32.Checksum(body, castagnoli))
}

// unseal checks the first line of a file and returns the rest.
func unseal(kind string, file []byte) ([]byte, error) {
	head, body, ok := bytes.Cut(file, []byte("\n"))
	if !ok {
		return nil, errors.New("it has no first line")
	}
	if string(head) == firstLine(kind, body) {
		return body, nil
	}
	what, version, _ := strings.Cut(kind, " ")
	if other, ok := strings.CutPrefix(string(head), "succession "+what+" "); !ok {
		return nil, fmt.Errorf("its first line does not begin with %q", "succession "+kind)
	} else if !strings.HasPrefix(other, version+" ") {
		return nil, errors.New("another version of this package has written it; end all processes that use the folder before the first one of this version starts")
	}
	return nil, errors.New("its checksum does not match what it says")
}

// encode returns the record, and pins, which are the pinned members, as they are written in @state below the first line:
//
//	name a/b
//	record VERSION BASE64
//	pinned KEY "VALUE"
//
// and shared-pinned in place of pinned.
func (s *state) encode(pins []byte) []byte {
	b := nameLine(s.name)
	if s.version != backend.Absent {
		b = fmt.Appendf(b, "record %d %s\n", s.version, base64.StdEncoding.EncodeToString(s.record))
	}
	return append(b, pins...)
}

// nameLine is the first line below that of the kind. It tells when a folder was renamed.
func nameLine(name string) []byte { return []byte("name " + name + "\n") }

// text returns the lines of the members that which reports.
func (s *state) text(which func(backend.Member) bool) (b []byte) {
	for _, m := range s.members {
		if which(m) {
			b = appendMember(b, m)
		}
	}
	return b
}

// appendMember appends the line of a member.
func appendMember(b []byte, m backend.Member) []byte {
	b = append(append(b, wordOf(m)...), ' ')
	b = append(append(b, m.Key...), ' ')
	return append(strconv.AppendQuote(b, m.Value), '\n')
}

// wordOf returns what the line of a member begins with.
func wordOf(m backend.Member) string {
	switch {
	case m.Shared && m.Pinned:
		return "shared-pinned"
	case m.Shared:
		return "shared"
	case m.Pinned:
		return "pinned"
	}
	return "member"
}

// parseMember reads the line of a member.
func parseMember(name, text string) (m backend.Member, err error) {
	word, text, _ := strings.Cut(text, " ")
	key, quoted, ok := strings.Cut(text, " ")
	if !ok {
		return m, errors.New("a line is too short")
	}
	m = backend.Member{Line: name, Key: key, Shared: strings.HasPrefix(word, "shared"), Pinned: strings.HasSuffix(word, "pinned")}
	if word != wordOf(m) {
		return m, fmt.Errorf("unknown word %q", word)
	}
	if m.Position, err = parseKey(key); err != nil {
		return m, err
	}
	if m.Value, err = unquote(quoted); err != nil {
		return m, fmt.Errorf("%s: %w", key, err)
	}
	return m, backend.CheckValue(m.Value)
}

// unquote undoes strconv.Quote. It refuses text that Quote would have written otherwise.
func unquote(quoted string) (string, error) {
	if n := len(quoted) - 1; n >= 1 && quoted[0] == '"' && quoted[n] == '"' && plain(quoted[1:n]) {
		return quoted[1:n], nil
	}
	value, err := strconv.Unquote(quoted)
	if err != nil || strconv.Quote(value) != quoted {
		return "", errors.New("its value is not quoted as it should be")
	}
	return value, nil
}

// plain reports whether strconv.Quote only puts quotes around text.
func plain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// parseNumber reads a version, or the number of a counter.
func parseNumber(digits string) (uint64, error) {
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || n == 0 || n >= limit || digits[0] == '0' || digits[0] == '+' {
		return 0, fmt.Errorf("%q is not a number from 1 to 2^62-1", digits)
	}
	return n, nil
}

// key returns the key of the member at a position: n_ and at least ten digits.
func key(position uint64) string { return fmt.Sprintf("n_%010d", position) }

// parseKey undoes key.
func parseKey(key string) (uint64, error) {
	digits, ok := strings.CutPrefix(key, "n_")
	if len(digits) == 10 {
		digits = strings.TrimLeft(digits, "0")
	}
	n, err := parseNumber(digits)
	if !ok || err != nil || len(key) < len("n_0000000001") {
		return 0, fmt.Errorf("%q is not the key of a member", key)
	}
	return n, nil
}

// index returns where m stands in s.members, or -1.
func (s *state) index(m backend.Member) int {
	for i := range s.members {
		if s.members[i].Position == m.Position {
			return i
		}
	}
	return -1
}

// header returns the record as the header of an election.
func (s *state) header() (backend.Header, error) {
	if s.version == backend.Absent {
		return backend.Header{}, nil
	}
	return backend.ParseHeader(s.record)
}
