package main

import (
	"context"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// The writers are processes of the test's own program.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "-writer") {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestFenced(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out strings.Builder
	if err := run(ctx, &out, "local:"+t.TempDir()); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	want := regexp.MustCompile(`^writer-1 leads and sends its report, which is held up on its way; it is killed
writer-2 leads; the store has the report of writer-2
the report of writer-1 arrives, and the store answers 412: stale token \d+: \d+ has been seen
the store has the report of writer-2
$`)
	if !want.MatchString(out.String()) {
		t.Errorf("the run prints\n%s", &out)
	}
}

// A run whose coordinator is not to be had does not wait for writers.
func TestWrongURL(t *testing.T) {
	ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Second, errors.New("it has waited"))
	defer cancel()
	var out strings.Builder
	if err := run(ctx, &out, "bogus://x"); err == nil || ctx.Err() != nil {
		t.Errorf("the run ends with %v\n%s", err, &out)
	}
}
