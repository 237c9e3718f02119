package migrate_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
)

func TestMain(m *testing.M) {
	rig.Candidate()
	// The rules of the conformance suite wait for time to pass, not for the processor, and
	// here for sessions on two coordinators.
	flag.Parse()
	if err := flag.Set("test.parallel", "10"); err != nil {
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
