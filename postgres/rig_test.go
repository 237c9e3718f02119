//go:build linux

package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
	"github.com/succession-dev/succession/postgres"
)

// reset drops the schema and makes it anew, as an operator does who has lost the data.
func reset(ctx context.Context, admin *pgconn.Config) error {
	create, err := postgres.Schema("")
	if err == nil {
		_, err = tryRun(ctx, admin, "BEGIN; DROP SCHEMA IF EXISTS succession CASCADE;"+create+"COMMIT")
	}
	return err
}

// reference starts a PostgreSQL for the test, and returns a Reference of a harness to it: it writes a row, over a connection that it keeps, and
// every other second over a new one. To connect each time would take a good part of what the machine can do: see TestMain.
func reference(t testing.TB) func(context.Context) error {
	t.Helper()
	cfg := configOf(t, coordtest.NewPostgres(t, nil).Addrs()[0])
	cfg.DialFunc = rig.DialUnlabelled
	c, err := pgconn.ConnectConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	if _, err := c.Exec(t.Context(), "CREATE TABLE reference (n int); INSERT INTO reference VALUES (0)").ReadAll(); err != nil {
		t.Fatal(err)
	}
	connected := time.Now()
	return func(ctx context.Context) error {
		if time.Since(connected) > 2*time.Second {
			fresh, err := pgconn.ConnectConfig(ctx, cfg)
			if err != nil {
				return err
			}
			c.Close(ctx)
			c, connected = fresh, time.Now()
		}
		_, err := c.Exec(ctx, "UPDATE reference SET n = n + 1").ReadAll()
		return err
	}
}
