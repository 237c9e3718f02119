//go:build linux

// Package arenatest starts chaos runs and rehearsals in tests.
package arenatest

import (
	"flag"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/succession-dev/succession/internal/rig/arena"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/worker"
)

// The flags of the tests.
var (
	Length = flag.Duration("for", 0, "how long there are faults on each coordinator, on local a quarter of that, and migrations begin; 0 is as long as it takes that each kind of fault comes once")
	seed   = flag.Uint64("seed", 0, "of what is drawn; 0 is a random one")
)

// Main is for TestMain, and does not return. The test program is also the worker that
// runs are made with.
func Main(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "worker" {
		os.Exit(worker.Main(os.Args[2:], os.Stdin))
	}
	coordtest.Main(m, atOnce)
}

// Options returns the options of a run. A test that fails keeps what the run has written,
// in a temporary folder with that name.
func Options(t *testing.T, name string) arena.Options {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o := arena.Options{
		Seed: *seed, Worker: []string{exe, "worker"}, Out: t.Output(),
		// The race detector ends each of the many processes at once, and not a second later.
		Env: []string{"GORACE=atexit_sleep_ms=0"},
	}
	if o.Seed == 0 {
		o.Seed = rand.Uint64N(1_000_000)
	}
	if o.Dir, err = os.MkdirTemp("", name+"-"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !t.Failed() {
			if err := os.RemoveAll(o.Dir); err != nil {
				t.Error(err)
			}
		}
	})
	return o
}
