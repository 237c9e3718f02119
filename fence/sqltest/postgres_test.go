//go:build linux

package sqltest

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/succession-dev/succession/internal/rig/coordtest"
)

func TestMain(m *testing.M) {
	coordtest.Main(m, 8, func() {
		if databases.Load() == 0 {
			return
		}
		if p, err := postgres(); err == nil {
			p.Stop()
		}
	})
}

// postgres returns the server, which the first call starts. What it has need not outlive a loss of power.
var postgres = sync.OnceValues(func() (*coordtest.Postgres, error) {
	return coordtest.StartPostgres(context.Background(), &coordtest.PostgresOptions{
		Config: []string{"fsync=off", "full_page_writes=off", "synchronous_commit=off"},
	})
})

var databases atomic.Int64 // that were created on the server

// newURL creates a database on the server, and returns how pgx reaches it.
func newURL() (string, error) {
	name := fmt.Sprintf("db%d", databases.Add(1))
	p, err := postgres()
	if err != nil {
		return "", err
	}
	host, port, err := net.SplitHostPort(p.Addrs()[0])
	if err != nil {
		return "", err
	}
	url := func(name string) string {
		return fmt.Sprintf("host=%s port=%s user=postgres dbname=%s", host, port, name)
	}
	server, err := sql.Open("pgx", url("postgres"))
	if err != nil {
		return "", err
	}
	defer server.Close()
	_, err = server.Exec("CREATE DATABASE " + name)
	return url(name), err
}

// waitBlocked returns when a statement waits for a lock of another transaction. It fails the
// test if what should wait is done.
func waitBlocked(t *testing.T, d *database, done <-chan error) {
	t.Helper()
	for blocked := 0; blocked == 0; {
		select {
		case err := <-done:
			t.Fatalf("it did not wait: %v", err)
		default:
		}
		const waiting = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
		if err := d.db.QueryRowContext(context.Background(), waiting).Scan(&blocked); err != nil {
			t.Fatal(err)
		}
	}
}
