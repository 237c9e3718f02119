//go:build linux

package main

import (
	"testing"
	"time"

	"github.com/succession-dev/succession/internal/rig/arena/arenatest"
	"github.com/succession-dev/succession/internal/rig/chaos/chaostest"
	"github.com/succession-dev/succession/internal/rig/lane"
)

func TestMain(m *testing.M) { arenatest.Main(m) }

// TestChaos is the test of that name in package chaos, on the coordinators whose drivers are in other modules.
func TestChaos(t *testing.T) {
	lane.All(t)
	t.Parallel()
	for _, on := range []string{"postgres", "kubernetes"} {
		t.Run(on, func(t *testing.T) {
			t.Parallel()
			chaostest.Run(t, on)
		})
	}
}

// TestDrift has clocks of candidates run at other rates than those by which their sessions end. A term ends a tenth of its session time before the
// deadline.
func TestDrift(t *testing.T) {
	lane.All(t)
	t.Parallel()
	by := func(d time.Duration, factor float64) time.Duration { return time.Duration(float64(d) * factor) }

	// These end sessions by the clocks of their servers, which are the machine's.
	servers := func(on string, ttl, stands time.Duration, slow float64) chaostest.Drift {
		return chaostest.Drift{On: on, Rates: []float64{slow}, Goes: by(ttl, 0.9/slow), Stands: stands}
	}
	// On these, candidates end each other's sessions, by their own clocks, a twentieth after the session time.
	candidates := func(on string, ttl time.Duration, slow, fast float64) chaostest.Drift {
		return chaostest.Drift{On: on, Rates: []float64{slow, fast}, Goes: by(ttl, 0.9/slow), Stands: by(ttl, 1.05/fast)}
	}
	var all []chaostest.Drift
	for _, slow := range []float64{0.92, 0.4} { // within the margin, and beyond
		all = append(all,
			servers("etcd", 4*time.Second, 4*time.Second, slow),
			servers("zookeeper", 4*time.Second, 4*time.Second, slow),
			servers("consul", 3*time.Second, 6*time.Second, slow), // after twice the session time
		)
	}
	for _, on := range []string{"postgres", "kubernetes"} {
		all = append(all, candidates(on, 4*time.Second, 0.93, 1.07), candidates(on, 4*time.Second, 0.5, 1.5))
	}
	chaostest.Drifts(t, "github.com/succession-dev/succession/cmd/succession/internal/rig", all...)
}
