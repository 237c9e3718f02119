package migrate_test

import (
	"testing"

	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
)

func TestMain(m *testing.M) {
	rig.Candidate()
	coordtest.Main(m, 10) // each has sessions on two coordinators
}
