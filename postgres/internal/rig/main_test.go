//go:build linux

package main

import (
	"testing"

	"github.com/succession-dev/succession/internal/rig/arena/arenatest"
	"github.com/succession-dev/succession/internal/rig/chaos/chaostest"
	"github.com/succession-dev/succession/internal/rig/lane"
)

func TestMain(m *testing.M) { arenatest.Main(m) }

// TestChaos is a run in which every kind of fault occurs that PostgreSQL can have; see the test with that name in package chaos.
func TestChaos(t *testing.T) {
	lane.All(t)
	chaostest.Run(t, "postgres")
}
