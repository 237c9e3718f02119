//go:build linux

package chaos_test

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/succession-dev/succession/internal/chaos/worker"
)

var (
	length = flag.Duration("for", 2*time.Minute, "how long there are faults on each coordinator; on local, a quarter of that")
	seed   = flag.Uint64("seed", 0, "of the schedules; 0 is a random one")
)

// TestMain is also the worker that runs are made with.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "worker" {
		os.Exit(worker.Main(os.Args[2:], os.Stdin))
	}
	// Runs wait for faults to pass, not for the processor.
	flag.Parse()
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, "goroutines are left after the tests:", err)
			code = 1
		}
	}
	os.Exit(code)
}
