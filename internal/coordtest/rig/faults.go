package rig

import (
	"context"
	"fmt"
	"slices"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance"
	"github.com/succession-dev/succession/internal/coordtest"
)

// Cluster returns what can be done to the servers of a cluster that was started with
// the option Links. of returns the address of the server that a client talks to.
func Cluster(c *coordtest.Cluster, of func(backend.Backend) string) *conformance.ClusterFaults {
	f := &conformance.ClusterFaults{
		Leader: func(ctx context.Context) (int, error) {
			s, err := c.LeaderAfter(ctx, nil)
			return slices.Index(c.Servers(), s), err
		},
		Of: func(b backend.Backend) int { return slices.Index(c.Addrs(), of(b)) },
	}
	for i, s := range c.Servers() {
		f.Servers = append(f.Servers, conformance.ServerFaults{
			Kill:   func() error { s.Kill(); return nil },
			Start:  s.Restart,
			Pause:  s.Pause,
			Resume: s.Resume,
			Isolate: func() (func(), error) {
				if err := c.Isolate(s); err != nil {
					return nil, fmt.Errorf("server %d: %w", i, err)
				}
				return c.Heal, nil
			},
		})
	}
	return f
}
