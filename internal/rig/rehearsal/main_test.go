//go:build linux

package rehearsal_test

import (
	"testing"

	"github.com/succession-dev/succession/internal/rig/arena/arenatest"
)

func TestMain(m *testing.M) { arenatest.Main(m) }
