package etcd_test

import (
	"testing"

	"github.com/succession-dev/succession/internal/rig/coordtest"
)

func TestHeartbeatsAreTraced(t *testing.T) {
	t.Parallel()
	coordtest.TracesHeartbeats(t, newClientOf(t, sharedEtcd(t).Addrs()[0], 4*ttl), "traced")
}
