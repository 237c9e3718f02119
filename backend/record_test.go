package backend_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

func TestHeaderRoundTrip(t *testing.T) {
	for _, h := range []backend.Header{
		{},
		{Fence: 1},
		{Gate: 3, Notes: `{}`},
		{Fence: backend.MaxFence, Gate: math.MaxUint64, Sealed: `etcd://h1/"quoted"`, Needs: "weights", Notes: `{"a":[1,"\u003c"],"b":{}}`},
	} {
		got, err := backend.ParseHeader(h.Encode())
		if err != nil || got != h {
			t.Errorf("%+v came back as %+v, %v", h, got, err)
		}
	}
}

func TestParseHeader(t *testing.T) {
	tests := []struct {
		data string
		want backend.Header
		bad  bool
	}{
		{data: ""},
		{data: "10.0.0.7"},              // peers leave an address here
		{data: `{"leader":"somebody"}`}, // or JSON of their own
		{data: `{"succession":2,"fence":7}`, want: backend.Header{Fence: 7}},
		{data: `{"succession":2,"fence":-7}`, bad: true},
		{data: `{"succession":2,"fence":7`, bad: true},
		{data: `{"succession":2,"fence":7} trailing`, bad: true},
		{data: `{"succession":2,"fence":7,"needs":"x y"}`, want: backend.Header{Fence: 7, Needs: "x y"}},
		{data: `{"succession":2,"notes": {"z":[1, "<"] , "a":{}}}`, want: backend.Header{Notes: `{"z":[1,"\u003c"],"a":{}}`}},
		{data: `{"succession":2,"notes":{}}`, want: backend.Header{Notes: `{}`}},
		{data: `{"succession":2,"notes":7}`, bad: true},
		{data: `{"succession":2,"notes":null}`, bad: true},
		{data: `{"succession":2,"fence":7,"z":3}`, bad: true},     // something that drivers decide by
		{data: `{"succession":2,"fence":9,"FENCE":1}`, bad: true}, // whose fence is it?
		{data: `{"succession":2,"\u017fealed":"x"}`, bad: true},
		{data: `{"succession":2,"fence":null}`, bad: true},
		{data: `{"succession":2}}`, bad: true},
		{data: `{"succession":2,"fence":"7"}`, bad: true},
		{data: `{"succession":3,"fence":7}`, bad: true},
		{data: `{"succession":2,"fence":4611686018427387904}`, want: backend.Header{Fence: 1 << 62}},
		{data: `{"succession":2,"fence":4611686018427387905}`, bad: true},
		{data: `{"succession":2,"fence":18446744073709551615}`, bad: true},
	}
	for _, tt := range tests {
		got, err := backend.ParseHeader([]byte(tt.data))
		if tt.bad != errors.Is(err, backend.ErrHeader) || got != tt.want {
			t.Errorf("%q: got %+v, %v", tt.data, got, err)
		}
		if again, err := backend.ParseHeader(got.Encode()); err != nil || again != got {
			t.Errorf("%q: written again %q, which is %+v, %v", tt.data, got.Encode(), again, err)
		}
	}
}

// A header of another format says so, also if it has fields that this version does not know, and where it stands what to do.
func TestOtherFormat(t *testing.T) {
	for data, format := range map[string]string{
		`{"succession":1,"fence":7}`:                "1",
		`{"succession":1,"acknowledged":7}`:         "1",
		`{"succession":3,"fence":7,"z":3}`:          "3",
		`{"succession":3,"fence":"7","notes":2}`:    "3",
		`{"succession":0,"fence":7}`:                "0",
		`{"succession":null,"sealed":"x:"}`:         "null",
		`{"succession":2,"succession":0,"fence":3}`: "0",
		`{"succession":"2"}`:                        `"2"`,
		`{"succession":99999999999999999999999}`:    "99999999999999999999999",
	} {
		_, err := backend.ParseHeader([]byte(data))
		if !errors.Is(err, backend.ErrHeader) || !strings.Contains(err.Error(), "format "+format+", this version reads format 2; docs/compatibility.md says") {
			t.Errorf("%s: %v", data, err)
		}
	}
}

// Space around notes does not matter.
func TestEncodeSpace(t *testing.T) {
	h := backend.Header{Notes: "\n{ \"a\": 1 }\n"}
	if got, want := string(h.Encode()), `{"succession":2,"notes":{"a":1}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Notes that are no JSON object are never written.
func TestEncodeNotes(t *testing.T) {
	for _, notes := range []string{"7", "null", `{"a":`, `{} {}`, "nonsense", " "} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a header was written with the notes %s", notes)
				}
			}()
			backend.Header{Notes: notes}.Encode()
		}()
	}
}

// A standing is the line with its first member, and its header.
func TestStanding(t *testing.T) {
	first := backend.Member{Line: "e", Key: "a", Position: 3}
	r := backend.Record{Name: "e", Value: []byte(`{"succession":2,"fence":7}`), Version: 5}
	for stand, members := range [][]backend.Member{nil, {first}, {first}} {
		l, err := backend.Standing{Stand: stand, First: first, Record: r}.Line()
		if err != nil || !slices.Equal(l.Members, members) || l.Version != 5 || l.Header.Fence != 7 {
			t.Errorf("%d stand: %+v, %v", stand, l, err)
		}
	}
	r.Value = []byte(`{"succession":3}`)
	if _, err := (backend.Standing{Record: r}).Line(); !errors.Is(err, backend.ErrHeader) {
		t.Errorf("a header that cannot be read: %v", err)
	}
}

// Who does not know of what the header needs does not stand in the line; that the election has moved is told first.
func TestUnderstood(t *testing.T) {
	m, ahead := backend.Member{Key: "b", Position: 2}, backend.Member{Key: "a", Position: 1}
	h := backend.Header{Needs: "weights"}
	for _, front := range []*backend.Member{nil, &ahead} {
		if p, err := kit.PlaceOf(m, front, h); !errors.Is(err, backend.ErrHeader) || !strings.Contains(err.Error(), "weights") || p != (backend.Place{}) {
			t.Errorf("behind %v: %+v, %v", front, p, err)
		}
	}
	h.Sealed = "etcd://elsewhere"
	if _, err := kit.PlaceOf(m, nil, h); !errors.Is(err, backend.ErrSealed) {
		t.Errorf("sealed: %v", err)
	}
}

// A token is the sum of a fence and a position, which neither wraps nor leaves the signed numbers of a database. Where there
// is no such sum nobody is first.
func TestToken(t *testing.T) {
	tests := []struct{ fence, position, want uint64 }{
		{0, 7, 7},
		{1000, 7, 1007},
		{1 << 62, 1<<62 - 1, math.MaxInt64},
		{1<<62 + 1, 1, 0},
		{math.MaxUint64 - 5, 75, 0},
		{math.MaxUint64, 1, 0},
		{0, 1 << 62, 0},
		{0, math.MaxUint64, 0}, // a negative number of the coordinator
	}
	for _, tt := range tests {
		h, m := backend.Header{Fence: tt.fence}, backend.Member{Position: tt.position}
		got, err := h.Token(tt.position)
		if got != tt.want || (tt.want == 0) != errors.Is(err, backend.ErrHeader) {
			t.Errorf("fence %d, position %d: the token is %d, %v; want %d", tt.fence, tt.position, got, err, tt.want)
		}
		if got := (backend.Line{Header: h}).Token(m); got != tt.want {
			t.Errorf("fence %d, position %d: the line says token %d, want %d", tt.fence, tt.position, got, tt.want)
		}
		if p, placed := kit.PlaceOf(m, nil, h); p.Token != tt.want || (placed == nil) != (err == nil) {
			t.Errorf("fence %d, position %d: the place is %+v, %v", tt.fence, tt.position, p, placed)
		}
	}
}

// FuzzParseHeader looks for a header that is taken but does not survive being
// written again: its fence would be lost.
func FuzzParseHeader(f *testing.F) {
	f.Add([]byte(`{"succession":2,"fence":7,"sealed":"x"}`))
	f.Add([]byte(`{"succession":2}`))
	f.Add([]byte(`{"succession":2,"gate":3,"needs":"x","notes":{"z":[1, "<"],"elect":{"x":{}},"a":{}}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := backend.ParseHeader(b)
		if err != nil {
			return
		}
		if token, err := h.Token(1); err != nil || token <= h.Fence {
			t.Errorf("%q has the token %d, %v at position 1", b, token, err)
		}
		if again, err := backend.ParseHeader(h.Encode()); err != nil || again != h {
			t.Errorf("%q is %+v, which comes back as %+v, %v", b, h, again, err)
		}
	})
}

func TestCheckName(t *testing.T) {
	good := []string{"reports", "app/leader_election", "a", "a.b-c_d/E/9", "azAZ09", "...", strings.Repeat("x", backend.MaxName)}
	for _, n := range good {
		if err := backend.CheckName(n); err != nil {
			t.Errorf("%q: %v", n, err)
		}
	}
	for n, why := range map[string]string{
		"": "is empty", "/a": "begins with a slash", "a/": "ends with a slash", "a//b": "an empty segment", ".": "must not be .", "a/..": "must not be ..",
		"a b": "' '", "a\x00": "'\\x00'", "ä": "'ä'", "a%2fb": "'%'", "a\\b": "is not possible", strings.Repeat("x", backend.MaxName+1): "256 bytes, at most 255",
	} {
		if err := backend.CheckName(n); !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: got %v, want ErrInvalid that says %s", n, err, why)
		}
	}
}

func TestCheckValue(t *testing.T) {
	for _, v := range []string{"", "web-1", "ü\n", strings.Repeat("x", backend.MaxValue)} {
		if err := backend.CheckValue(v); err != nil {
			t.Errorf("%.20q: %v", v, err)
		}
	}
	for _, v := range []string{"\xff", strings.Repeat("x", backend.MaxValue+1)} {
		if err := backend.CheckValue(v); !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("%.20q: got %v, want ErrInvalid", v, err)
		}
	}
}

func TestErrorsReadWell(t *testing.T) {
	err := error(&backend.Error{Backend: "zookeeper", Op: "join", Name: "reports", Err: &backend.SealedError{To: "etcd://h1"}})
	const want = "zookeeper: join reports: election is sealed: it went to etcd://h1; run this process with that URL"
	if err.Error() != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
	if !errors.Is(err, backend.ErrSealed) {
		t.Error("it is not ErrSealed")
	}
}
