//go:build linux

package postgres_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/proxy"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
	"github.com/succession-dev/succession/internal/rig/linear"
	"github.com/succession-dev/succession/postgres"
)

func TestOperator(t *testing.T) {
	t.Parallel()
	rig.CheckOperator(t, urlOf(sharedPostgres(t).Addrs()[0]))
}

func TestHeartbeatsAreTraced(t *testing.T) {
	t.Parallel()
	coordtest.TracesHeartbeats(t, newClient(t, sharedPostgres(t).Addrs()[0], postgres.Options{TTL: 4 * ttl}), coordtest.Name(t))
}

// TestHistories has histories of records, items and locks fit one order.
func TestHistories(t *testing.T) {
	linear.Run(t, harness(t, nil))
}

// A process at rest has one connection.
func TestOneConnection(t *testing.T) {
	t.Parallel()
	addr := coordtest.NewPostgres(t, nil).Addrs()[0]
	c := newClient(t, addr, postgres.Options{TTL: 3 * ttl}) // after which the other one is closed
	s := c.live(t)
	m := join(t, s, "e", "x")
	p, err := s.Ahead(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), "r", []byte("x"), nil); err != nil { // which takes another
		t.Fatal(err)
	}
	waiting, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error)
	go func() { done <- s.WatchPlace(waiting, m, &p) }()
	for end := time.Now().Add(time.Minute); ; {
		n := run(t, addr, "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()")
		if n == "1" {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%s connections", n)
		}
		select { // no event tells that the server has closed one
		case <-time.After(ttl / 10):
		case err := <-done:
			t.Fatal(err)
		}
	}
	cancel()
	<-done
}

// A thousand crash at once, and the first of those who are left is told soon after their session time.
func TestCrowdCrashes(t *testing.T) {
	t.Parallel()
	const ttl = 2 * ttl // of all of them: who looks for the heartbeats of others has its own session time for that
	addr := coordtest.NewPostgres(t, nil).Addrs()[0]
	watch, s := calm.Start(t), newClient(t, addr, postgres.Options{TTL: ttl}).live(t)
	begun := time.Now()
	// Rows are all that is left of those who crash.
	run(t, addr, `INSERT INTO succession.session SELECT gen_random_uuid(), 4000, succession.era(), 1 FROM generate_series(1, 1000);
		INSERT INTO succession.member SELECT 'e', row_number() OVER (), id, 1, 'x', false FROM succession.session WHERE id NOT IN (SELECT session FROM succession.joiner)`)
	m, ctx := join(t, s, "e", "last"), within(t, time.Minute)
	p, err := s.Ahead(ctx, m)
	for err == nil && !p.First {
		err = s.WatchPlace(ctx, m, &p)
	}
	if err != nil {
		if !watch.NotJudged(ttl/4, "it is not first: %v", err) {
			t.Error(err)
		}
		return
	}
	if took := time.Since(begun); took < ttl {
		t.Errorf("it is first after %v, within the session time of those in front", took)
	} else {
		t.Logf("first after %v, behind a thousand that have crashed, with a session time of %v", took.Round(time.Millisecond), ttl)
	}
}

// A table that somebody holds locked keeps a join from being done. It is not begun again once its caller has gone, and leaves nobody.
func TestLockedOut(t *testing.T) {
	t.Parallel()
	addr := sharedPostgres(t).Addrs()[0]
	c := newClient(t, addr, postgres.Options{})
	s, line := c.live(t), coordtest.Name(t)
	locker := connect(t, addr)
	tx, err := locker.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// The line's counter, which its joins wait for.
	if _, err := tx.Exec(t.Context(), "SELECT succession.next($1)", line); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), ttl)
	defer cancel()
	if _, err := s.Join(ctx, line, "x", ""); err == nil || ctx.Err() == nil {
		t.Fatalf("a join behind a lock: %v", err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; {
		m := join(t, s, line, "y")
		l, err := s.Line(t.Context(), line)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Leave(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		if len(l.Members) == 1 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d members stand", len(l.Members))
		}
	}
}

// If nobody can find out whether a join has taken effect, the session ends: its member would otherwise be one that nobody knows.
func TestJoinThatCannotBeBurnt(t *testing.T) {
	t.Parallel()
	addr := sharedPostgres(t).Addrs()[0]
	c := newClient(t, addr, postgres.Options{Schema: "unburnt"})
	s := c.live(t)
	run(t, addr, `CREATE OR REPLACE FUNCTION unburnt.burn(s uuid, n bigint, OUT why text, OUT pos bigint) LANGUAGE plpgsql AS
		$$ BEGIN RAISE EXCEPTION 'not you' USING ERRCODE = '42501'; END $$`)
	c.LoseAnswer()
	if _, err := s.Join(t.Context(), "e", "x", ""); err == nil {
		t.Fatal("the answer was not lost")
	}
	select {
	case <-s.Done():
	case <-time.After(time.Minute):
		t.Fatal("the session lives on")
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if n := run(t, addr, "SELECT count(*) FROM unburnt.member"); n != "0" {
		t.Errorf("%s members stand", n)
	}
}

// Readers, whose values may be anything, join as well as others.
func TestSharedValues(t *testing.T) {
	t.Parallel()
	s := newClient(t, sharedPostgres(t).Addrs()[0], postgres.Options{}).live(t)
	for _, value := range []string{"id\na" + strings.Repeat("é", 60), "id\n\x00", "id\n" + strings.Repeat("1 ", 100)} {
		j, err := s.JoinShared(t.Context(), coordtest.Name(t), value, "")
		if err != nil || j.Value != value {
			t.Errorf("%q: %+v, %v", value, j, err)
		}
	}
}

// When the connection is made anew, all that waits looks again, one after the other, on that connection. If that takes longer than a
// session time, the heartbeats come between.
func TestHeartbeatsBetweenLooks(t *testing.T) {
	t.Parallel()
	const ttl, waiters, delay = 3 * ttl, 90, 100 * time.Millisecond // together 9 s
	watch, c := calm.Start(t), newClient(t, sharedPostgres(t).Addrs()[0], postgres.Options{TTL: ttl})
	s, line := c.live(t), coordtest.Name(t)
	m := join(t, s, line, "x")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	waited := make(chan error, waiters)
	for range waiters {
		go func() { waited <- s.Gone(ctx, m) }()
	}
	beats := make(chan backend.Heartbeat, 100)
	t.Cleanup(s.TraceHeartbeats(func(h backend.Heartbeat) { beats <- h }))
	for range 2 { // all of them wait
		<-beats
	}
	c.proxies[0].Delay(proxy.ToClient, delay)
	c.proxies[0].Reset()
	for range 8 {
		select {
		case <-beats:
		case <-s.Done():
			if !watch.NotJudged(ttl/4, "the session has ended: %v", s.Err()) {
				t.Error(s.Err())
			}
			return
		}
	}
	cancel()
	for range waiters {
		if err := <-waited; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

// The server is never asked to cancel what was under way: a commit that waits for a standby would be told as done.
func TestNothingIsCancelled(t *testing.T) {
	t.Parallel()
	c := newClient(t, sharedPostgres(t).Addrs()[0], postgres.Options{TTL: 4 * ttl})
	s := c.live(t)
	m := join(t, s, coordtest.Name(t), "x")
	for range 5 {
		c.proxies[0].Sever()
		ctx, cancel := context.WithTimeout(t.Context(), ttl/4)
		_, _ = s.Put(ctx, m.Line+"-record", []byte("x"), nil)
		_, _ = s.Ahead(ctx, m)
		cancel()
		c.proxies[0].Heal()
		if _, err := s.Ahead(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	if n := c.cancels.Load(); n != 0 {
		t.Errorf("%d requests to cancel", n)
	}
}

// Who is far from the head of a line that stands still does not listen, and does again before its turn comes. If all in front leave at once, it
// still comes to know that it is first.
func TestFarFromTheHead(t *testing.T) {
	t.Parallel()
	for name, together := range map[string]bool{"one after the other": false, "all at once": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr, line := sharedPostgres(t).Addrs()[0], coordtest.Name(t)
			front := newClient(t, addr, postgres.Options{}).live(t)
			var members []backend.Member
			for range 30 {
				members = append(members, join(t, front, line, "x"))
			}
			s := newClient(t, addr, postgres.Options{TTL: 3 * ttl}).live(t)
			m := join(t, s, line, "far")
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			first := make(chan error, 1)
			go func() {
				p, err := s.Ahead(ctx, m)
				for err == nil && !p.First {
					err = s.WatchPlace(ctx, m, &p)
				}
				first <- err
			}()
			quiet := func(want bool) {
				t.Helper()
				for postgres.Quiet(s) != want {
					select { // no event tells
					case <-time.After(ttl / 50):
					case err := <-first:
						t.Fatalf("it is first: %v", err)
					}
				}
			}
			quiet(true)
			for i, o := range members {
				if err := front.Leave(ctx, o); err != nil {
					t.Fatal(err)
				}
				if i == len(members)-5 && !together {
					quiet(false)
				}
			}
			if err := <-first; err != nil {
				t.Fatal(err)
			}
		})
	}
}

// When a server has restarted, a session that has noticed writes at once: it sends nothing on a connection that the server has closed.
func TestWritesAfterRestart(t *testing.T) {
	t.Parallel()
	p := coordtest.NewPostgres(t, nil)
	addr := p.Addrs()[0]
	b := hosts(t, postgres.Options{}, addr)
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), "r", []byte("1"), nil); err != nil { // on a connection that stays
		t.Fatal(err)
	}
	if err := p.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); run(t, addr, "SELECT count(*) FROM pg_stat_activity WHERE datname = 'postgres' AND pid <> pg_backend_pid()") == "0"; {
		if time.Now().After(end) {
			t.Fatal("the session has not connected again")
		}
	}
	if s, err = b.Session(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), "r", []byte("2"), nil); err != nil {
		t.Error(err)
	}
}

// A dialer of the application may return connections whose error for a deadline that has passed is one of their own. The rest of the
// session's connection ends with it, and the connection stays.
func TestTimeoutsOfAnotherKind(t *testing.T) {
	t.Parallel()
	cfg := configOf(t, sharedPostgres(t).Addrs()[0])
	var dials atomic.Int64
	cfg.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		dials.Add(1)
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		return userspace{c}, err
	}
	const ttl = 3 * ttl
	watch := calm.Start(t)
	s, err := backendOf(t, cfg, postgres.Options{TTL: ttl}).Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	beats, before := make(chan backend.Heartbeat, 100), dials.Load()
	t.Cleanup(s.TraceHeartbeats(func(h backend.Heartbeat) { beats <- h }))
	for range 4 {
		select {
		case <-beats:
		case <-s.Done():
			if !watch.NotJudged(ttl/4, "the session has ended: %v", s.Err()) {
				t.Error(s.Err())
			}
			return
		}
	}
	if n := dials.Load() - before; n != 0 && !watch.NotJudged(ttl/4, "%d connections more", n) {
		t.Errorf("%d connections more while nothing happened", n)
	}
}

// A userspace connection is like one of a network stack in the process, as gVisor's.
type userspace struct{ net.Conn }

func (u userspace) Read(b []byte) (int, error) {
	n, err := u.Conn.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = &net.OpError{Op: "read", Net: "tcp", Err: ownTimeout{}}
	}
	return n, err
}

type ownTimeout struct{}

func (ownTimeout) Error() string   { return "i/o timeout" }
func (ownTimeout) Timeout() bool   { return true }
func (ownTimeout) Temporary() bool { return true }

// A write that waits for a connection, and that its caller gives up, is not sent afterwards, over what others have been told was written.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	addr := coordtest.NewPostgres(t, nil).Addrs()[0] // where nobody else waits for the counter
	c := newClient(t, addr, postgres.Options{})
	s, other := c.live(t), newClient(t, addr, postgres.Options{}).live(t)
	const line = "line"
	counter := func(name string) byte { sum := sha256.Sum256([]byte(name)); return sum[0] & 63 } // that names share, see next in schema.sql
	record := "record"
	for counter(record) == counter(line) {
		record += "s"
	}
	locker := connect(t, addr)
	tx, err := locker.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// The line's counter, which its joins wait for.
	if _, err := tx.Exec(t.Context(), "SELECT succession.next($1)", line); err != nil {
		t.Fatal(err)
	}
	joined := make(chan error, 8)
	for range cap(joined) { // more than there are connections
		go func() {
			_, err := s.Join(t.Context(), line, "x", "")
			joined <- err
		}()
	}
	for !postgres.Full(c.Backend) {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(t.Context(), ttl/2)
	defer cancel()
	if _, err := s.Put(ctx, record, []byte("given up"), nil); err == nil || ctx.Err() == nil {
		t.Fatalf("a write without a connection: %v", err)
	}
	v, err := other.Put(t.Context(), record, []byte("told"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range cap(joined) {
		if err := <-joined; err != nil {
			t.Error(err)
		}
	}
	if r, err := s.Get(t.Context(), record); err != nil || r.Version != v { // it waits for a connection behind the write
		t.Errorf("the record is %q (%v), and the other one was told that it has written", r.Value, err)
	}
}
