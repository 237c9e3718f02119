package barrier_test

import (
	"context"
	"testing"
	"time"

	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/internal/rig/bubble"
	"github.com/succession-dev/succession/memory"
)

// While the line of a barrier is paused, it does not open. Afterwards it opens for those in front of the gate and behind it.
func TestPaused(t *testing.T) {
	for _, inFront := range []int{0, 1, 2} {
		bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
			var all []*call
			for range inFront {
				all = append(all, enters(t, c, "in front", 3))
			}
			op := operate.New(bubble.Client(t, c, "operator"), "start-arrivals", "operator")
			soon, cancel := context.WithTimeout(t.Context(), time.Second) // who waits for a barrier stays in front of the gate
			defer cancel()
			_, err := op.Pause(soon, "a look at the disk")
			if (err == nil) != (inFront == 0) {
				t.Fatalf("with %d in front of the gate: %v", inFront, err)
			}
			for len(all) < 4 {
				all = append(all, enters(t, c, "behind", 3))
			}
			time.Sleep(3 * bubble.TTL)
			passed(t, "while it is paused", all)
			bubble.Must[elect.Candidate](t)(op.Resume(t.Context(), nil))
			passed(t, "after the pause", all, 0, 1, 2)
			for _, k := range all[:3] {
				k.in.Term().Resign(t.Context())
			}
			all[3].cancel()
			ends(t, all[3])
			empty(t, c)
		})
	}
}
