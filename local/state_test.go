package local

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/succession-dev/succession/backend"
)

var states = []*state{
	{name: "e", version: backend.Absent},
	{name: "a/b", version: 1, record: []byte{}},
	{name: "a/b", version: 7, record: []byte("\x00\xff\n")},
	{name: "e", version: backend.Absent, members: []backend.Member{
		newMember("e", 1, "", false),
		pinned(newMember("e", 2, "quote \" newline \n umlaut ü", false)),
		newMember("e", 3, "together", true),
		pinned(newMember("e", 4, "", true)),
		newMember("e", limit-1, strings.Repeat("x", backend.MaxValue), false),
	}},
}

func newMember(line string, position uint64, value string, shared bool) backend.Member {
	return backend.Member{Line: line, Key: key(position), Position: position, Value: value, Shared: shared}
}

func pinned(m backend.Member) backend.Member {
	m.Pinned = true
	return m
}

func TestStateRoundTrip(t *testing.T) {
	for _, want := range states {
		body, err := unseal(kindState, seal(kindState, want.encode()))
		if err != nil {
			t.Fatal(err)
		}
		got, err := parseState(want.name, body)
		if err != nil {
			t.Fatalf("%v\n%s", err, body)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	}
}

// TestImage says that members are found in a line of any length, whatever their values are, and
// nobody else is.
func TestImage(t *testing.T) {
	all := &state{name: "e", version: 3, record: []byte("r")}
	for n := range 40 {
		im, err := parseImage("", "e", all.encode())
		if err != nil || im.listed() != n || !bytes.Equal(im.encode(), all.encode()) {
			t.Fatalf("the image of %d members has %d, %v:\n%s", n, im.listed(), err, im.encode())
		}
		if newest, err := im.newest(); err != nil || newest != uint64(10*n+3) {
			t.Errorf("newest of %d: %d, %v", n, newest, err)
		}
		for position := range uint64(10*n + 20) {
			want := backend.Member{}
			if position > 3 && position%10 == 3 && position <= uint64(10*n+3) {
				want = all.members[position/10-1]
			}
			got, ok, err := im.get(position)
			if err != nil || ok != (want.Position != 0) || ok && got != want {
				t.Fatalf("in a line of %d at %d: %+v, %t, %v; want %+v", n, position, got, ok, err, want)
			}
		}
		position := uint64(10*n + 13)
		all.members = append(all.members, newMember("e", position, strings.Repeat(" "+key(position-10)+" ", n), n%3 == 0))
	}
}

// TestStateDamage says that no file that was cut off, or in which one byte was
// changed, is read.
func TestStateDamage(t *testing.T) {
	file := seal(kindState, (&state{name: "e", version: 7, record: []byte("r"), members: []backend.Member{
		newMember("e", 18, "a", false), pinned(newMember("e", 12345678901, "b", false))}}).encode())
	read := func(file []byte) error {
		body, err := unseal(kindState, file)
		if err == nil {
			_, err = parseState("e", body)
		}
		return err
	}
	if err := read(file); err != nil {
		t.Fatal(err)
	}
	for i := range file {
		if read(file[:i]) == nil {
			t.Errorf("cut off after %d bytes, it was read:\n%s", i, file[:i])
		}
		for _, flip := range []byte{1, 0x10, 0x80} {
			bad := bytes.Clone(file)
			bad[i] ^= flip
			if read(bad) == nil {
				t.Errorf("with byte %d changed, it was read:\n%s", i, bad)
			}
		}
	}
}

func TestParseStateRefuses(t *testing.T) {
	tests := map[string]string{
		"another name":        "name f\n",
		"a cut line":          "name e\nmember n_0000000001 \"\"",
		"unknown word":        "name e\nmembre n_0000000001 \"\"\n",
		"no value":            "name e\nmember n_0000000001\n",
		"position 0":          "name e\nmember n_0000000000 \"\"\n",
		"a short key":         "name e\nmember n_1 \"\"\n",
		"a long key":          "name e\nmember n_00000000001 \"\"\n",
		"no key":              "name e\nmember 0000000000001 \"\"\n",
		"a signed key":        "name e\nmember n_+000000001 \"\"\n",
		"a huge position":     "name e\nmember n_4611686018427387904 \"\"\n",
		"positions equal":     "name e\nmember n_0000000002 \"\"\nmember n_0000000002 \"\"\n",
		"positions fall":      "name e\nmember n_0000000002 \"\"\nmember n_0000000001 \"\"\n",
		"value not quoted":    "name e\nmember n_0000000001 a\n",
		"value half quoted":   "name e\nmember n_0000000001 \"\n",
		"value quoted oddly":  "name e\nmember n_0000000001 \"\\x41\"\n",
		"value not UTF-8":     "name e\nmember n_0000000001 \"\\xff\"\n",
		"two records":         "name e\nrecord 1 \nrecord 2 \n",
		"a record at the end": "name e\nmember n_0000000001 \"\"\nrecord 2 \n",
		"version 0":           "name e\nrecord 0 \n",
		"version 01":          "name e\nrecord 01 \n",
		"not base64":          "name e\nrecord 1 *\n",
		"an empty line":       "name e\n\n",
	}
	for name, body := range tests {
		t.Run(name, func(t *testing.T) {
			if s, err := parseState("e", []byte(body)); err == nil {
				t.Errorf("%q was read as %+v", body, s)
			}
		})
	}
}

// FuzzParseState says that the parser takes exactly what encode writes: what it
// reads, encode writes back byte for byte.
func FuzzParseState(f *testing.F) {
	for _, s := range states {
		f.Add(s.name, s.encode())
	}
	f.Add("e", []byte("name e\nmember n_0000000001 `x`\n"))
	f.Add("e", []byte("name e\nrecord 1 YQ=\n"))
	f.Fuzz(func(t *testing.T, name string, body []byte) {
		s, err := parseState(name, body)
		if err != nil {
			return
		}
		if got := s.encode(); !bytes.Equal(got, body) {
			t.Errorf("%q is written back as %q", body, got)
		}
		for i, m := range s.members {
			if i > 0 && s.members[i-1].Position >= m.Position {
				t.Errorf("positions %d, %d", s.members[i-1].Position, m.Position)
			}
		}
	})
}

// FuzzParseImage says that the quick way to read a line finds what the whole parser does.
func FuzzParseImage(f *testing.F) {
	for _, s := range states {
		f.Add(s.encode())
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		im, err := parseImage("@state", "e", body)
		s, whole := parseState("e", body)
		if err != nil {
			if whole == nil {
				t.Fatalf("%q can be read, and not quickly: %v", body, err)
			}
			return
		}
		var members []backend.Member
		for at := 0; at < len(im.line); {
			m, next, err := im.member(at)
			if err != nil {
				if whole == nil {
					t.Fatalf("%q can be read, and not quickly: %v", body, err)
				}
				return
			}
			members, at = append(members, m), next
		}
		if whole == nil && (!slices.Equal(members, s.members) || im.version != s.version || !bytes.Equal(im.record, s.record)) {
			t.Errorf("%q is read quickly as %+v of version %d, and otherwise as %+v of %d", body, members, im.version, s.members, s.version)
		}
	})
}
