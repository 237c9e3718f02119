package zookeeper

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/succession-dev/succession/backend"
)

func TestSequence(t *testing.T) {
	for _, test := range []struct {
		name string
		seq  int32
		ok   bool
		bad  bool
	}{
		{"n_0000000133", 133, true, false},
		{"n_2147483647", math.MaxInt32, true, false},
		{"0000000001", 1, true, false},
		{"_c_6c1bd6c0-5b1a-4d5e-9f0a-2a5e3f1d8c77-latch-0000000007", 7, true, false},
		{"_c_9f86d081884c7d659a2feaa0c55ad015-0000000007", 7, true, false},
		{"9f86d081884c7d659a2feaa0c55ad015__lock__0000000007", 7, true, false},
		{"", 0, false, false},
		{"config", 0, false, false},
		{"n_", 0, false, false},
		{"n_123456789", 0, false, false}, // nine digits
		{"n_0000000001x", 0, false, false},
		{"n_-2147483648", 0, false, true},
		{"n_-1000000000", 0, false, true},
		{"n_-000000001", 0, false, true}, // %010d of -1
		{"-0000000001", 0, false, true},
		{"x-latch--2147483648", 0, false, true},
		{"9f86__lock__-000000042", 0, false, true},
		{"n_2147483648", 0, false, true},
		{"n_9999999999", 0, false, true},
		{"n_00000000001", 0, false, true},
		{"n_99999999999999999999999", 0, false, true},
	} {
		seq, ok, err := sequence(test.name)
		if seq != test.seq || ok != test.ok || (err != nil) != test.bad || err != nil && !errors.Is(err, backend.ErrLine) {
			t.Errorf("sequence(%q) = %d, %v, %v", test.name, seq, ok, err)
		}
	}
}

func TestPlaces(t *testing.T) {
	got, err := places([]string{"n_0000000010", "x", "a-latch-0000000002", "zz_0000000001", "b__lock__0000000003"})
	if want := "[{zz_0000000001 1} {a-latch-0000000002 2} {b__lock__0000000003 3} {n_0000000010 10}]"; err != nil || fmt.Sprint(got) != want {
		t.Errorf("%v, %v; want %s", got, err, want)
	}
	if _, err := places([]string{"a_0000000001", "n_0000000002", "b_0000000001"}); !errors.Is(err, backend.ErrLine) {
		t.Errorf("double number: %v", err)
	}
}

// A thread of Curator that holds the write lock and the read lock has two members with one
// number.
func TestPlacesOfDowngrade(t *testing.T) {
	for _, names := range [][]string{
		{"_c_a-__READ__0000000007", "_c_b-__WRIT__0000000007", "_c_c-__READ__0000000008"},
		{"_c_c-__READ__0000000008", "_c_a-__WRIT__0000000007", "_c_b-__READ__0000000007"},
	} {
		got, err := places(names)
		if err != nil || len(got) != 3 || isShared(got[0].key) || !isShared(got[1].key) || got[2].seq != 8 {
			t.Errorf("%q: %v, %v; want the writer, its reader, and the other", names, got, err)
		}
	}
	for _, names := range [][]string{
		{"_c_a-__READ__0000000007", "_c_b-__READ__0000000007"},
		{"_c_a-__WRIT__0000000007", "_c_b-__WRIT__0000000007"},
		{"_c_a-__WRIT__0000000007", "_c_b-__READ__0000000007", "_c_c-__READ__0000000007"},
		{"_c_a-__WRIT__2147483647", "_c_b-__READ__2147483647"}, // the counter stands still
	} {
		if got, err := places(names); !errors.Is(err, backend.ErrLine) {
			t.Errorf("%q: %v, %v; want ErrLine", names, got, err)
		}
	}
}

func FuzzSequence(f *testing.F) {
	for _, name := range []string{"n_0000000001", "n_-2147483648", "latch--000000001", "é0000000001", "-", "0"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		seq, ok, err := sequence(name)
		switch {
		case err != nil && (ok || !errors.Is(err, backend.ErrLine)):
			t.Errorf("%q: %d, %v, %v", name, seq, ok, err)
		case ok && (seq < 0 || len(name) < digits || name[len(name)-digits:] != fmt.Sprintf("%010d", seq)):
			t.Errorf("%q: %d", name, seq)
		case !ok && err == nil && seq != 0:
			t.Errorf("%q: %d", name, seq)
		}
	})
}

// The names of shared members are those of the documented recipe, alone or behind a mark, and
// those of the other libraries.
func TestIsShared(t *testing.T) {
	for name, want := range map[string]bool{
		"read-0000000001": true, "5f3a-read-0000000001": true, "read-": true,
		"_c_5f3a-__READ__0000000001": true, "5f3a__rlock__0000000001": true,
		"_c_5f3a-__WRIT__0000000001": false, "5f3a__lock__0000000001": false, "_c_5f3a-lock-0000000001": false,
		"write-0000000001": false, "n_0000000001": false, "thread-0000000001": false, "read_0000000001": false, "0000000001": false,
	} {
		if got := isShared(name); got != want {
			t.Errorf("%s is shared: %v, want %v", name, got, want)
		}
	}
}
