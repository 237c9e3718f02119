package zookeeper_test

import (
	"testing"
	"time"

	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/zookeeper"
)

func TestHeartbeatsAreTraced(t *testing.T) {
	t.Parallel()
	coordtest.TracesHeartbeats(t, open(t, zookeeper.Options{TTL: 8 * time.Second}, server(t)), "traced")
}
