//go:build linux

package coordtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// NewPgBouncer starts a PgBouncer before the first server of p, for one test. Its mode is "transaction" or "session". The test is skipped
// where PgBouncer is not installed.
func NewPgBouncer(t testing.TB, p *Postgres, mode string) (addr string) {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program = "/usr/sbin/pgbouncer" // which is not in everybody's PATH
		if _, err := os.Stat(program); err != nil {
			t.Skip("PgBouncer is missing, so nothing is known of poolers; apt-get install pgbouncer")
		}
	}
	b, err := startCoordinator(t.Context(), "PgBouncer", postgresStart, func() *pgbouncer { return &pgbouncer{before: p, program: program, mode: mode} })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Stop)
	showLogs(t, &b.Cluster)
	return b.Addrs()[0]
}

// A pgbouncer is one process between clients and a PostgreSQL.
type pgbouncer struct {
	Cluster
	before  *Postgres
	program string
	mode    string
}

func (b *pgbouncer) create() (err error) {
	if err := b.makeFolder("pgbouncer-", false, ""); err != nil {
		return err
	}
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(b.before.Addrs()[0])
	if err != nil {
		return err
	}
	file, users := filepath.Join(b.dir, "pgbouncer.ini"), filepath.Join(b.dir, "users")
	config := fmt.Sprintf(`[databases]
* = host=%s port=%s user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
auth_file = %s
pool_mode = %s
default_pool_size = 12
max_client_conn = 200
`, host, port, ports[0], users, b.mode)
	err = errors.Join(os.WriteFile(file, []byte(config), 0o644), os.WriteFile(users, []byte("\"postgres\" \"\"\n"), 0o644), os.Chmod(b.dir, 0o755))
	if err != nil {
		return err
	}
	addr := loopback(ports[0])
	b.servers = []*Server{{
		addr: addr,
		log:  filepath.Join(b.dir, "log"),
		spec: spec{
			argv:      []string{b.program, file},
			probe:     func(ctx context.Context, addr string) error { return b.before.serves(ctx, addr) },
			portTaken: "cannot listen",
			own: func(cmd *exec.Cmd) { // it refuses to run as root, too
				cmd.SysProcAttr.Credential = b.before.who
			},
		},
	}}
	return nil
}
