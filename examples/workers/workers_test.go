package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// The workers are processes of the test's own program.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "-worker") {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestWorkers(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out strings.Builder
	if err := run(ctx, &out, "local:"+t.TempDir(), 3, 30, 2); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	t.Log(out.String())
	for _, want := range []string{"the master, is killed", "a worker, is killed", "30 tasks have their results"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the run does not print %q:\n%s", want, &out)
		}
	}
}

// Told calls tell at each write.
type told struct {
	strings.Builder
	tell func()
}

func (w *told) Write(p []byte) (int, error) {
	w.tell()
	return w.Builder.Write(p)
}

// A run that is told to end says no more than that.
func TestEnds(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out := &told{tell: cancel} // when the first worker is killed
	if err := run(ctx, out, "local:"+t.TempDir(), 3, 30, 2); !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "submit more") {
		t.Errorf("the run ends with %v\n%s", err, out)
	}
}
