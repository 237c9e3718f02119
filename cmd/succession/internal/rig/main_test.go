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

// TestDrift has clocks of candidates run at other rates than those by which their sessions end. The rates are just within the margin of
// package elect, a tenth of the session time, so that without it two would lead; and far beyond.
func TestDrift(t *testing.T) {
	lane.All(t)
	t.Parallel()
	by := func(d time.Duration, factor float64) time.Duration { return time.Duration(float64(d) * factor) }

	// These end sessions by the clocks of their servers, which are the machine's. relies is for how long a leader goes on at
	// most from its last heartbeat, by its own clock.
	servers := func(on string, relies, stands time.Duration, slow float64) chaostest.Drift {
		return chaostest.Drift{On: on, Rates: []float64{slow}, Goes: by(relies, 1/slow), Stands: stands}
	}
	// On these, candidates end each other's sessions, by their own clocks, a twentieth after the session time.
	candidates := func(on string, ttl time.Duration, slow, fast float64) chaostest.Drift {
		return chaostest.Drift{On: on, Rates: []float64{slow, fast}, Goes: by(ttl, 0.9/slow), Stands: by(ttl, 1.05/fast)}
	}
	var all []chaostest.Drift
	for _, on := range []struct {
		name           string
		relies, stands time.Duration
		slow           float64
	}{
		{"etcd", 2800 * time.Millisecond, 4 * time.Second, 0.705},      // of 4 s, without the fifth that the driver keeps
		{"zookeeper", 2400 * time.Millisecond, 4 * time.Second, 0.605}, // of 4 s, from a heartbeat at least 0.3 of that before the last
		{"consul", 2700 * time.Millisecond, 6 * time.Second, 0.46},     // of 3 s; Consul waits for twice the session time
	} {
		all = append(all, servers(on.name, on.relies, on.stands, on.slow), servers(on.name, on.relies, on.stands, 0.4))
	}
	for _, on := range []string{"postgres", "kubernetes"} {
		all = append(all, candidates(on, 4*time.Second, 0.93, 1.07), candidates(on, 4*time.Second, 0.5, 1.5))
	}
	chaostest.Drifts(t, "github.com/succession-dev/succession/cmd/succession/internal/rig", all...)
}
