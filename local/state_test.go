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
		pinned(newMember("e", 2, "quote \" newline \n umlaut ü", false)),
		pinned(newMember("e", 4, "", true)),
		pinned(newMember("e", limit-1, strings.Repeat("x", backend.MaxValue), false)),
	}},
}

// loose has the members of a @line.
var loose = &state{name: "e", version: backend.Absent, members: []backend.Member{
	newMember("e", 1, "", false),
	newMember("e", 2, "quote \" newline \n umlaut ü", false),
	newMember("e", 3, "together", true),
	newMember("e", limit-1, strings.Repeat("x", backend.MaxValue), false),
}}

// linesOf returns members as the text of a file of the kind.
func linesOf(kind string, members ...backend.Member) lines {
	st := &state{name: "e", members: members}
	return lines{kind: kind, name: "e", text: st.text(func(backend.Member) bool { return true })}
}

// bodyOf returns the body of a @line.
func bodyOf(s *state) []byte {
	l := linesOf(kindLine, s.members...)
	return l.encode()
}

// encode returns the body of a @state.
func encode(s *state) []byte {
	return s.encode(s.text(func(m backend.Member) bool { return m.Pinned }))
}

// parseState reads what [encode] wrote, and nothing else.
func parseState(name string, body []byte) (*state, error) {
	s, pins, err := parseRecord("", name, body)
	if err == nil {
		s.members, err = pins.whole()
	}
	if err != nil {
		return nil, err
	}
	return s, nil
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
		body, err := unseal(kindState, seal(kindState, encode(want)))
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

func TestLineRoundTrip(t *testing.T) {
	body, err := unseal(kindLine, seal(kindLine, bodyOf(loose)))
	if err != nil {
		t.Fatal(err)
	}
	l, err := parseLines(kindLine, "", "e", body)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := l.whole(); err != nil || !slices.Equal(got, loose.members) {
		t.Errorf("got  %+v, %v\nwant %+v", got, err, loose.members)
	}
}

// TestJoin says who stands if one reads @line, @state, and @line once more, while others join, pin, and leave.
func TestJoin(t *testing.T) {
	one, two, three, four := newMember("e", 1, "", false), newMember("e", 2, "", false), newMember("e", 3, "", false), newMember("e", 4, "", false)
	tests := map[string]struct {
		first, pins, again, want []backend.Member
	}{
		"nobody is pinned":                      {[]backend.Member{one, two}, nil, nil, []backend.Member{one, two}},
		"only items":                            {nil, []backend.Member{pinned(one), pinned(two)}, nil, []backend.Member{pinned(one), pinned(two)}},
		"a gate":                                {[]backend.Member{two, three}, []backend.Member{pinned(one)}, []backend.Member{two, three}, []backend.Member{pinned(one), two, three}},
		"a seal, which is still in @line":       {[]backend.Member{one, two}, []backend.Member{pinned(one)}, []backend.Member{one, two}, []backend.Member{pinned(one), two}},
		"one joined in front of an item":        {[]backend.Member{one}, []backend.Member{pinned(three)}, []backend.Member{one, two}, []backend.Member{one, two, pinned(three)}},
		"one joined behind it":                  {[]backend.Member{one}, []backend.Member{pinned(two)}, []backend.Member{one, three}, []backend.Member{one, pinned(two)}},
		"nobody had joined, and one has since":  {nil, []backend.Member{pinned(two)}, []backend.Member{one, three}, []backend.Member{one, pinned(two)}},
		"one was taken out as dead, and pinned": {[]backend.Member{one, two}, []backend.Member{pinned(three)}, []backend.Member{two, four}, []backend.Member{one, two, pinned(three)}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			im := &image{state: *absent("e"), pins: linesOf(kindState, test.pins...), loose: linesOf(kindLine, test.first...)}
			if err := im.join(linesOf(kindLine, test.again...)); err != nil {
				t.Fatal(err)
			}
			if got, err := im.line.whole(); err != nil || !slices.Equal(got, test.want) {
				t.Errorf("got  %+v, %v\nwant %+v", got, err, test.want)
			}
		})
	}
}

// TestLines says that members are found in a line of any length, whatever their values are, and
// nobody else is.
func TestLines(t *testing.T) {
	all := &state{name: "e"}
	for n := range 40 {
		l, err := parseLines(kindLine, "", "e", bodyOf(all))
		if err != nil || l.count() != n || !bytes.Equal(l.encode(), bodyOf(all)) {
			t.Fatalf("the text of %d members has %d, %v:\n%s", n, l.count(), err, l.encode())
		}
		im := &image{state: state{name: "e", version: 3}, line: l}
		if newest, err := im.newest(); err != nil || newest != uint64(10*n+3) {
			t.Errorf("newest of %d: %d, %v", n, newest, err)
		}
		for position := range uint64(10*n + 20) {
			want := backend.Member{}
			if position > 3 && position%10 == 3 && position <= uint64(10*n+3) {
				want = all.members[position/10-1]
			}
			got, ok, err := l.get(position)
			if err != nil || ok != (want.Position != 0) || ok && got != want {
				t.Fatalf("in a line of %d at %d: %+v, %t, %v; want %+v", n, position, got, ok, err, want)
			}
			rest := l
			removed, err := rest.remove(position)
			others := slices.DeleteFunc(slices.Clone(all.members), func(m backend.Member) bool { return m.Position == position })
			if err != nil || removed != ok || !bytes.Equal(rest.text, linesOf(kindLine, others...).text) || !bytes.Equal(l.encode(), bodyOf(all)) {
				t.Fatalf("%d removed from a line of %d: %t, %v:\n%s", position, n, removed, err, rest.text)
			}
		}
		position := uint64(10*n + 13)
		all.members = append(all.members, newMember("e", position, strings.Repeat(" "+key(position-10)+" ", n), n%3 == 0))
	}
}

// TestStateDamage says that no file that was cut off, or in which one byte was
// changed, is read.
func TestStateDamage(t *testing.T) {
	files := map[string][]byte{
		kindState: seal(kindState, encode(&state{name: "e", version: 7, record: []byte("r"), members: []backend.Member{
			pinned(newMember("e", 18, "a", false)), pinned(newMember("e", 12345678901, "b", false))}})),
		kindLine: seal(kindLine, bodyOf(&state{members: []backend.Member{newMember("e", 18, "a", false), newMember("e", 12345678901, "b", false)}})),
		kindNext: formatNext(12345, 13369),
	}
	read := func(kind string, file []byte) error {
		if kind == kindNext {
			_, _, err := parseNext(file)
			return err
		}
		body, err := unseal(kind, file)
		if err == nil && kind == kindState {
			_, err = parseState("e", body)
		} else if err == nil {
			var l lines
			if l, err = parseLines(kind, "", "e", body); err == nil {
				_, err = l.whole()
			}
		}
		return err
	}
	for kind, file := range files {
		if err := read(kind, file); err != nil {
			t.Fatal(err)
		}
		for i := range file {
			if read(kind, file[:i]) == nil {
				t.Errorf("cut off after %d bytes, it was read:\n%s", i, file[:i])
			}
			for _, flip := range []byte{1, 0x10, 0x80} {
				bad := bytes.Clone(file)
				bad[i] ^= flip
				if read(kind, bad) == nil {
					t.Errorf("with byte %d changed, it was read:\n%s", i, bad)
				}
			}
		}
	}
}

// TestOtherVersion says that files of another version of this package are refused, and the error says why.
func TestOtherVersion(t *testing.T) {
	for kind, file := range map[string]string{kindState: "succession state 1 00000000\n", kindCounter: "succession counter 1 00000000\n", kindLine: "succession line 9 00000000\n"} {
		if _, err := unseal(kind, []byte(file)); err == nil || !strings.Contains(err.Error(), "another version") {
			t.Errorf("%q: %v", file, err)
		}
	}
}

func TestParseStateRefuses(t *testing.T) {
	tests := map[string]string{
		"another name":        "name f\n",
		"a cut line":          "name e\npinned n_0000000001 \"\"",
		"unknown word":        "name e\npinne n_0000000001 \"\"\n",
		"no value":            "name e\npinned n_0000000001\n",
		"position 0":          "name e\npinned n_0000000000 \"\"\n",
		"a short key":         "name e\npinned n_1 \"\"\n",
		"a long key":          "name e\npinned n_00000000001 \"\"\n",
		"no key":              "name e\nmember 0000000000001 \"\"\n",
		"a signed key":        "name e\npinned n_+000000001 \"\"\n",
		"a huge position":     "name e\npinned n_4611686018427387904 \"\"\n",
		"positions equal":     "name e\npinned n_0000000002 \"\"\npinned n_0000000002 \"\"\n",
		"positions fall":      "name e\npinned n_0000000002 \"\"\npinned n_0000000001 \"\"\n",
		"value not quoted":    "name e\npinned n_0000000001 a\n",
		"value half quoted":   "name e\npinned n_0000000001 \"\n",
		"value quoted oddly":  "name e\npinned n_0000000001 \"\\x41\"\n",
		"value not UTF-8":     "name e\npinned n_0000000001 \"\\xff\"\n",
		"two records":         "name e\nrecord 1 \nrecord 2 \n",
		"a record at the end": "name e\npinned n_0000000001 \"\"\nrecord 2 \n",
		"version 0":           "name e\nrecord 0 \n",
		"version 01":          "name e\nrecord 01 \n",
		"not base64":          "name e\nrecord 1 *\n",
		"an empty line":       "name e\n\n",
		"one not pinned":      "name e\nmember n_0000000001 \"\"\n",
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
		f.Add(s.name, encode(s))
	}
	f.Add("e", []byte("name e\npinned n_0000000001 `x`\n"))
	f.Add("e", []byte("name e\nrecord 1 YQ=\n"))
	f.Fuzz(func(t *testing.T, name string, body []byte) {
		s, err := parseState(name, body)
		if err != nil {
			return
		}
		if got := encode(s); !bytes.Equal(got, body) {
			t.Errorf("%q is written back as %q", body, got)
		}
		for i, m := range s.members {
			if i > 0 && s.members[i-1].Position >= m.Position {
				t.Errorf("positions %d, %d", s.members[i-1].Position, m.Position)
			}
		}
	})
}

// FuzzParseLine says that the quick way to read a line finds what the whole parser does, and that the parser takes
// exactly what is written.
func FuzzParseLine(f *testing.F) {
	f.Add(bodyOf(loose))
	f.Add(bodyOf(&state{}))
	f.Fuzz(func(t *testing.T, body []byte) {
		l, err := parseLines(kindLine, "@line", "e", body)
		if err != nil {
			return
		}
		members, err := l.whole()
		if err != nil {
			return
		}
		if got := bodyOf(&state{members: members}); !bytes.Equal(got, body) {
			t.Errorf("%q is written back as %q", body, got)
		}
		if l.count() != len(members) {
			t.Errorf("%d members, and %d are counted", len(members), l.count())
		}
		for _, m := range members {
			if got, ok, err := l.get(m.Position); err != nil || !ok || got != m {
				t.Errorf("at %d is %+v, %t, %v, want %+v", m.Position, got, ok, err, m)
			}
			if m.Pinned {
				t.Errorf("%+v is pinned", m)
			}
		}
	})
}
