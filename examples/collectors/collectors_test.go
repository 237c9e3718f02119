package main

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
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
