//go:build linux

package chaos_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/succession-dev/succession/internal/rig/chaos"
	"github.com/succession-dev/succession/internal/rig/chaos/worker"
)

var (
	length = flag.Duration("for", 0, "how long there are faults on each coordinator, on local a quarter of that, and migrations begin; 0 is as long as it takes that each kind of fault comes once")
	seed   = flag.Uint64("seed", 0, "of the schedules; 0 is a random one")
)

// env has the race detector end each of the many processes at once, and not a second later.
var env = []string{"GORACE=atexit_sleep_ms=0"}

// bin is the folder of what succession builds, once for all tests.
var bin string

// succession builds the command of that name, and returns its path.
var succession = sync.OnceValues(func() (string, error) { return chaos.BuildCommand(context.Background(), bin) })

// TestMain is also the worker that runs are made with.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "worker" {
		os.Exit(worker.Main(os.Args[2:], os.Stdin))
	}
	// Runs wait for faults to pass, not for the processor.
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	var err error
	if bin, err = os.MkdirTemp("", "succession-"); err != nil {
		panic(err)
	}
	code := m.Run()
	if err := os.RemoveAll(bin); err != nil {
		panic(err)
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, "goroutines are left after the tests:", err)
			code = 1
		}
	}
	os.Exit(code)
}
