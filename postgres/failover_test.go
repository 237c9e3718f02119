//go:build linux

package postgres_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/conformance/proxy"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
	"github.com/succession-dev/succession/postgres"
)

// hosts returns a client that knows the servers at these addresses.
func hosts(t testing.TB, o postgres.Options, addrs ...string) *postgres.Backend {
	t.Helper()
	return backendOf(t, configOf(t, addrs...), o)
}

// lead joins and waits until it is first, in as many sessions as it takes. It returns when that was known.
func lead(t testing.TB, b backend.Backend, line string) (s backend.Session, p backend.Place, at time.Time) {
	t.Helper()
	ctx := within(t, time.Minute)
	for {
		s, err := b.Session(ctx)
		if err == nil {
			var j backend.Joined
			if j, err = s.Join(ctx, line, "x", ""); err == nil {
				p, err = s.Ahead(ctx, j.Member)
				for err == nil && !p.First {
					err = s.WatchPlace(ctx, j.Member, &p)
				}
				if err == nil {
					return s, p, time.Now()
				}
			}
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
		// The calls themselves wait, but where a server refuses connections.
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// The standby that takes over has not heard of the leader's join, and the primary is dead. The next one is told that it is first after
// the deadline of the leader has passed, which the new server knows nothing of.
func TestFailoverLosesTheLeader(t *testing.T) {
	t.Parallel()
	const ttl = 4 * time.Second
	p := coordtest.NewPostgres(t, &coordtest.PostgresOptions{Standby: true})
	o := postgres.Options{TTL: ttl, ConnectTimeout: 10 * time.Second}
	next := hosts(t, o, p.Addrs()...)
	if _, err := next.Session(t.Context()); err != nil { // makes the schema, and the standby has it
		t.Fatal(err)
	}
	// As if a session with a longer session time had lived. The next server waits for that, and forgets it then.
	run(t, p.Addrs()[0], "UPDATE succession.meta SET longest = 5000")
	for end := time.Now().Add(time.Minute); run(t, p.Addrs()[0], "SELECT count(*) FROM pg_stat_replication WHERE replay_lsn = pg_current_wal_lsn()") != "1"; {
		if time.Now().After(end) {
			t.Fatal("the standby lags")
		}
	}
	if err := p.Lag(); err != nil {
		t.Fatal(err)
	}
	watch := calm.Start(t)
	s, was, _ := lead(t, hosts(t, o, p.Addrs()...), "e")
	select { // a heartbeat that the standby does not get
	case <-time.After(ttl / 2):
	case <-s.Done():
		if !watch.NotJudged(ttl/4, "the leader's session has ended: %v", s.Err()) {
			t.Error(s.Err())
		}
		return
	}
	deadline := s.Deadline()
	p.Servers()[0].Kill()
	if err := p.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	promoted := time.Now()
	_, now, at := lead(t, next, "e")
	t.Logf("the deadline was %v after the promotion, and the next one led %v after it", deadline.Sub(promoted).Round(time.Millisecond), at.Sub(promoted).Round(time.Millisecond))
	if at.Before(deadline) {
		t.Errorf("the next one led %v before the deadline of the one before", deadline.Sub(at))
	}
	if now.Token <= was.Token {
		t.Errorf("the token %d follows %d", now.Token, was.Token)
	}
	if waited := at.Sub(promoted); waited < 5*time.Second {
		t.Errorf("the next one led %v after the promotion, and a session of 5 s may have lived", waited)
	}
	if longest := run(t, p.Addrs()[1], "SELECT longest FROM succession.meta"); longest != "4000" {
		t.Errorf("the next failover takes %s ms, and all sessions have %v", longest, ttl)
	}
}

// opens opens a session, and tries again where that takes longer than the backend gives it.
func opens(t *testing.T, b backend.Backend) backend.Session {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		s, err := b.Session(t.Context())
		switch {
		case err == nil:
			return s
		case time.Now().After(end):
			t.Fatalf("a session: %v", err)
		}
	}
}

// Commits wait for the standby. When that takes over, and the old primary serves on, the leader there is cut off.
func TestFailoverWhileTheOldServes(t *testing.T) {
	t.Parallel()
	const ttl = 4 * time.Second
	p := coordtest.NewPostgres(t, &coordtest.PostgresOptions{Standby: true, Synchronous: true})
	o := postgres.Options{TTL: ttl, ConnectTimeout: 10 * time.Second}
	old := hosts(t, o, p.Addrs()[0])
	s, was, _ := lead(t, old, "e")
	leader := memberOf(t, s, "e")
	front := coordtest.NewProxy(t, p.Addrs()[1])
	both := hosts(t, postgres.Options{TTL: ttl, ConnectTimeout: 3 * time.Second}, p.Addrs()[0], front.Addr()) // which does not keep it at one for long
	before := opens(t, both)
	run(t, p.Addrs()[0], "CREATE ROLE hasty LOGIN SUPERUSER; ALTER ROLE hasty SET synchronous_commit = off")
	if err := p.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	for range 4 { // the old one still answers who only reads, on as many connections
		reading.Go(func() {
			for before.Err() == nil {
				_, _ = before.Line(t.Context(), "e")
			}
		})
	}
	reading.Wait()
	// Who knows both gets to the new one, although the old one takes connections, and asks nothing of that one any more.
	// That has no such session, and is not taken for the new one when a request finds that slow.
	after := opens(t, both)
	front.Delay(proxy.ToClient, time.Second)
	put := func() error {
		_, err := after.Put(t.Context(), "r", nil, nil)
		return err
	}
	if err := put(); !errors.Is(err, backend.ErrUnavailable) || !strings.Contains(err.Error(), "does not know the session") {
		t.Errorf("a write, while the new server answers late: %v, want ErrUnavailable", err)
	}
	front.Delay(proxy.ToClient, 0)
	err := put()
	for end := time.Now().Add(time.Minute); errors.Is(err, backend.ErrUnavailable) && time.Now().Before(end); err = put() {
	}
	if err != nil {
		t.Errorf("a write in the session of the new server: %v", err)
	}
	_, now, at := lead(t, hosts(t, o, p.Addrs()[1]), "e")
	if left := s.Deadline().Sub(at); left > 0 {
		t.Errorf("the next one leads, and the deadline of the one before is %v ahead", left)
	}
	if now.Token <= was.Token {
		t.Errorf("the token %d follows %d", now.Token, was.Token)
	}
	// Nothing can be committed there any more, and no guarded transaction of a role that otherwise waits for no standby.
	user, err := pgx.Connect(t.Context(), "postgres://hasty@"+p.Addrs()[0]+"/postgres?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	defer user.Close(context.Background())
	tx, err := user.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := postgres.Guard(t.Context(), tx, "", leader); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	committed := make(chan error, 1)
	go func() { committed <- tx.Commit(ctx) }()
	for pid := user.PgConn().PID(); run(t, p.Addrs()[0], fmt.Sprintf("SELECT wait_event FROM pg_stat_activity WHERE pid = %d", pid)) != "SyncRep"; {
		select {
		case err := <-committed:
			t.Fatalf("the old leader's transaction ends with %v", err)
		default:
		}
	}
	cancel()
	if err := <-committed; err == nil {
		t.Error("the old leader's transaction is committed")
	}
	if _, err := old.Session(within(t, 5*time.Second)); err == nil {
		t.Error("the old primary gives sessions")
	}
}

// A session of the new primary loses its connection while only the old one, which serves on, can be reached. That has no such session, and does
// not end it.
func TestDeposedPrimaryEndsNothing(t *testing.T) {
	t.Parallel()
	p := coordtest.NewPostgres(t, &coordtest.PostgresOptions{Standby: true, Synchronous: true})
	was, is := coordtest.NewProxy(t, p.Addrs()[0]), coordtest.NewProxy(t, p.Addrs()[1])
	asked := make(said, 100)
	o := postgres.Options{TTL: 30 * time.Second, ConnectTimeout: time.Minute, Logger: slog.New(asked)}
	if err := opens(t, hosts(t, o, was.Addr())).Close(t.Context()); err != nil { // it has made the schema
		t.Fatal(err)
	}
	if err := p.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	was.Refuse() // it would not answer who opens a session
	s := opens(t, hosts(t, o, was.Addr(), is.Addr()))
	was.Heal()
	is.Hide()
	for answered := false; !answered; {
		select {
		case what := <-asked:
			answered = strings.Contains(what, "was deposed before")
		case <-s.Done():
			t.Fatalf("a server that never had the session has ended it: %v", s.Err())
		}
	}
	deadline := s.Deadline()
	is.Heal()
	for s.Err() == nil && s.Deadline().Sub(deadline) < o.TTL/100 {
		time.Sleep(10 * time.Millisecond)
	}
	if err := s.Err(); err != nil {
		t.Fatalf("the session does not go on with its own server: %v", err)
	}
	if _, err := s.Put(t.Context(), "r", nil, nil); err != nil {
		t.Error(err)
	}
	// An operator's word counts there.
	run(t, p.Addrs()[1], "DELETE FROM succession.session")
	select {
	case <-s.Done():
	case <-within(t, time.Minute).Done():
		t.Fatal("the session goes on without its row")
	}
}

// balanced returns a configuration that connects to the server that leads to was called with last. All connections show the address that is at
// the time, as behind a load balancer.
func balanced(t testing.TB) (cfg *pgconn.Config, leads func(addr string, shown net.Addr)) {
	type target struct {
		addr  string
		shown net.Addr
	}
	var now atomic.Pointer[target]
	cfg = configOf(t, "127.0.0.1:1")
	cfg.DialFunc = func(ctx context.Context, network, _ string) (net.Conn, error) {
		to := now.Load()
		c, err := new(net.Dialer).DialContext(ctx, network, to.addr)
		return behind{c, to.shown}, err
	}
	return cfg, func(addr string, shown net.Addr) { now.Store(&target{addr, shown}) }
}

type behind struct {
	net.Conn
	shown net.Addr
}

func (b behind) RemoteAddr() net.Addr { return b.shown }

// A load balancer gets another address, and what is connected by the one before stays so.
func TestAddressChanges(t *testing.T) {
	t.Parallel()
	addr := sharedPostgres(t).Addrs()[0]
	cfg, leads := balanced(t)
	leads(addr, &net.TCPAddr{Port: 1})
	s := opens(t, backendOf(t, cfg, postgres.Options{}))
	leads(addr, &net.TCPAddr{Port: 2})
	if _, err := s.Put(t.Context(), "r", nil, nil); err != nil {
		t.Errorf("a write by another address: %v", err)
	}
	if err := s.Err(); err != nil {
		t.Error(err)
	}
}

// One address leads to several servers for a while. The one that does not know the session does not end it, whether it has the schema or not.
func TestAddressOfAnotherServer(t *testing.T) {
	t.Parallel()
	addr, another := sharedPostgres(t).Addrs()[0], coordtest.NewPostgres(t, nil).Addrs()[0]
	cfg, leads := balanced(t)
	one := &net.TCPAddr{Port: 1}
	leads(addr, one)
	s := opens(t, backendOf(t, cfg, postgres.Options{}))
	for _, schema := range []bool{false, true} {
		if schema {
			if err := postgres.EnsureSchema(t.Context(), configOf(t, another), ""); err != nil {
				t.Fatal(err)
			}
		}
		leads(another, one)
		if _, err := s.Put(t.Context(), "r", nil, nil); !errors.Is(err, backend.ErrUnavailable) {
			t.Errorf("a write at another server, which has the schema: %t: %v, want ErrUnavailable", schema, err)
		}
	}
	leads(addr, one)
	if _, err := s.Put(t.Context(), "r", nil, nil); err != nil {
		t.Errorf("a write at the session's own server: %v", err)
	}
	if err := s.Err(); err != nil {
		t.Error(err)
	}
}

// A session is closed while its connection is broken, and its address leads to another server, which has no such session: that one does not
// end it.
func TestCloseAtAnotherServer(t *testing.T) {
	t.Parallel()
	addr, another := sharedPostgres(t).Addrs()[0], coordtest.NewPostgres(t, nil).Addrs()[0]
	cfg, leads := balanced(t)
	one := &net.TCPAddr{Port: 1}
	leads(addr, one)
	came := make(chan struct{}, 1)
	dial := cfg.DialFunc
	cfg.DialFunc = func(ctx context.Context, network, at string) (net.Conn, error) {
		kit.Notify(came)
		return dial(ctx, network, at)
	}
	const schema = "closed_elsewhere"
	s := opens(t, backendOf(t, cfg, postgres.Options{Schema: schema}))
	<-came
	leads(another, one)
	run(t, addr, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%closed_elsewhere%' AND pid <> pg_backend_pid()")
	<-came // the session connects again
	closed := make(chan error, 1)
	go func() { closed <- s.Close(t.Context()) }()
	for range 3 { // and those who close it
		select {
		case <-came:
		case err := <-closed:
			t.Fatalf("it is closed where it is not known: %v", err)
		}
	}
	leads(addr, one)
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if n := run(t, addr, "SELECT count(*) FROM "+schema+".session"); n != "0" {
		t.Errorf("after Close there are %s sessions", n)
	}
}

// Who ends the session of a leader that has crashed gets to another server, which answers that nothing is to be done, and then to its own.
func TestReapAtAnotherServer(t *testing.T) {
	t.Parallel()
	const schema = "reaped_elsewhere"
	addr, another := sharedPostgres(t).Addrs()[0], coordtest.NewPostgres(t, nil).Addrs()[0]
	if err := postgres.EnsureSchema(t.Context(), configOf(t, another), schema); err != nil {
		t.Fatal(err)
	}
	cfg, leads := balanced(t)
	one := &net.TCPAddr{Port: 1}
	leads(addr, one)
	came := make(chan struct{}, 1)
	dial := cfg.DialFunc
	cfg.DialFunc = func(ctx context.Context, network, at string) (net.Conn, error) {
		c, err := dial(ctx, network, at)
		kit.Notify(came)
		return c, err
	}
	s := opens(t, backendOf(t, cfg, postgres.Options{Schema: schema}))
	<-came
	leads(another, one)
	// A session that nobody has.
	run(t, addr, "INSERT INTO "+schema+".session SELECT gen_random_uuid(), 1000, era, 1 FROM "+schema+".session")
	select {
	case <-came:
	case <-s.Done():
		t.Fatal(s.Err())
	}
	leads(addr, one)
	for end := time.Now().Add(2 * long); run(t, addr, "SELECT count(*) FROM "+schema+".session") != "1"; time.Sleep(ttl / 20) {
		if time.Now().After(end) {
			t.Fatal("nobody ends the session")
		}
	}
	if err := s.Err(); err != nil {
		t.Error(err)
	}
}

// A commit that waits for a standby and is cancelled is told as done. Nobody lives on it.
func TestCancelledCommits(t *testing.T) {
	t.Parallel()
	const ttl = 3 * time.Second
	p := coordtest.NewPostgres(t, &coordtest.PostgresOptions{Standby: true, Synchronous: true})
	run(t, p.Addrs()[0], "ALTER DATABASE postgres SET client_min_messages = error") // the sign of it is a warning
	watch := calm.Start(t)
	s, _, _ := lead(t, hosts(t, postgres.Options{TTL: ttl}, p.Addrs()[0]), "e")
	p.Servers()[1].Kill()
	gone, admin := time.Now(), connect(t, p.Addrs()[0])
	cancelled := 0
	for s.Err() == nil && time.Since(gone) < time.Minute {
		var n int
		if err := admin.QueryRow(t.Context(), "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'").Scan(&n); err != nil {
			t.Fatal(err)
		}
		cancelled += n
	}
	if !errors.Is(s.Err(), backend.ErrSessionEnded) {
		t.Errorf("after %d commits that were cancelled: %v", cancelled, s.Err())
	}
	if cancelled == 0 && !watch.NotJudged(ttl/4, "no commit was cancelled") {
		t.Error("no commit was cancelled")
	}

	// Nor is an operator told so.
	operator, cleared := rig.OperatorOf(t, urlOf(p.Addrs()[0])), make(chan error, 1)
	go func() {
		_, _ = tryRun(t.Context(), configOf(t, p.Addrs()[0]), "SET synchronous_commit = off; INSERT INTO succession.record VALUES ('r', 'x', 1)")
		cleared <- operator.Clear(t.Context(), "r")
	}()
	for {
		if _, err := admin.Exec(t.Context(), "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-cleared:
			if !errors.Is(err, backend.ErrUnavailable) {
				t.Errorf("the operator's removal: %v", err)
			}
			return
		default:
		}
	}
}

// Commits wait for a standby that does not come back. Processes that try again and again to open a session take no more and more of the
// server's connections.
func TestStandbyIsGone(t *testing.T) {
	t.Parallel()
	p := coordtest.NewPostgres(t, &coordtest.PostgresOptions{Standby: true, Synchronous: true})
	const connect = 3 * time.Second
	b := hosts(t, postgres.Options{TTL: time.Second, ConnectTimeout: connect}, p.Addrs()[0])
	s, err := b.Session(t.Context())
	for ctx := within(t, time.Minute); errors.Is(err, backend.ErrUnavailable); { // where processes are slow to make, it may take longer than that
		s, err = b.Session(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	watch := calm.Start(t)
	p.Servers()[1].Kill()
	<-s.Done()
	for range 5 {
		if _, err = b.Session(t.Context()); !errors.Is(err, backend.ErrUnavailable) {
			t.Fatalf("a session: %v", err)
		}
	}
	if !strings.Contains(err.Error(), "standby") && !watch.NotJudged(connect/2, "nobody is told why: %v", err) {
		t.Errorf("nobody is told why: %v", err)
	}
	// One may be left of the heartbeats of the session, and one of its end. An attempt that is given up before the server has begun to wait
	// leaves one more.
	if n := run(t, p.Addrs()[0], "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"); (n > "3" || len(n) > 1) && !watch.NotJudged(connect/2, "%s connections wait for the standby", n) {
		t.Errorf("%s connections wait for the standby", n)
	}
}

// Who opens a session on a server that may lose commits is told so once.
func TestWarnsOfStandby(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		synchronous, another bool
		want, owner          int64
	}{{false, false, 1, 1}, {true, false, 0, 0}, {true, true, 1, 0}} {
		p := coordtest.NewPostgres(t, &coordtest.PostgresOptions{Standby: true, Synchronous: c.synchronous})
		addr := p.Addrs()[0]
		if c.another {
			const lsn = 1 << 40 // it has all
			receive(t, addr, "another", "START_REPLICATION "+run(t, addr, "SELECT pg_current_wal_flush_lsn()"), lsn, lsn)
			until(t, addr, "SELECT count(*) = 2 FROM pg_stat_replication WHERE sync_state <> 'async'")
		}
		until(t, addr, "SELECT bool_and(replay_lsn IS NOT NULL) FROM pg_stat_replication")
		warns(t, addr, c.want, c.owner)
	}
}

// Who cannot take over is no standby, whether commits wait for it or not: a backup, an archive of the log, a subscriber.
func TestWarnsOfNoReceiver(t *testing.T) {
	t.Parallel()
	addr := coordtest.NewPostgres(t, &coordtest.PostgresOptions{Config: []string{"wal_level=logical", "wal_keep_size=64MB"}}).Addrs()[0] // the backup begins with a checkpoint
	receive(t, addr, "pg_basebackup", "BASE_BACKUP (MAX_RATE 32, CHECKPOINT 'fast')", 0, 0)
	receive(t, addr, "pg_receivewal", "START_REPLICATION "+run(t, addr, "SELECT pg_current_wal_flush_lsn()"), 1<<40, 0)
	run(t, addr, "CREATE DATABASE other")
	run(t, addr, "CREATE PUBLICATION p")
	run(t, addr, "SELECT pg_create_logical_replication_slot('subscriber', 'pgoutput')")
	other := configOf(t, addr)
	other.Database = "other"
	if _, err := tryRun(t.Context(), other, fmt.Sprintf("CREATE SUBSCRIPTION subscriber CONNECTION 'host=%s port=%d user=postgres dbname=postgres' PUBLICATION p WITH (create_slot=false)", other.Host, other.Port)); err != nil {
		t.Fatal(err)
	}
	until(t, addr, "SELECT string_agg(application_name, ' ' ORDER BY application_name) = 'pg_basebackup pg_receivewal subscriber' AND count(flush_lsn) = 2 FROM pg_stat_replication WHERE state <> 'startup'")
	warns(t, addr, 0, 0)
	run(t, addr, "ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (*)'")
	run(t, addr, "SELECT pg_reload_conf()")
	until(t, addr, "SELECT count(*) = 2 FROM pg_stat_replication WHERE sync_state = 'quorum'")
	warns(t, addr, 0, 0)
}

// warns fails the test unless so many warnings of a standby come where the owner of the schema may see who follows, and so many where it may not,
// however many sessions are opened.
func warns(t *testing.T, addr string, sees, owner int64) {
	t.Helper()
	_, _ = tryRun(t.Context(), configOf(t, addr), "CREATE ROLE owner LOGIN") // it may be there
	run(t, addr, "GRANT CREATE ON DATABASE postgres TO owner")
	for user, want := range map[string]int64{"postgres": sees, "owner": owner} {
		log := warnings{of: "standby"}
		cfg := configOf(t, addr)
		cfg.User = user
		b := backendOf(t, cfg, postgres.Options{Schema: "of_" + user, Logger: slog.New(&log)})
		for range 2 {
			s, err := b.Session(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if n := log.n.Load(); n != want {
			t.Errorf("%d warnings where the owner is %s, want %d; there are %s", n, user, want, run(t, addr, "SELECT json_agg(r) FROM pg_stat_replication r"))
		}
	}
}

// said passes on the errors that are logged.
type said chan string

func (s said) Enabled(context.Context, slog.Level) bool { return true }
func (s said) WithAttrs([]slog.Attr) slog.Handler       { return s }
func (s said) WithGroup(string) slog.Handler            { return s }
func (s said) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "err" {
			select {
			case s <- a.Value.String():
			default: // nobody waits for it
			}
		}
		return true
	})
	return nil
}

// receive connects as one that receives the log, and says how much of it is flushed there, and applied. A standby applies it.
func receive(t testing.TB, addr, name, command string, flushed, applied uint64) {
	t.Helper()
	cfg := configOf(t, addr)
	cfg.RuntimeParams["replication"], cfg.RuntimeParams["application_name"], cfg.ValidateConnect = "true", name, nil
	c, err := pgconn.ConnectConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Conn().Close() })
	c.Frontend().SendQuery(&pgproto3.Query{String: command})
	if flushed > 0 {
		has := append([]byte("r"), make([]byte, 4*8+1)...) // what it has written, flushed and applied, and when it says so
		binary.BigEndian.PutUint64(has[1:], flushed)
		binary.BigEndian.PutUint64(has[9:], flushed)
		binary.BigEndian.PutUint64(has[17:], applied)
		c.Frontend().Send(&pgproto3.CopyData{Data: has})
	}
	if err := c.Frontend().Flush(); err != nil {
		t.Fatal(err)
	}
}

// until waits until the server answers with true.
func until(t testing.TB, addr, query string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); run(t, addr, query) != "t"; {
		if time.Now().After(end) {
			t.Fatalf("never: %s", query)
		}
	}
}

// warnings counts those that have certain words.
type warnings struct {
	of string
	n  atomic.Int64
}

func (w *warnings) Enabled(context.Context, slog.Level) bool { return true }
func (w *warnings) WithAttrs([]slog.Attr) slog.Handler       { return w }
func (w *warnings) WithGroup(string) slog.Handler            { return w }
func (w *warnings) Handle(_ context.Context, r slog.Record) error {
	if r.Level == slog.LevelWarn && strings.Contains(r.Message, w.of) {
		w.n.Add(1)
	}
	return nil
}
