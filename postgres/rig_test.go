//go:build linux

package postgres_test

import (
	"context"
	"testing"

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

// reference starts a PostgreSQL for the test, and returns a Reference of a harness to it: it connects, and writes a row. To connect takes a
// process of the server, and clients of the suite do it all the time.
func reference(t testing.TB) func(context.Context) error {
	t.Helper()
	cfg := configOf(t, coordtest.NewPostgres(t, nil).Addrs()[0])
	cfg.DialFunc = rig.DialUnlabelled
	do := func(ctx context.Context, sql string) error {
		c, err := pgconn.ConnectConfig(ctx, cfg)
		if err != nil {
			return err
		}
		defer c.Close(context.Background())
		_, err = c.Exec(ctx, sql).ReadAll()
		return err
	}
	if err := do(t.Context(), "CREATE TABLE reference (n int); INSERT INTO reference VALUES (0)"); err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context) error { return do(ctx, "UPDATE reference SET n = n + 1") }
}
