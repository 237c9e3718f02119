package spread_test

import (
	"testing"

	"github.com/succession-dev/succession/internal/rig/coordtest"
)

func TestMain(m *testing.M) { coordtest.Main(m, 2) }
