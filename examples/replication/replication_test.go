package main

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// The machines are processes of the test's own program.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "-machine") {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestReplication(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	url := "local:" + t.TempDir()
	for _, rounds := range []int{4, 1} { // the second run goes on where the first has ended
		var out strings.Builder
		if err := run(ctx, &out, url, 3, rounds, 200*time.Millisecond); err != nil {
			t.Fatalf("%v\n%s", err, &out)
		}
		t.Log(out.String())
		for _, want := range []string{"machine-1 is killed", "3 tasks were run", "none is missing", "No position ever went back"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("the run does not print %q:\n%s", want, &out)
			}
		}
	}
}
