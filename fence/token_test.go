package fence_test

import (
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"strings"
	"testing"

	"github.com/succession-dev/succession/fence"
)

func TestParseToken(t *testing.T) {
	for s, want := range map[string]uint64{"1": 1, "1042": 1042, "18446744073709551615": 1<<64 - 1} {
		if got, err := fence.ParseToken(s); got != want || err != nil {
			t.Errorf("%q: %d, %v", s, got, err)
		}
	}
	for _, s := range notTokens {
		if got, err := fence.ParseToken(s); got != 0 || !errors.Is(err, fence.ErrInvalid) {
			t.Errorf("%q: %d, %v; want ErrInvalid", s, got, err)
		}
	}
}

var notTokens = []string{
	"", "0", "00", "007", "+7", "-7", " 7", "7 ", "7\n", "7,8", "7.0", "7e3", "0x7", "1_000", "seven", "٧",
	"18446744073709551616", strings.Repeat("9", 1000),
}

// What is a token does not depend on how it is parsed.
func FuzzParseToken(f *testing.F) {
	for _, s := range append(notTokens, "7", "18446744073709551615") {
		f.Add(s)
	}
	form := regexp.MustCompile(`^[1-9][0-9]*$`)
	f.Fuzz(func(t *testing.T, s string) {
		got, err := fence.ParseToken(s)
		want, ok := new(big.Int).SetString(s, 10)
		if ok = ok && form.MatchString(s) && want.IsUint64(); ok != (err == nil) {
			t.Fatalf("%q: %v", s, err)
		}
		if ok && want.Uint64() != got {
			t.Errorf("%q: %d", s, got)
		}
		if err != nil && (got != 0 || !errors.Is(err, fence.ErrInvalid)) {
			t.Errorf("%q: %d, %v; want 0 and ErrInvalid", s, got, err)
		}
	})
}

func TestStaleError(t *testing.T) {
	var err error = fmt.Errorf("save: %w", &fence.StaleError{Resource: "accounts", Token: 5, Largest: 7})
	if !errors.Is(err, fence.ErrStale) || errors.Is(err, fence.ErrInvalid) || errors.Is(err, fence.ErrMissing) {
		t.Errorf("%v matches another sentinel than ErrStale", err)
	}
	for want, e := range map[string]*fence.StaleError{
		`stale token 5 for "accounts": 7 has been seen`:            {Resource: "accounts", Token: 5, Largest: 7},
		`stale token 5 for "accounts": a larger one has been seen`: {Resource: "accounts", Token: 5},
		`stale token 5: 7 has been seen`:                           {Token: 5, Largest: 7},
	} {
		if got := e.Error(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// wantStale checks that err says just what was refused.
func wantStale(t *testing.T, err error, want fence.StaleError) {
	t.Helper()
	var stale *fence.StaleError
	if !errors.As(err, &stale) || *stale != want {
		t.Errorf("got %v, want %v", err, &want)
	}
}
