package mutant

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// as runs f as mutant n, and returns which mutants it has reached.
func as(t *testing.T, n int, f func()) (reached []string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "reached")
	t.Setenv("MUTANT_REACHED", name)
	was, to := number, file
	clear(told[:])
	number, file = n, openReached()
	f()
	number, file = was, to
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(text))
}

// Each of them computes what the program does, and something else in its mutant; and it is reached only where these differ.
func TestOperators(t *testing.T) {
	broken := errors.New("broken")
	for _, tt := range []struct {
		name          string
		value         func() any
		plain, mutant any
		reached       bool
	}{
		{"less", func() any { return Less(7, 1, 2) }, true, true, false},
		{"less at the boundary", func() any { return Less(7, 2, 2) }, false, true, true},
		{"more", func() any { return Less(7, 3, 2) }, false, false, false},
		{"less or equal", func() any { return LessEqual(7, "a", "a") }, true, false, true},
		{"greater", func() any { return Greater(7, 2.5, 2.5) }, false, true, true},
		{"greater or equal", func() any { return GreaterEqual(7, time.Second, time.Second) }, true, false, true},
		{"really greater", func() any { return GreaterEqual(7, 3, 2) }, true, true, false},
		{"plus", func() any { return Plus(7, 3, 2) }, 5, 1, true},
		{"plus nothing", func() any { return Plus(7, 3, 0) }, 3, 3, false},
		{"minus", func() any { return Minus(7, 3, 2) }, 1, 5, true},
		{"back", func() any { return Back(7, time.Second) }, time.Second, -time.Second, true},
		{"min", func() any { return Min(7, 3, 1, 2) }, 1, 3, true},
		{"max", func() any { return Max(7, 1, 3, 2) }, 3, 1, true},
		{"either", func() any { return Either(7, 5, 6) }, 5, 6, true},
		{"an error", func() any { return Err(7, broken) }, broken, nil, true},
		{"no error", func() any { return Err(7, nil) }, nil, nil, false},
	} {
		for _, n := range []int{-1, 6, 7} {
			want := tt.plain
			if n == 7 {
				want = tt.mutant
			}
			var got any
			reached := as(t, n, func() { got = tt.value(); tt.value() })
			if got != want {
				t.Errorf("%s as %d: %v, want %v", tt.name, n, got, want)
			}
			if tt.reached != slices.Equal(reached, []string{"7"}) {
				t.Errorf("%s as %d reaches %v", tt.name, n, reached)
			}
		}
	}
}
