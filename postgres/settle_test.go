//go:build linux

package postgres_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"

	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/postgres"
)

// Nothing of the client library is left soon after a backend was closed that cannot reach its server. Other tests, which run beside each
// other, must not run beside this one.
func TestCloseLeavesNothing(t *testing.T) {
	c := newClient(t, sharedPostgres(t).Addrs()[0], postgres.Options{TTL: ttl})
	c.live(t)
	c.Proxy().Cut()
	if err := c.Backend.Close(); err != nil {
		t.Log(err)
	}
	watch, stacks := calm.Start(t), make([]byte, 1<<22)
	for strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "asyncClose") {
		time.Sleep(time.Millisecond)
	}
	watch.Within(5*time.Second, "the library has ended all that it does with the connection")
}

// The configuration of a pool may say that a request is to be cancelled when its context ends, and go on reading for long. No time
// limit of this package would hold with that.
func TestConfigurationOfAPool(t *testing.T) {
	t.Parallel()
	p := coordtest.NewProxy(t, sharedPostgres(t).Addrs()[0])
	cfg := configOf(t, p.Addr())
	cfg.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: c, DeadlineDelay: 30 * time.Second}
	}
	b := backendOf(t, cfg, postgres.Options{})
	opens(t, b)
	p.Cut()
	watch := calm.Start(t)
	if err := b.Close(); err != nil {
		t.Log(err)
	}
	watch.Within(10*time.Second, "a backend was closed that cannot reach its server")
}

// The server ends connections that nobody uses for a while. A write that would have been sent over one of them is sent over another.
func TestIdleSessionTimeout(t *testing.T) {
	t.Parallel()
	addr := sharedPostgres(t).Addrs()[0]
	run(t, addr, "CREATE ROLE idles LOGIN SUPERUSER; ALTER ROLE idles SET idle_session_timeout = '1500ms'")
	cfg := configOf(t, addr)
	cfg.User = "idles"
	watch := calm.Start(t)
	s := opens(t, backendOf(t, cfg, postgres.Options{TTL: 2 * ttl})) // whose heartbeats keep the session's own connection
	for i := range 3 {
		if _, err := s.Put(t.Context(), fmt.Sprint("idles-", i), nil, nil); err != nil {
			if !watch.NotJudged(ttl/8, "a write: %v", err) {
				t.Errorf("write no. %d: %v", i, err)
			}
			return
		}
		for ctx := within(t, time.Minute); run(t, addr, "SELECT count(*) FROM pg_stat_activity WHERE usename = 'idles'") != "1" && ctx.Err() == nil; {
			time.Sleep(10 * time.Millisecond) // until the session's own connection alone is left
		}
	}
}

// Where the default isolation is another one from now on, all requests that are under way at once are sent again, and say which they need.
func TestIsolationChanges(t *testing.T) {
	t.Parallel()
	addr := coordtest.NewPostgres(t, nil).Addrs()[0]
	s := opens(t, hosts(t, postgres.Options{}, addr))
	write := func() {
		t.Helper()
		var writing sync.WaitGroup
		for i := range 16 {
			writing.Go(func() {
				if _, err := s.Append(t.Context(), fmt.Sprint("e", i), "x"); err != nil {
					t.Error(err)
				}
			})
		}
		writing.Wait()
	}
	write() // has connections made
	run(t, addr, "ALTER SYSTEM SET default_transaction_isolation = 'repeatable read'")
	run(t, addr, "SELECT pg_reload_conf()")
	for ctx := within(t, time.Minute); run(t, addr, "SHOW default_transaction_isolation") != "repeatable read" && ctx.Err() == nil; {
	}
	write()
}
