package header_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/memory"
)

func fence(t *testing.T, c *memory.Coordinator, election string) uint64 {
	t.Helper()
	h, err := backend.ParseHeader(c.Record(election).Value)
	if err != nil {
		t.Fatal(err)
	}
	return h.Fence
}

func session(t *testing.T, c *memory.Coordinator) backend.Session {
	t.Helper()
	b := c.Client("a")
	t.Cleanup(func() { b.Close() })
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Raise does not lower a fence. After the election was deleted, Restore brings its fence back,
// unless the election's name leaves no room for the name of the second record.
func TestRestore(t *testing.T) {
	long := strings.Repeat("e", backend.MaxName)
	for name, want := range map[string]uint64{"reports": 1000, long: 0} {
		synctest.Test(t, func(t *testing.T) {
			c := memory.New(nil)
			s := session(t, c)
			for _, to := range []uint64{1000, 7} {
				if err := header.Raise(t.Context(), s, name, backend.Member{}, to); err != nil {
					t.Fatal(err)
				}
			}
			if got := fence(t, c, name); got != 1000 {
				t.Errorf("the fence of %.10s is %d; want 1000", name, got)
			}
			c.Drop(name)
			m, err := s.Join(t.Context(), name, "", "")
			if err != nil {
				t.Fatal(err)
			}
			if err := header.Restore(t.Context(), s, m.Member); err != nil {
				t.Fatal(err)
			}
			if got := fence(t, c, name); got != want {
				t.Errorf("after a deletion the fence of %.10s is %d; want %d", name, got, want)
			}
		})
	}
}

// A member that has left restores nothing, because its write might arrive at any later time.
func TestRestoreByWhoHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memory.New(nil)
		s := session(t, c)
		if err := header.Raise(t.Context(), s, "reports", backend.Member{}, 1000); err != nil {
			t.Fatal(err)
		}
		c.Drop("reports")
		m, err := s.Join(t.Context(), "reports", "", "")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Leave(t.Context(), m.Member); err != nil {
			t.Fatal(err)
		}
		if err := header.Restore(t.Context(), s, m.Member); !errors.Is(err, backend.ErrNotMember) {
			t.Errorf("got %v, want ErrNotMember", err)
		}
		if got := fence(t, c, "reports"); got != 0 {
			t.Errorf("the fence is %d; want 0", got)
		}
	})
}

// What acknowledges the term of a member that stands names it under its new token too. What is older, or no token, stays.
func TestRaiseKeepsWhoIsMeant(t *testing.T) {
	for _, tt := range []struct{ was, want uint64 }{{3, 3}, {9, 1002}, {math.MaxUint64, math.MaxUint64}} {
		synctest.Test(t, func(t *testing.T) {
			c := memory.New(nil)
			s := session(t, c)
			if _, err := s.Put(t.Context(), "reports", header.Header{Fence: 7, Acknowledged: tt.was, Resign: tt.was}.Encode(), nil); err != nil {
				t.Fatal(err)
			}
			if err := header.Raise(t.Context(), s, "reports", backend.Member{}, 1000); err != nil {
				t.Fatal(err)
			}
			h, err := header.Parse(c.Record("reports").Value)
			if err != nil || h.Acknowledged != tt.want || h.Resign != tt.was {
				t.Errorf("of %d: got %+v, %v; want %d, and the request to resign as it was", tt.was, h, err, tt.want)
			}
		})
	}
}

// A fence is raised and restored also where notes cannot be understood: neither needs them, and they stay.
func TestRaiseBesideDamagedNotes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memory.New(nil)
		s := session(t, c)
		if _, err := s.Put(t.Context(), "reports", []byte(`{"succession":2,"fence":7,"notes":{"elect":7}}`), nil); err != nil {
			t.Fatal(err)
		}
		if err := header.Raise(t.Context(), s, "reports", backend.Member{}, 1000); err != nil {
			t.Fatal(err)
		}
		if got, want := string(c.Record("reports").Value), `{"succession":2,"fence":1000,"notes":{"elect":7}}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if err := header.Update(t.Context(), s, "reports", backend.Member{}, func(*header.Header) bool { return true }); !errors.Is(err, backend.ErrHeader) {
			t.Errorf("an update of what cannot be understood: %v", err)
		}
	})
}

// An empty header is one, and so is one that cannot be understood.
func TestIs(t *testing.T) {
	for value, want := range map[string]bool{
		"": false, "{}": false, "position 7": false, `{"succession":9}`: true, `{"succession":`: true,
		string(header.Header{}.Encode()): true, string(header.Header{Fence: 7}.Encode()): true,
	} {
		if header.Is([]byte(value)) != want {
			t.Errorf("Is(%q) is %v", value, !want)
		}
	}
}
