//go:build linux

package postgres_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"net"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/proxy"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
	"github.com/succession-dev/succession/postgres"
)

const (
	// ttl is the session time of the harnesses, and where the end of a session is awaited. Tests that await heartbeats have a few times
	// as much.
	ttl = 2 * time.Second
	// long is the session time of all others, and for how long they try to open one: a machine that is busy ends none.
	long = 20 * time.Second
)

// shared is the PostgreSQL of all tests that do it no harm.
var shared struct {
	once     sync.Once
	postgres *coordtest.Postgres
	err      error
}

func TestMain(m *testing.M) {
	rig.Candidate()
	// Each connection takes a process of the server. Where pages are slow to map, as in some virtual machines, two processors together start
	// 34 of them in a second, and a rule connects twenty times. Where they are not, tests mostly wait.
	atOnce := 12
	if took, err := coordtest.PostgresStarts(); err == nil && took > 20*time.Millisecond {
		atOnce = 4
	}
	coordtest.Main(m, atOnce, func() {
		if shared.postgres != nil {
			shared.postgres.Stop()
		}
	})
}

func sharedPostgres(t testing.TB) *coordtest.Postgres {
	t.Helper()
	shared.once.Do(func() { shared.postgres, shared.err = coordtest.StartPostgres(context.Background(), nil) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.postgres
}

// configOf returns the configuration of a client of the servers at these addresses.
func configOf(t testing.TB, addrs ...string) *pgconn.Config {
	t.Helper()
	var hosts, ports string
	for i, addr := range addrs {
		if i > 0 {
			hosts, ports = hosts+",", ports+","
		}
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			t.Fatal(err)
		}
		hosts, ports = hosts+host, ports+port
	}
	cfg, err := pgconn.ParseConfig("host=" + hosts + " port=" + ports + " user=postgres dbname=postgres sslmode=disable target_session_attrs=read-write")
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// run has an operator of the server run statements, and returns the first column of the last row.
func run(t testing.TB, addr, sql string) string {
	t.Helper()
	out, err := tryRun(t.Context(), configOf(t, addr), sql)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func tryRun(ctx context.Context, cfg *pgconn.Config, sql string) (last string, err error) {
	c, err := pgconn.ConnectConfig(ctx, cfg)
	if err != nil {
		return "", err
	}
	defer c.Close(context.WithoutCancel(ctx))
	results, err := c.Exec(ctx, sql).ReadAll()
	for _, r := range results {
		for _, row := range r.Rows {
			last = string(row[0])
		}
	}
	return last, err
}

// A client is a backend that reaches each server through a proxy of its own.
type client struct {
	*postgres.Backend
	proxies []*proxy.Proxy
	admin   *pgconn.Config // of the servers, not of the proxies
	schema  string
	session atomic.Pointer[string] // the newest that was opened
	cancels atomic.Int64           // how often the server was asked to cancel something
}

// open returns a new client of the servers at these addresses; the caller closes it.
func open(t testing.TB, o postgres.Options, addrs ...string) (*client, error) {
	c := &client{admin: configOf(t, addrs...), schema: cmp.Or(o.Schema, postgres.DefaultSchema)}
	var fronts []string
	for _, addr := range addrs {
		p, err := coordtest.StartProxy(addr)
		if err != nil {
			c.closeProxies()
			return nil, err
		}
		c.proxies, fronts = append(c.proxies, p), append(fronts, p.Addr())
	}
	cfg := configOf(t, fronts...)
	cfg.DialFunc = c.dial
	var err error
	if c.Backend, err = postgres.New(cfg, &o); err != nil {
		c.closeProxies()
		return nil, err
	}
	return c, nil
}

func (c *client) closeProxies() {
	for _, p := range c.proxies {
		p.Close()
	}
}

// patient returns the options with those that a test leaves out.
func patient(o postgres.Options) postgres.Options {
	o.TTL, o.ConnectTimeout = cmp.Or(o.TTL, long), cmp.Or(o.ConnectTimeout, long)
	return o
}

// backendOf returns a backend for one test.
func backendOf(t testing.TB, cfg *pgconn.Config, o postgres.Options) *postgres.Backend {
	t.Helper()
	o = patient(o)
	b, err := postgres.New(cfg, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// newClient is open for one test: the client is closed when the test ends.
func newClient(t testing.TB, addr string, o postgres.Options) *client {
	t.Helper()
	c, err := open(t, patient(o), addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func (c *client) Close() error {
	err := c.Backend.Close()
	c.closeProxies()
	return err
}

// live returns the client's session.
func (c *client) live(t testing.TB) backend.Session {
	t.Helper()
	s, err := c.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// dial is that of the client's configuration; see [rig.DialUnlabelled].
func (c *client) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	pprof.SetGoroutineLabels(context.Background())
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &observed{Conn: conn, by: c}, nil
}

// observed reads the ID of the session that is opened.
type observed struct {
	net.Conn
	by *client
}

func (o *observed) Write(b []byte) (int, error) {
	if bytes.HasPrefix(b, []byte("\x00\x00\x00\x10\x04\xd2\x16\x2e")) { // CancelRequest
		o.by.cancels.Add(1)
	}
	if bytes.Contains(b, []byte("."+"open($1")) {
		// Bind follows, with the session's ID as the first value: its length, and the text.
		length := binary.BigEndian.AppendUint32(nil, 36)
		if i := bytes.Index(b, length); i >= 0 && len(b) >= i+40 {
			id := string(b[i+4 : i+40])
			o.by.session.Store(&id)
		}
	}
	return o.Conn.Write(b)
}

// Proxy implements [rig.Client].
func (c *client) Proxy() *proxy.Proxy { return c.proxies[0] }

// Requests implements [rig.Client].
func (c *client) Requests() int64 { return postgres.Requests(c.Backend) }

// LoseAnswer implements [rig.Client].
func (c *client) LoseAnswer() {
	c.proxies[0].LoseAnswers(c.writes)
}

// HoldBack implements [rig.Client].
func (c *client) HoldBack(skip int) (held func() bool, release func()) {
	return c.proxies[0].HoldBack(skip, c.writes)
}

// writes reports whether a request carries out a write that is no heartbeat. A connection prepares each statement once; that writes nothing.
func (c *client) writes(request []byte) bool {
	var statement string // that was parsed last without a name
	for len(request) >= 5 {
		kind, length := request[0], int(binary.BigEndian.Uint32(request[1:]))+1
		if length < 5 || length > len(request) {
			return false
		}
		fields := bytes.SplitN(request[5:length], []byte{0}, 3)
		request = request[length:]
		switch {
		case len(fields) < 3:
		case kind == 'P' && len(fields[0]) == 0:
			statement = string(fields[1])
		case kind == 'B' && c.isWrite(statement, string(fields[1])):
			return true
		}
	}
	return false
}

// isWrite reports whether a statement, or one of that name, is a write.
func (c *client) isWrite(statement, name string) bool {
	return slices.ContainsFunc([]string{"join", "leave", "pin", "put", "append", "remove"}, func(function string) bool {
		return name == "" && strings.Contains(statement, `"`+c.schema+`".`+function+"(") || strings.HasPrefix(name, "succession_") && strings.HasSuffix(name, "_"+function)
	})
}

// Expire implements [rig.Client]: it deletes the session's row.
func (c *client) Expire(ctx context.Context) error {
	id := c.session.Load()
	if id == nil {
		return rig.ErrNoSession
	}
	_, err := tryRun(ctx, c.admin, "DELETE FROM "+c.schema+".session WHERE id = '"+*id+"'")
	return err
}

type rigClient struct{ *client }

func (c rigClient) Close() { c.closeProxies() }

func join(t testing.TB, s backend.Session, line, value string) backend.Member {
	t.Helper()
	m, err := s.Join(t.Context(), line, value, "")
	if err != nil {
		t.Fatal(err)
	}
	return m.Member
}

// within returns a context that ends after d.
func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
