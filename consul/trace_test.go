package consul_test

import (
	"testing"

	"github.com/succession-dev/succession/consul"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

func TestHeartbeatsAreTraced(t *testing.T) {
	t.Parallel()
	coordtest.TracesHeartbeats(t, open(t, server(t), &consul.Options{TTL: 3 * ttl}), "traced")
}
