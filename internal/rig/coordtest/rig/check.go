package rig

import (
	"errors"
	"testing"

	"github.com/succession-dev/succession/backend"
)

// CheckWrites checks that the faults of writes do what [conformance.Faults] says. s is the session of the client c, and other is another's.
// arrives says that the coordinator takes a write over a connection that the client has replaced by another.
func CheckWrites(t *testing.T, c Client, s, other backend.Session, name string, arrives bool) {
	t.Helper()
	put := func(value string, want error) {
		t.Helper()
		if _, err := s.Put(t.Context(), name, []byte(value), nil); !errors.Is(err, want) {
			t.Fatalf("Put of %s: %v, want %v", value, err, want)
		}
	}
	is := func(want string) {
		t.Helper()
		if err := other.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if r, err := other.Get(t.Context(), name); err != nil || string(r.Value) != want {
			t.Fatalf("the record is %q (%v), want %q", r.Value, err, want)
		}
	}
	put("first", nil)
	c.LoseAnswer()
	put("unanswered", backend.ErrUnavailable)
	is("unanswered")
	for skip := range 2 {
		held, release := c.HoldBack(skip)
		for range skip {
			put("passes", nil)
			is("passes")
		}
		put("held back", backend.ErrUnavailable)
		if !held() {
			t.Fatal("nothing is held back")
		}
		put("next", nil)
		is("next")
		next, err := other.Get(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		release()
		if !arrives {
			is("next")
			continue
		}
		// It is on its way: nothing but the record tells when it has arrived.
		if r, err := other.Watch(t.Context(), name, next.Version); err != nil || string(r.Value) != "held back" {
			t.Fatalf("the record is %q (%v), want %q", r.Value, err, "held back")
		}
	}
}
