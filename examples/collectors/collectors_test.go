package main

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession/memory"
)

// The collectors are processes of the test's own program.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "-collector") {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestCollectors(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out strings.Builder
	if err := run(ctx, &out, "local:"+t.TempDir(), 3, 4, 0); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	t.Log(out.String())
	for _, want := range []string{"collector-1 is killed", "collector-2 leaves", "11 changes"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the run does not print %q:\n%s", want, &out)
		}
	}
}

// What earlier runs have collected on the same coordinator is not counted.
func TestLinesOfEarlierRuns(t *testing.T) {
	b := memory.New(nil).Client("a")
	defer b.Close()
	collected := func(lines int) {
		t.Helper()
		if _, err := position(b, "mail").Set(t.Context(), lines); err != nil {
			t.Fatal(err)
		}
	}
	collected(7)
	var out strings.Builder
	d, err := newDesk(t.Context(), b, &out)
	if err != nil {
		t.Fatal(err)
	}
	collected(10)
	if err := d.figures(t.Context()); err != nil || !strings.Contains(out.String(), "\n3 lines have been collected.") {
		t.Errorf("after 3 lines the run prints %v\n%s", err, &out)
	}
}
