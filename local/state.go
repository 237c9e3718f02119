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

// A state is what the file @state of one name says: its record, and its line in order, also
// the members whose processes have died since.
type state struct {
	name    string
	version backend.Version // backend.Absent when there is no record
	record  []byte
	members []backend.Member // by position, which grows
}

// limit is above every position and version. The rest of int64 is for the fence in tokens.
const limit = 1 << 62

// The kinds of file, as their first line names them.
const (
	kindState   = "state"
	kindCounter = "counter"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seal returns the contents of a file: body, behind a first line with the format and the
// checksum of body.
func seal(kind string, body []byte) []byte {
	head := fmt.Sprintf("succession %s 1 %08x\n", kind, crc32.Checksum(body, castagnoli))
	return append([]byte(head), body...)
}

// unseal checks the first line of a file and returns the rest.
func unseal(kind string, file []byte) ([]byte, error) {
	head, body, ok := bytes.Cut(file, []byte("\n"))
	if !ok {
		return nil, errors.New("it has no first line")
	}
	want, _, _ := bytes.Cut(seal(kind, body), []byte("\n"))
	if bytes.Equal(head, want) {
		return body, nil
	}
	if prefix := "succession " + kind + " 1 "; !strings.HasPrefix(string(head), prefix) {
		return nil, fmt.Errorf("its first line does not begin with %q", prefix)
	}
	return nil, errors.New("its checksum does not match what it says")
}

// encode returns the state as lines of text, without the first line of the file:
//
//	name a/b
//	record VERSION BASE64
//	member KEY "VALUE"
//
// and shared, pinned, or shared-pinned in place of member.
func (s *state) encode() []byte {
	b := fmt.Appendf(nil, "name %s\n", s.name)
	if s.version != backend.Absent {
		b = fmt.Appendf(b, "record %d %s\n", s.version, base64.StdEncoding.EncodeToString(s.record))
	}
	for _, m := range s.members {
		b = append(append(b, wordOf(m)...), ' ')
		b = append(append(b, m.Key...), ' ')
		b = append(strconv.AppendQuote(b, m.Value), '\n')
	}
	return b
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

// parseState reads what encode wrote, and nothing else. It leaves out the members behind the
// position last: each handover calls it, and should take no longer in a long line than in a
// short one.
func parseState(name string, body []byte, last uint64) (*state, error) {
	s := &state{name: name, version: backend.Absent}
	rest, ok := strings.CutPrefix(string(body), "name "+name+"\n")
	if !ok {
		return nil, fmt.Errorf("it is not that of %s; a folder was renamed, or the file system takes upper and lower case for the same", name)
	}
	for n := 2; rest != ""; n++ {
		if k := len(s.members); k > 0 && s.members[k-1].Position >= last {
			break
		}
		text, tail, ok := strings.Cut(rest, "\n")
		if !ok {
			return nil, fmt.Errorf("line %d is cut off", n)
		}
		if err := s.parseLine(text); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		rest = tail
	}
	return s, nil
}

func (s *state) parseLine(text string) error {
	word, text, _ := strings.Cut(text, " ")
	id, value, ok := strings.Cut(text, " ")
	if !ok {
		return errors.New("it is too short")
	}
	switch word {
	case "record":
		return s.parseRecord(id, value)
	case "member", "pinned", "shared", "shared-pinned":
		shared, pinned := strings.HasPrefix(word, "shared"), strings.HasSuffix(word, "pinned")
		return s.parseMember(id, value, shared, pinned)
	}
	return fmt.Errorf("unknown word %q", word)
}

func (s *state) parseRecord(version, value string) error {
	if s.version != backend.Absent || len(s.members) > 0 {
		return errors.New("a record is out of place")
	}
	n, err := parseNumber(version)
	if err != nil {
		return err
	}
	s.version = backend.Version(n)
	s.record, err = base64.StdEncoding.Strict().DecodeString(value)
	return err
}

func (s *state) parseMember(key, quoted string, shared, pinned bool) error {
	position, err := parseKey(key)
	if err != nil {
		return err
	}
	if n := len(s.members); n > 0 && s.members[n-1].Position >= position {
		return fmt.Errorf("%s is out of order", key)
	}
	value, err := unquote(quoted)
	if err != nil {
		return err
	}
	if err := backend.CheckValue(value); err != nil {
		return err
	}
	s.members = append(s.members, backend.Member{Line: s.name, Key: key, Position: position, Value: value, Shared: shared, Pinned: pinned})
	return nil
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

// newest returns the largest number in s.
func (s *state) newest() uint64 {
	n := uint64(max(s.version, 0))
	if k := len(s.members); k > 0 {
		n = max(n, s.members[k-1].Position)
	}
	return n
}

// header returns the record as the header of an election.
func (s *state) header() (backend.Header, error) {
	if s.version == backend.Absent {
		return backend.Header{}, nil
	}
	return backend.ParseHeader(s.record)
}
