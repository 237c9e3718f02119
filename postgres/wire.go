package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/internal/security"
)

// maxConns is how many connections a backend has for requests, at most. Each session has another
// one, which listens.
const maxConns = 4

// A wire has the connections for requests. A request has a connection for itself until it is
// answered, so that one that waits for a lock holds up no other.
type wire struct {
	config   func() (*pgconn.Config, error) // as it is at this moment
	password *security.Secret
	o        *Options
	room     chan struct{} // holds one for each request under way
	requests atomic.Int64  // without those that only listen: how many of them come together is chance
	explicit atomic.Bool   // transactions have to say that they are READ COMMITTED
	turn     atomic.Int64  // which of several hosts is tried first
	opened   atomic.Bool   // a session has been there

	mu     sync.Mutex
	free   []*conn   // the one that was used last is last
	broke  time.Time // when a connection was last found broken
	since  time.Time // older connections are not used: they may lead to another server
	closed bool
}

// newWire returns a wire without connections. If password is nil, it is that of the configuration, which may be from a file as well.
func newWire(config func() (*pgconn.Config, error), password *security.Secret, o *Options) *wire {
	if password == nil {
		password = security.SecretFrom(func() (string, error) {
			cfg, err := config()
			if err != nil {
				return "", err
			}
			return cfg.Password, nil
		})
	}
	return &wire{config: config, password: password, o: o, room: make(chan struct{}, maxConns)}
}

// A conn is a connection. It is used by one goroutine at a time.
type conn struct {
	*pgconn.PgConn
	w      *wire
	pid    int64 // of the server's process at the other end, or of a pooler between
	warned error // a warning that came with an answer
	begun  time.Time
	used   time.Time
	killed atomic.Bool       // closed at once, which the library would notice when it is used again
	direct bool              // no pooler stands between, so statements can be prepared
	turn   int64             // of the wire when it was begun
	main   bool              // it is that of a session, and not for requests
	knows  string            // the session that the server at the other end knows: it has answered a request of it
	known  map[string]string // the names of those that are, by their text
}

// connecting marks the context of a new connection.
type connecting struct{}

// dial connects. told, if not nil, is called with the channel of each notice, and the connection is that of a session.
// Without it, the connection is for requests. It may lead to another server than that of the session, such as a deposed primary that serves
// on: see [session.believe].
func (w *wire) dial(ctx context.Context, told func(channel string)) (*conn, error) {
	cfg, err := w.config()
	if err != nil {
		return nil, err
	}
	c := &conn{w: w, begun: time.Now(), turn: w.turn.Load(), main: told != nil}
	ctx = context.WithValue(ctx, connecting{}, true)
	dial := cfg.DialFunc
	cfg.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if ctx.Value(connecting{}) == nil {
			// The library asks the server to cancel what was under way when a connection breaks. A
			// commit that waits for a standby and is cancelled is reported as done although no
			// standby has it.
			return nil, net.ErrClosed
		}
		return dial(ctx, network, addr)
	}
	// That of a pool may leave a request more time than its context does.
	cfg.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler { return &pgconn.DeadlineContextWatcherHandler{Conn: c.Conn()} }
	cfg.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		if warns(n) {
			c.warned = fmt.Errorf("%w: the server warns: %s", backend.ErrUnavailable, kit.Clip(n.Message))
		}
	}
	if told != nil {
		cfg.OnNotification = func(_ *pgconn.PgConn, n *pgconn.Notification) { told(n.Channel) }
	}
	n := w.rotate(cfg)
	cfg.LookupFunc = w.rotated(cfg.LookupFunc, n)
	if cfg.ConnectTimeout == 0 && n > 1 {
		if end, ok := ctx.Deadline(); ok { // a host that does not answer leaves time for the others
			cfg.ConnectTimeout = time.Until(end) / time.Duration(n)
		}
	}
	err = w.password.Use(wrongPassword, func(password string) (err error) {
		cfg.Password = password
		c.PgConn, err = pgconn.ConnectConfig(ctx, cfg)
		return err
	})
	switch {
	case wrongPassword(err) && w.password.Unsettled():
		return nil, fmt.Errorf("%w: the password was accepted before, and is refused now: %w", backend.ErrUnavailable, kit.Brief(err))
	case err != nil && w.opened.Load() && stateOf(err) == stateNoDatabase:
		return nil, fmt.Errorf("%w: %w", backend.ErrUnavailable, kit.Brief(err))
	case err != nil:
		return nil, answered(ctx, err)
	}
	if err := tooOld(c.ParameterStatus("server_version")); err != nil {
		c.kill()
		return nil, err
	}
	c.pid = int64(c.PID())
	return c, nil
}

// address returns where a connection leads to. One server may have several, which come and go, and several servers may have one: a load
// balancer, or a name that leads elsewhere after a failover.
func address(c *pgconn.PgConn) string { return c.Conn().RemoteAddr().String() }

// oldestServer is the first version that has gen_random_uuid without an extension.
const oldestServer = 13

// tooOld returns an error if that is an older version than the schema needs.
func tooOld(version string) error {
	digits := version[:len(version)-len(strings.TrimLeft(version, "0123456789"))]
	if major, err := strconv.Atoi(digits); err == nil && major < oldestServer {
		return fmt.Errorf("%w server: it is PostgreSQL %s, and %d or a later version is needed", backend.ErrInvalid, kit.Clip(version), oldestServer)
	}
	return nil
}

// rotate makes the client try another of several hosts first, after one that takes connections and
// commits nothing: a deposed primary that does not know it yet. It returns how many hosts there are.
// The client has one entry after the other for each way to reach a host: with sslmode prefer one with TLS, and one without. They stay
// together and in their order, so that TLS is not left out because another host is tried.
func (w *wire) rotate(cfg *pgconn.Config) int {
	ways := append([]*pgconn.FallbackConfig{{Host: cfg.Host, Port: cfg.Port, TLSConfig: cfg.TLSConfig}}, cfg.Fallbacks...)
	var starts []int // where the ways to each host begin
	for i, way := range ways {
		if i == 0 || way.Host != ways[i-1].Host || way.Port != ways[i-1].Port {
			starts = append(starts, i)
		}
	}
	k := starts[w.turn.Load()%int64(len(starts))]
	ways = slices.Concat(ways[k:], ways[:k])
	cfg.Host, cfg.Port, cfg.TLSConfig, cfg.Fallbacks = ways[0].Host, ways[0].Port, ways[0].TLSConfig, ways[1:]
	return len(starts)
}

// rotated is rotate for the addresses of a name. They share the time of one host, so the first may take all of it. hosts is how many hosts
// are rotated: all of them are tried before the addresses are.
func (w *wire) rotated(lookup pgconn.LookupFunc, hosts int) pgconn.LookupFunc {
	return func(ctx context.Context, host string) ([]string, error) {
		addrs, err := lookup(ctx, host)
		if n := int64(len(addrs)); n > 1 {
			k := w.turn.Load() / int64(hosts) % n
			addrs = slices.Concat(addrs[k:], addrs[:k])
		}
		return addrs, err
	}
}

// kill closes the connection at once, without telling the server.
func (c *conn) kill() {
	c.killed.Store(true)
	c.Conn().Close()
}

// IsClosed reports whether the connection cannot be used any more.
func (c *conn) IsClosed() bool { return c.killed.Load() || c.PgConn.IsClosed() }

// query sends a request once, and returns the rows of the answer. There is one at least. If it
// fails, the connection cannot be used again, unless the server has answered with an error.
func (c *conn) query(ctx context.Context, sql string, args ...any) ([]row, error) {
	params, formats := make([][]byte, len(args)), make([]int16, len(args))
	for i, a := range args {
		switch a := a.(type) {
		case nil:
		case []byte:
			params[i], formats[i] = a, 1
			if a == nil {
				params[i] = []byte{}
			}
		default:
			params[i] = []byte(fmt.Sprint(a))
		}
	}
	c.w.requests.Add(1)
	c.warned = nil
	explicit := c.w.explicit.Load()
	r := c.execute(ctx, sql, params, formats)
	var pg *pgconn.PgError
	if errors.As(r.Err, &pg) && pg.Code == stateIsolation && !explicit {
		c.w.explicit.Store(true)
		r = c.execute(ctx, sql, params, formats)
	}
	if err := cmp.Or(answered(ctx, r.Err), c.warned); err != nil {
		return nil, hinted(err)
	}
	rows := make([]row, len(r.Rows))
	for i, values := range r.Rows {
		rows[i].values = values
	}
	if len(rows) == 0 {
		return nil, strange("no row")
	}
	return rows, nil
}

// execute sends one statement, which is a transaction. Where the default of the server, the
// database or the role is another isolation than READ COMMITTED, the transaction says so, in the
// same round trip.
func (c *conn) execute(ctx context.Context, sql string, params [][]byte, formats []int16) *pgconn.Result {
	switch {
	case c.w.explicit.Load():
	case c.direct:
		name := c.known[sql]
		if name == "" {
			_, function, _ := strings.Cut(sql, quoted(c.w.o.Schema)+".")
			function, _, _ = strings.Cut(function, "(")
			name = fmt.Sprintf("succession_%d_%s", len(c.known), function) // the function is for whoever looks at pg_prepared_statements
			if _, err := c.Prepare(ctx, name, sql, nil); err != nil {
				return &pgconn.Result{Err: err}
			}
			if c.known == nil {
				c.known = make(map[string]string)
			}
			c.known[sql] = name
		}
		return c.ExecPrepared(ctx, name, params, formats, []int16{1}).Read()
	default:
		return c.ExecParams(ctx, sql, params, nil, formats, []int16{1}).Read()
	}
	var b pgconn.Batch
	b.ExecParams("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE", nil, nil, nil, nil)
	b.ExecParams(sql, params, nil, formats, []int16{1})
	b.ExecParams("COMMIT", nil, nil, nil, nil)
	all, err := c.ExecBatch(ctx, &b).ReadAll()
	if err == nil && len(all) != 3 {
		err = strange("it is cut short")
	}
	if err != nil {
		if !c.IsClosed() && c.TxStatus() == 'E' { // the server has refused it
			_, _ = c.Exec(ctx, "ROLLBACK").ReadAll()
		}
		if c.TxStatus() != 'I' {
			c.kill() // the transaction is open
		}
		return &pgconn.Result{Err: err}
	}
	return all[1]
}

// warns reports whether the server has done what it was asked to do with a warning. If it stops waiting before a standby has a commit, it
// reports the commit as done, with a warning. Others warn that the database must be vacuumed, because few numbers of transactions are left
// (varsup.c, multixact.c), or that the queue of notices fills (async.c): each transaction may then have one, for weeks, and is done as ever.
func warns(n *pgconn.Notice) bool {
	switch n.SeverityUnlocalized {
	case "WARNING", "":
		return !slices.Contains([]string{"GetNewTransactionId", "GetNewMultiXactId", "asyncQueueFillWarning"}, n.Routine)
	}
	return false
}

// script sends statements that have no arguments.
func (c *conn) script(ctx context.Context, sql string) ([]*pgconn.Result, error) {
	c.warned = nil
	results, err := c.Exec(ctx, sql).ReadAll()
	return results, cmp.Or(answered(ctx, err), c.warned)
}

// with calls f with a connection for requests, and returns what f returns. It takes a new one if
// none is free, and again if the server has closed the one that was free before f could send
// anything.
func (w *wire) with(ctx context.Context, f func(*conn) error) error {
	select {
	case w.room <- struct{}{}:
		defer func() { <-w.room }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for {
		c, fresh, err := w.take(ctx)
		if err != nil {
			return err
		}
		err = f(c)
		if err != nil && !fresh && (pgconn.SafeToRetry(err) || stateOf(err) == stateUnused) && ctx.Err() == nil {
			c.kill()
			continue
		}
		w.put(c)
		return err
	}
}

// bounded returns a context that ends after the limit, with a cause that says so.
func bounded(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w: no answer within %v", backend.ErrUnavailable, limit))
}

// take returns a connection. If one was found broken since this one was used, as when a server ended, it makes sure that this one
// is not broken as well: a write that is sent in vain might have been done, as far as its caller can know.
func (w *wire) take(ctx context.Context) (c *conn, fresh bool, err error) {
	for {
		w.mu.Lock()
		n := len(w.free)
		if n == 0 {
			w.mu.Unlock()
			break
		}
		c = w.free[n-1]
		w.free = w.free[:n-1]
		doubtful := c.used.Before(w.broke)
		w.mu.Unlock()
		if !doubtful || c.answers(ctx) {
			return c, false, nil
		}
		c.kill()
	}
	ctx, cancel := bounded(ctx, w.o.ConnectTimeout/2)
	defer cancel()
	c, err = w.dial(ctx, nil)
	return c, true, err
}

// answers reports whether the server answers on the connection.
func (c *conn) answers(ctx context.Context) bool {
	ctx, cancel := bounded(ctx, c.w.o.attempt())
	defer cancel()
	return c.Ping(ctx) == nil
}

// broken says that a connection is.
func (w *wire) broken() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broke = time.Now()
}

// renew makes all later requests use new connections.
func (w *wire) renew() {
	w.mu.Lock()
	w.since = time.Now()
	w.mu.Unlock()
	w.tidy(true)
}

// put keeps a connection for the next request, if it is still of use.
func (w *wire) put(c *conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.used = time.Now(); c.IsClosed() || w.closed {
		w.broke = c.used
		c.kill()
		return
	}
	if c.begun.Before(w.since) {
		c.leave()
		return
	}
	w.free = append(w.free, c)
}

// tidy closes connections that nobody has used for a session time, or all of them.
func (w *wire) tidy(all bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.free) > 0 && (all || time.Since(w.free[0].used) > w.o.TTL) {
		c := w.free[0]
		w.free = w.free[1:]
		c.leave()
	}
}

// leave closes a connection on which nothing is under way. It tells the server, and waits for nothing.
func (c *conn) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	_ = c.Close(ctx) // the server notices in any case
}

func (w *wire) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.tidy(true)
}

// hinted adds to the error of a denied request what to do.
func hinted(err error) error {
	var pg *pgconn.PgError
	switch {
	case !errors.As(err, &pg) || pg.Code != stateDenied:
		return err
	case strings.Contains(pg.Message, "function pg_"): // it is denied to the owner of the schema
		return fmt.Errorf("%w; have the owner of the schema apply what \"succession postgres schema\" prints, which does without", err)
	}
	return fmt.Errorf("%w; %s", err, kit.RightsHint)
}

// SQLSTATEs, see Appendix A of PostgreSQL's manual, and those of schema.sql.
const (
	stateDenied        = "42501" // insufficient_privilege
	stateReadOnly      = "25006" // read_only_sql_transaction
	stateIdle          = "25P03" // idle_in_transaction_session_timeout
	stateTooLong       = "25P04" // transaction_timeout
	stateUnused        = "57P05" // idle_session_timeout: the server has read no request since
	stateWrongPassword = "28P01"
	stateNoSchema      = "3F000"
	stateNoFunction    = "42883"
	stateNoTable       = "42P01"
	stateNoDatabase    = "3D000"
	stateDeposed       = "SU001"
	stateIsolation     = "SU002"
	stateReplica       = "SU003"
	stateTaken         = "SU004"
)

// errNoSchema says that what the driver calls is not there.
var errNoSchema = errors.New("the schema is not there")

func wrongPassword(err error) bool { return stateOf(err) == stateWrongPassword }

// lost reports whether err leaves open what became of the request.
func lost(err error) bool { return errors.Is(err, backend.ErrUnavailable) }

// answered turns an error of the client library into one of the contract.
func answered(ctx context.Context, err error) error {
	var pg *pgconn.PgError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &pg):
		pg.Message, pg.Detail, pg.Hint = kit.Clip(pg.Message), "", ""
		switch {
		case pg.Code == stateDenied, strings.HasPrefix(pg.Code, "28"):
			return fmt.Errorf("%w: %w", backend.ErrDenied, pg)
		case pg.Code == stateNoSchema, pg.Code == stateNoFunction, pg.Code == stateNoTable:
			return fmt.Errorf("%w: %w", errNoSchema, pg)
		case pg.Code == stateNoDatabase:
			return fmt.Errorf("%w database: %w", backend.ErrInvalid, pg)
		case pg.Code == stateReplica:
			return fmt.Errorf("%w setting: %w", backend.ErrInvalid, pg)
		case pg.Code == stateTaken:
			return fmt.Errorf("%w schema: %w", backend.ErrInvalid, pg)
		case pg.Code == stateReadOnly, pg.Code == stateIdle, pg.Code == stateTooLong, len(pg.Code) != 5,
			strings.Contains("08 40 53 54 55 57 58 XX", pg.Code[:2]):
			return fmt.Errorf("%w: %w", backend.ErrUnavailable, pg)
		}
		return kit.Brief(err)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w: %w", backend.ErrUnavailable, kit.Brief(err))
}
