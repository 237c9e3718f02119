package coordtest_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// checkLeaks fails the test if goroutines are left when all has been closed.
func checkLeaks(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		if err := coordtest.Leaks(before, coordtest.IgnoreServers()); err != nil {
			t.Error(err)
		}
	})
}
