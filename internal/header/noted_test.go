package header_test

import (
	"errors"
	"math"
	"testing"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/header"
)

// What is noted comes back, and a driver sees only what it decides by.
func TestNotes(t *testing.T) {
	for _, h := range []header.Header{
		{},
		{Fence: 1, Sealed: "etcd://h1", Needs: "weights"},
		{Acknowledged: math.MaxUint64, Resign: 7, Asked: "op-1\nbecause of <x>"},
		{Choice: header.Choice{Readiness: true, Ranked: true, Site: "s", Wish: header.Wish{Key: "k", Position: 2, Until: 3}, Gate: 4}},
		{Migration: header.Migration{ID: "m", From: "a", To: "b", Step: "begun", Gate: 5, Seal: true, Over: 6}},
		{Migration: header.Migration{Gate: 5}, Later: `{"elect":{"x":1},"z":[1,2]}`},
	} {
		stored := h.Stored()
		if stored.Fence != h.Fence || stored.Sealed != h.Sealed || stored.Needs != h.Needs || stored.Gate != h.Migration.Gate {
			t.Errorf("%+v is stored as %+v", h, stored)
		}
		if got, err := header.Of(stored); err != nil || got != h {
			t.Errorf("%+v came back as %+v, %v", h, got, err)
		}
		if got, err := header.Parse(h.Encode()); err != nil || got != h {
			t.Errorf("%+v was read as %+v, %v", h, got, err)
		}
	}
	if h := (header.Header{Migration: header.Migration{Gate: 5}}).Stored(); h != (backend.Header{Gate: 5}) {
		t.Errorf("a gate alone has notes: %+v", h)
	}
}

// What a later version has noted is kept. Notes that could be read in two ways, or that are of another kind, are refused.
func TestOf(t *testing.T) {
	for _, tt := range []struct {
		notes string
		want  header.Header
		bad   bool
	}{
		{notes: ""},
		{notes: "{}"},
		{notes: `{"z":[1,2],"a":{}}`, want: header.Header{Later: `{"a":{},"z":[1,2]}`}},
		{notes: `{"elect":{"x":1,"choice":{"site":"n","y":2}},"migrate":{"y":2,"id":"m"}}`,
			want: header.Header{Choice: header.Choice{Site: "n"}, Migration: header.Migration{ID: "m"}, Later: `{"elect":{"choice":{"y":2},"x":1},"migrate":{"y":2}}`}},
		{notes: `{"elect":{"choice":{"wish":{"key":"k","why":"w"}}}}`,
			want: header.Header{Choice: header.Choice{Wish: header.Wish{Key: "k"}}, Later: `{"elect":{"choice":{"wish":{"why":"w"}}}}`}},
		{notes: `{"elect":null,"-":2}`, want: header.Header{Later: `{"-":2}`}},
		{notes: `{"elect":7}`, bad: true},
		{notes: `{"elect":{"resign":-1}}`, bad: true},
		{notes: `{"elect":{"choice":{"Site":"n"}}}`, bad: true}, // whose site is it?
		{notes: `{"Migrate":{}}`, bad: true},
		{notes: `{"migrate":{"\u017ftep":"x"}}`, bad: true},
	} {
		got, err := header.Of(backend.Header{Notes: tt.notes})
		if tt.bad != errors.Is(err, backend.ErrHeader) || got != tt.want {
			t.Errorf("%s: %+v, %v", tt.notes, got, err)
		}
		if _, err := header.LineOf(backend.Line{Header: backend.Header{Notes: tt.notes}}); tt.bad != errors.Is(err, backend.ErrHeader) {
			t.Errorf("a line with %s: %v", tt.notes, err)
		}
	}
}

// What this version knows is not replaced by what a later one is said to have added.
func TestStoredLater(t *testing.T) {
	h := header.Header{Resign: 7, Later: `{"elect":{"resign":1,"x":2},"z":3}`}
	if got, want := string(h.Encode()), `{"succession":2,"notes":{"elect":{"resign":7,"x":2},"z":3}}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// An election is paused while the gate stands that its header names, which is pinned.
func TestPaused(t *testing.T) {
	gate := backend.Member{Key: "gate", Position: 2, Pinned: true}
	other := backend.Member{Key: "other", Position: 1, Pinned: true}
	open := gate
	open.Pinned = false
	choice := header.Header{Choice: header.Choice{Gate: 2}}
	for _, tt := range []struct {
		line header.Line
		want backend.Member
	}{
		{header.Line{Header: choice, Members: []backend.Member{other, gate}}, gate},
		{header.Line{Header: choice, Members: []backend.Member{other}}, backend.Member{}},
		{header.Line{Header: choice, Members: []backend.Member{open}}, backend.Member{}},
		{header.Line{Members: []backend.Member{other, gate}}, backend.Member{}},
	} {
		if got, paused := tt.line.Paused(); got != tt.want || paused != (tt.want == gate) {
			t.Errorf("%+v: the gate is %+v, %t", tt.line, got, paused)
		}
	}
}

// Whatever stands in the notes of a header, it is refused, or the same after it was written again.
func FuzzOf(f *testing.F) {
	f.Add([]byte(`{"succession":2,"gate":3,"notes":{"elect":{"resign":7,"choice":{"x":[1, "<"]}},"z":null}}`))
	f.Add([]byte(`{"succession":2,"notes":{"migrate":{"y":null,"id":"m"},"migrate":{"over":7},"elect":null}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := header.Parse(b)
		if err != nil {
			return
		}
		if again, err := header.Parse(h.Encode()); err != nil || again != h {
			t.Errorf("%q is %+v, which comes back as %+v, %v", b, h, again, err)
		}
	})
}

// What a later version has noted goes along, in whatever note it stands; what it has noted of a migration does not.
func TestWithLater(t *testing.T) {
	for _, tt := range []struct{ from, to, want string }{
		{"", "", ""},
		{`{"x":1}`, "", `{"x":1}`},
		{"", `{"more":1}`, `{"more":1}`},
		{`{"migrate":{"x":1},"x":1}`, `{"migrate":{"y":1},"more":1}`, `{"migrate":{"y":1},"more":1,"x":1}`},
		{`{"migrate":{"x":1}}`, "", ""},
		{`{"more":2}`, `{"more":1}`, `{"more":2}`},
		{`{"elect":{"weights":1,"choice":{"a":1}}}`, `{"elect":{"quorums":2,"choice":{"b":2}}}`, `{"elect":{"choice":{"a":1,"b":2},"quorums":2,"weights":1}}`},
	} {
		if got := (header.Header{Resign: 7, Later: tt.to}).WithLater(header.Header{Resign: 8, Later: tt.from}); got != (header.Header{Resign: 7, Later: tt.want}) {
			t.Errorf("%q to %q: %+v, want %q", tt.from, tt.to, got, tt.want)
		}
	}
	for _, tt := range [][3]string{{"", "", ""}, {"x", "", "x"}, {"", "y", "y"}, {"x", "y", "y; x"}, {"x", "y; x", "y; x"}} {
		if got := (header.Header{Needs: tt[1]}).WithLater(header.Header{Needs: tt[0]}); got.Needs != tt[2] {
			t.Errorf("what one needs, %q, and the other, %q, became %q", tt[0], tt[1], got.Needs)
		}
	}
}

// Whatever others have written into the headers of both coordinators, what is written of both is read as it was written, says that there is
// something to know of if one of them does, and changes nothing that this version knows.
func FuzzWithLater(f *testing.F) {
	for _, s := range [][2]string{
		{`{"succession":2,"needs":"x"}`, `{"succession":2,"notes":{"migrate":{"y":1,"id":"m"},"z":2}}`},
		{`{"succession":2,"notes":{"elect":{"choice":{"x":{}}},"migrate":{"y":null}}}`, `{"succession":2,"notes":{"elect":7}}`},
		{`{"succession":2,"notes":{"z":1,"z":2}}`, `{"succession":2,"gate":7,"notes":{"elect":{"choice":{"x":1,"site":"s"}}}}`},
	} {
		f.Add([]byte(s[0]), []byte(s[1]))
	}
	f.Fuzz(func(t *testing.T, old, young []byte) {
		from, err := header.Parse(old)
		if err != nil {
			return
		}
		to, err := header.Parse(young)
		if err != nil {
			return
		}
		both := to.WithLater(from)
		if again, err := header.Parse(both.Encode()); err != nil || again != both {
			t.Errorf("of %s and %s came %s, which is read as %+v, %v", old, young, both.Encode(), again, err)
		}
		if from.Stored().Understood() != nil && both.Stored().Understood() == nil {
			t.Errorf("of %s and %s came %s, which everybody understands", old, young, both.Encode())
		}
		if both.Later, both.Needs = to.Later, to.Needs; both != to {
			t.Errorf("of %s and %s came %+v", old, young, both)
		}
	})
}
