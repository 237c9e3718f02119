package consul_test

import (
	"testing"
	"time"

	"github.com/succession-dev/succession/consul"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
)

func TestShortTries(t *testing.T) {
	t.Parallel()
	addr := server(t)
	p := coordtest.NewProxy(t, addr)
	rig.ShortTries(t, p, session(t, p.Addr(), &consul.Options{TTL: 15 * time.Second}), session(t, addr, nil), coordtest.Name(t))
}
