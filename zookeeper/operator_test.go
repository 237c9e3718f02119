package zookeeper_test

import (
	"testing"

	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
)

// An operator's acts take effect, and those that find nothing to do succeed.
func TestOperator(t *testing.T) {
	t.Parallel()
	rig.CheckOperator(t, "zookeeper://"+server(t)+"/for-an-operator")
}
