package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/internal/security"
)

// A Backend is a long-lived handle on one database. It is safe for concurrent use.
type Backend struct {
	o        *Options
	wire     *wire
	sessions *kit.Sessions
	format   int64        // the one of this process
	top      atomic.Int64 // the largest position or version that was seen

	// Only open uses these.
	id, era string           // of the schema, and when it was seen last; empty before the first session
	lacks   string           // what was said of the settings of the server
	asked   map[string]int64 // by address, the server's process that was asked for the newest session
}

var _ backend.Backend = (*Backend)(nil)

// parameters are the parameters of a URL that PostgreSQL's own clients have under the same names.
var parameters = []string{"user", "service", "servicefile", "passfile", "sslmode", "sslrootcert", "sslcert", "sslkey", "sslnegotiation", "sslsni", "krbsrvname", "krbspn", "channel_binding", "application_name"}

// Open returns a backend for a URL:
//
//	postgres://h1:5432,h2:5432/database?user=app&sslmode=verify-full&ttl=10s
//
// Everything is optional. ttl, schema and connect are TTL, Schema and ConnectTimeout of [Options].
// More parameters:
//
//   - password-file, password-env: the file, or the environment variable, that holds the password.
//     A URL has none.
//   - user, service, servicefile, passfile, sslmode, sslrootcert, sslcert, sslkey, sslnegotiation,
//     sslsni, channel_binding, krbsrvname, krbspn and application_name, as PostgreSQL's own clients
//     have them.
//
// What the URL does not say is taken from the environment of PostgreSQL's own tools: PGHOST, PGUSER, PGDATABASE,
// PGPASSFILE, PGSERVICE, PGSSLMODE and the others. A host without a port has 5432, whatever PGPORT is. If there are several hosts, the first one that
// takes writes is used. All files are read for each connection, so they may be replaced while the
// backend is open.
//
// Open does not connect; [Backend.Session] does. The caller closes the backend.
func Open(u *coordinator.URL) (*Backend, error) {
	o, dsn, err := optionsOf(u)
	if err != nil {
		return nil, driver.Wrap("open", "", err)
	}
	config, password, err := configOf(u, dsn)
	if err != nil {
		return nil, driver.Wrap("open", "", err)
	}
	return open(config, password, o)
}

// optionsOf returns the options that a URL names, and what it says of the connection, as [pgconn.ParseConfig] reads it. It reads no
// files.
func optionsOf(u *coordinator.URL) (o *Options, dsn string, err error) {
	o = &Options{TTL: u.Duration("ttl", 0), Schema: u.Text("schema", ""), ConnectTimeout: u.Duration("connect", 0)}
	settings := map[string]string{"target_session_attrs": "read-write", "dbname": strings.Trim(u.Path, "/")}
	for _, name := range parameters {
		settings[name] = u.Text(name, "")
	}
	var hosts, ports []string
	for _, hp := range u.HostPorts(defaultPort) {
		host, port, err := net.SplitHostPort(hp)
		if err != nil {
			return nil, "", fmt.Errorf("%w URL %s: %w", backend.ErrInvalid, u, err)
		}
		hosts, ports = append(hosts, host), append(ports, port)
	}
	settings["host"], settings["port"] = strings.Join(hosts, ","), strings.Join(ports, ",")
	var b strings.Builder
	for name, value := range settings {
		if value != "" {
			fmt.Fprintf(&b, "%s='%s' ", name, strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value))
		}
	}
	_ = security.SecretOf(u, "password")
	return o, b.String(), u.Err()
}

// configOf returns what reads the configuration that a URL describes, and the secret that is the
// password, or nil. dsn is from optionsOf. What can be used now and cannot later is unreachable then: a file is being replaced.
func configOf(u *coordinator.URL, dsn string) (func() (*pgconn.Config, error), *security.Secret, error) {
	password := security.SecretOf(u, "password")
	if !password.Named() {
		password = nil
	} else if _, err := password.Read(); err != nil {
		return nil, nil, err
	}
	_, err := parse(u, dsn)
	return func() (*pgconn.Config, error) {
		cfg, err := parse(u, dsn)
		if err != nil {
			err = fmt.Errorf("%w: %v", backend.ErrUnavailable, err)
		}
		return cfg, err
	}, password, err
}

// parse reads the configuration once.
func parse(u *coordinator.URL, dsn string) (*pgconn.Config, error) {
	cfg, err := pgconn.ParseConfig(dsn)
	if err != nil {
		// The text may have the password of a password file.
		return nil, fmt.Errorf("%w URL %s: what it says, and the environment of PostgreSQL's tools, cannot be used together: %s",
			backend.ErrInvalid, u, reason(err))
	}
	return cfg, nil
}

// reason returns why a configuration is refused, without what it contains.
func reason(err error) string {
	var parse *pgconn.ParseConfigError
	if errors.As(err, &parse) {
		if cause := parse.Unwrap(); cause != nil {
			return cause.Error()
		}
	}
	return err.Error()
}

// New returns a backend for the database of cfg, which it copies. It does not block and does not
// connect: the first Session does. cfg should come from [pgconn.ParseConfig], with
// target_session_attrs=read-write if there are several hosts. Its password stays the same: the BeforeConnect of a pool is not called. A URL with
// password-file reads a password that changes. o may be nil.
func New(cfg *pgconn.Config, o *Options) (*Backend, error) {
	return open(func() (*pgconn.Config, error) { return cfg.Copy(), nil }, nil, o)
}

func open(config func() (*pgconn.Config, error), password *security.Secret, o *Options) (*Backend, error) {
	o, err := o.filled()
	if err != nil {
		return nil, driver.Wrap("open", "", err)
	}
	b := &Backend{o: o, wire: newWire(config, password, o), format: format, asked: make(map[string]int64)}
	b.sessions = kit.NewSessions(kit.Config{Scheme: driver, Open: b.open, Connect: o.ConnectTimeout, Attempt: o.ConnectTimeout / 2, Patience: closeBound})
	return b, nil
}

// Session returns the live session, and opens one if there is none; see [backend.Backend]. It
// blocks for a few round trips, at most for ConnectTimeout of [Options]. If the schema does not
// exist, Session makes it, as [EnsureSchema] does.
func (b *Backend) Session(ctx context.Context) (backend.Session, error) {
	return b.sessions.Session(ctx)
}

// Close ends the session, if there is one; see [backend.Backend]. It waits for the server for two
// seconds at most.
func (b *Backend) Close() error {
	err := b.sessions.Close()
	b.wire.close()
	return err
}

// stuck returns an error if the process that was asked for the newest session still waits for a
// standby. It does so until there is one, also when its client has gone, and each request more would
// occupy another process and connection.
func (b *Backend) stuck(ctx context.Context, c *conn) error {
	pid := b.asked[address(c.PgConn)]
	if pid == 0 {
		return nil
	}
	rows, err := c.query(ctx, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1::bigint AND wait_event = 'SyncRep')", pid)
	if err != nil {
		return err
	}
	waits := rows[0].bool()
	if err := rows[0].err(); err != nil || !waits {
		return err
	}
	return fmt.Errorf("%w: commits wait for a standby (synchronous_standby_names), and none answers", backend.ErrUnavailable)
}

// saw notes a position or a version.
func (b *Backend) saw(n int64) {
	for old := b.top.Load(); n > old && !b.top.CompareAndSwap(old, n); old = b.top.Load() {
	}
}

// known returns an error if the database has forgotten what this backend has seen of it. top is the
// largest number that it has given, clock what its clock says as a number, and life the present
// one.
//
// A server that has taken over may have lost the newest numbers. If its clock is right, it
// nevertheless gives larger ones.
func (b *Backend) known(id, life string, top, clock int64) error {
	era := eraOf(life)
	if b.era != "" && era != b.era {
		top = max(top, clock)
	}
	if b.id != "" && (id != b.id || top < b.top.Load()) {
		return fmt.Errorf("%w: raise the fence of each election, and restart this process", backend.ErrReset)
	}
	b.id, b.era = id, era
	return nil
}

// eraOf returns the era of a life; see schema.sql.
func eraOf(life string) string { return life[:max(0, strings.LastIndexByte(life, '/'))] }

// precedes reports whether the era a is over since b began: both are timelines of one system, and that of b is later.
func precedes(a, b string) bool {
	system, _, timeline := strings.Cut(a, "/")
	return timeline && system != "start" && strings.HasPrefix(b, system+"/") && a < b
}

// heed refuses a server whose commits are not safe, and warns of one that may go on committing when a standby has taken over.
func (b *Backend) heed(lacks string) error {
	const fsync, standby, others = "fsync", "standby", "others"
	switch {
	case lacks == fsync:
		return fmt.Errorf("%w server: fsync is off, so that a crash may lose what was told as done; set fsync=on", backend.ErrInvalid)
	case lacks == standby && b.lacks != lacks:
		b.o.Logger.Warn("a standby follows the server, and commits wait for none (synchronous_standby_names): if it takes over while this server lives on, two may lead. See docs/postgres.md")
	case lacks == others && b.lacks != lacks:
		b.o.Logger.Warn("more standbys can confirm commits than the server waits for (synchronous_standby_names): if one takes over while this server lives on with another, two may lead. See docs/postgres.md")
	}
	b.lacks = lacks
	return nil
}
