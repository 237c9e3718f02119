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
