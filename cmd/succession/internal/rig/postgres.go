//go:build linux

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/succession-dev/succession/internal/rig/arena"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/postgres"
)

func init() { arena.Register("postgres", startPostgres) }

// startPostgres starts a primary and a standby, however many servers are asked for.
func startPostgres(ctx context.Context, _ string, n int, _ bool) (*arena.Coordinator, error) {
	pair := n > 1
	p, err := coordtest.StartPostgres(ctx, &coordtest.PostgresOptions{Standby: pair, Synchronous: pair})
	if err != nil {
		return nil, err
	}
	const ttl = 4 * time.Second
	c := &arena.Coordinator{
		Cluster: &p.Cluster,
		TTL:     ttl,
		Crash:   ttl*3/2 + time.Second, // others see its last heartbeat with their own next one, and wait for a twentieth more
		URL: func(_ int, addrs []string) string {
			return fmt.Sprintf("postgres://%s/postgres?user=postgres&sslmode=disable&ttl=%v", strings.Join(addrs, ","), ttl)
		},
	}
	if pair {
		c.FailOver = p.FailOver
	}
	schema, err := postgres.Schema("")
	if err == nil {
		err = p.Exec(ctx, schema)
	}
	if err != nil {
		p.Stop()
		return nil, err
	}
	return c, nil
}
