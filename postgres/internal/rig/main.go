//go:build linux

// The command has chaos runs and rehearsals with PostgreSQL, a primary and a synchronous standby; see package command of the
// main module:
//
//	go run -C postgres ./internal/rig chaos -on postgres -for 30m
package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/succession-dev/succession/internal/rig/arena"
	"github.com/succession-dev/succession/internal/rig/command"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/postgres"
)

func main() { command.Main() }

func init() { arena.Register("postgres", start) }

// start starts a primary and a standby, however many servers are asked for.
func start(ctx context.Context, _ string, n int, _ bool) (*arena.Coordinator, error) {
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
	if err := applySchema(ctx, c.URL(0, p.Addrs()[:1])); err != nil {
		p.Stop()
		return nil, err
	}
	return c, nil
}

func applySchema(ctx context.Context, url string) error {
	url, _, _ = strings.Cut(url, "&ttl=")
	conn, err := pgconn.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	schema, err := postgres.Schema("")
	if err == nil {
		_, err = conn.Exec(ctx, schema).ReadAll()
	}
	return err
}
