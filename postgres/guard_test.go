//go:build linux

package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/postgres"
)

var levels = []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead, pgx.Serializable}

// connect returns a connection of the user's, which ends with the test.
func connect(t testing.TB, addr string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), "postgres://postgres@"+addr+"/postgres?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

// A transaction is committed while its leader leads, also behind a raised fence, and never afterwards.
func TestGuard(t *testing.T) {
	t.Parallel()
	addr := sharedPostgres(t).Addrs()[0]
	for _, level := range levels {
		for _, way := range []string{"pgx", "database/sql"} {
			t.Run(fmt.Sprint(level, " ", way), func(t *testing.T) {
				t.Parallel()
				c := newClient(t, addr, postgres.Options{})
				s, line := c.live(t), coordtest.Name(t)
				table := fmt.Sprintf("guarded_%x", line[len(line)-8:])
				run(t, addr, "CREATE TABLE "+table+" (n int)")
				rows := func(want string) {
					t.Helper()
					if got := run(t, addr, "SELECT count(*) FROM "+table); got != want {
						t.Fatalf("%s transactions have taken effect, want %s", got, want)
					}
				}
				// work begins a transaction, guards it, does what meanwhile says, and commits.
				work := func(m backend.Member, meanwhile func()) error {
					t.Helper()
					if way == "pgx" {
						tx, err := connect(t, addr).BeginTx(t.Context(), pgx.TxOptions{IsoLevel: level})
						if err != nil {
							t.Fatal(err)
						}
						defer tx.Rollback(t.Context())
						if err := postgres.Guard(t.Context(), tx, "", m); err != nil {
							return err
						}
						if _, err := tx.Exec(t.Context(), "INSERT INTO "+table+" VALUES (1)"); err != nil {
							t.Fatal(err)
						}
						meanwhile()
						return tx.Commit(t.Context())
					}
					db, err := sql.Open("pgx", "postgres://postgres@"+addr+"/postgres?sslmode=disable")
					if err != nil {
						t.Fatal(err)
					}
					defer db.Close()
					isolation := map[pgx.TxIsoLevel]sql.IsolationLevel{pgx.ReadCommitted: sql.LevelReadCommitted, pgx.RepeatableRead: sql.LevelRepeatableRead, pgx.Serializable: sql.LevelSerializable}
					tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: isolation[level]})
					if err != nil {
						t.Fatal(err)
					}
					defer tx.Rollback()
					if err := postgres.GuardSQL(t.Context(), tx, "", m); err != nil {
						return err
					}
					if _, err := tx.ExecContext(t.Context(), "INSERT INTO "+table+" VALUES (1)"); err != nil {
						t.Fatal(err)
					}
					meanwhile()
					return tx.Commit()
				}

				one, two := join(t, s, line, "1"), join(t, s, line, "2")
				if err := work(one, func() {}); err != nil {
					t.Fatalf("the leader: %v", err)
				}
				rows("1")
				if err := work(two, func() {}); !postgres.Deposed(err) {
					t.Fatalf("who does not lead yet: %v", err)
				}
				if err := work(one, func() { raise(t, s, line) }); err != nil {
					t.Fatalf("the leader, whose fence was raised: %v", err)
				}
				rows("2")
				// The transaction is open, and does not keep the next one from leading.
				err := work(one, func() {
					if err := s.Leave(t.Context(), one); err != nil {
						t.Fatal(err)
					}
					if p, err := s.Ahead(t.Context(), two); err != nil || !p.First {
						t.Fatalf("the next one stands at %+v, %v", p, err)
					}
				})
				if level == pgx.ReadCommitted && !postgres.Deposed(err) || err == nil {
					t.Fatalf("the leader, which was deposed meanwhile: %v", err)
				}
				if err := work(one, func() {}); !postgres.Deposed(err) {
					t.Fatalf("the leader, which was deposed before: %v", err)
				}
				rows("2")
				if err := work(two, func() {}); err != nil {
					t.Fatalf("the next leader: %v", err)
				}
				rows("3")
				for _, m := range []backend.Member{{}, {Line: line}, {Position: 3}} {
					if err := work(m, func() {}); !errors.Is(err, backend.ErrInvalid) {
						t.Errorf("member %+v: %v", m, err)
					}
				}
			})
		}
	}
}

// A member that is not in the schema, or a schema that is not in the database, is not taken for something else.
func TestGuardInAnotherSchema(t *testing.T) {
	t.Parallel()
	addr := sharedPostgres(t).Addrs()[0]
	newClient(t, addr, postgres.Options{}).live(t) // which makes the default schema
	m := join(t, newClient(t, addr, postgres.Options{Schema: "guarding"}).live(t), "e", "x")
	for schema, want := range map[string]string{"guarding": "", "": "schema succession", "never_made": "schema of the election"} {
		tx, err := connect(t, addr).Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		err = postgres.Guard(t.Context(), tx, schema, m)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("in %q: %v", schema, err)
		}
		if postgres.Deposed(err) != (schema == "") || errors.Is(err, backend.ErrInvalid) != (schema == "never_made") {
			t.Errorf("in %q: %v", schema, err)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// A transaction under session_replication_role = replica, in which most triggers do not work, is refused as well.
func TestGuardOfReplica(t *testing.T) {
	t.Parallel()
	addr := sharedPostgres(t).Addrs()[0]
	s, line := newClient(t, addr, postgres.Options{}).live(t), coordtest.Name(t)
	join(t, s, line, "leader")
	next := join(t, s, line, "next")
	tx, err := connect(t, addr).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	if _, err := tx.Exec(t.Context(), "SET LOCAL session_replication_role = replica"); err != nil {
		t.Fatal(err)
	}
	if err := postgres.Guard(t.Context(), tx, "", next); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); !postgres.Deposed(err) {
		t.Errorf("who does not lead: %v", err)
	}
}

// A transaction that holds on to the member of a process that has crashed does not keep the sessions of others that have crashed from
// being ended.
func TestLockedMember(t *testing.T) {
	t.Parallel()
	addr := sharedPostgres(t).Addrs()[0]
	s := newClient(t, addr, postgres.Options{Schema: "locked"}).live(t)
	tx, err := connect(t, addr).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Rows are all that is left of those who crash.
	run(t, addr, `INSERT INTO locked.session SELECT gen_random_uuid(), 2000, locked.era(), 1 FROM generate_series(1, 10);
		INSERT INTO locked.member SELECT 'e' || row_number() OVER (), row_number() OVER (), id, 1, 'x', false FROM locked.session WHERE id NOT IN (SELECT session FROM locked.joiner)`)
	if err := postgres.Guard(t.Context(), tx, "locked", backend.Member{Line: "e1", Position: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "SET CONSTRAINTS ALL IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	for i := uint64(2); i <= 10; i++ {
		m := backend.Member{Line: fmt.Sprint("e", i), Position: i}
		if err := s.Gone(within(t, time.Minute), m); err != nil {
			t.Fatalf("the member of session %d: %v", i, err)
		}
	}
	if n := run(t, addr, "SELECT count(*) FROM locked.member"); n != "1" {
		t.Errorf("%s members are left, want the one that is locked", n)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Gone(within(t, time.Minute), backend.Member{Line: "e1", Position: 1}); err != nil {
		t.Error(err)
	}
}

// Somebody's open transaction holds what a request waits for. The request breaks the connection of its session once at most, and not again each
// time that it is sent: notices and heartbeats come over that.
func TestRequestsThatWait(t *testing.T) {
	t.Parallel()
	addr := sharedPostgres(t).Addrs()[0]
	for name, wait := range map[string]func(ctx context.Context, s backend.Session, m backend.Member) error{
		"leave": func(ctx context.Context, s backend.Session, m backend.Member) error { return s.Leave(ctx, m) },
		"pin": func(ctx context.Context, s backend.Session, m backend.Member) error {
			return s.Pin(ctx, m, backend.Header{}, backend.Absent)
		},
		"join": func(ctx context.Context, s backend.Session, m backend.Member) error {
			_, err := s.Join(ctx, m.Line, "y", "")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			schema, log := "waits_"+name, warnings{of: "connection of the session is broken"}
			o := postgres.Options{Schema: schema, TTL: 2 * ttl, Logger: slog.New(&log)}
			s := newClient(t, addr, o).live(t)
			m := join(t, s, coordtest.Name(t), "x")
			tx, err := connect(t, addr).Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec(t.Context(), "SELECT "+schema+".next(line) FROM "+schema+".member WHERE pos = $1 FOR KEY SHARE", int64(m.Position)); err != nil {
				t.Fatal(err)
			}
			watch := calm.Start(t)
			done := make(chan error, 1)
			go func() { done <- wait(t.Context(), s, m) }()
			sent := make(map[string]bool) // by the server's process: each time that it is given up, that waits on, and it is sent to another
			waiting := "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%\"" + schema + "\".%' ORDER BY query_start"
			for end := time.Now().Add(time.Minute); len(sent) < 4; {
				if pid := run(t, addr, waiting); pid != "" {
					sent[pid] = true
				} else if time.Now().After(end) {
					t.Fatalf("it was sent to %v", sent)
				}
			}
			if n := log.n.Load(); n > 1 && !watch.NotJudged(o.TTL/8, "the connection of the session broke %d times", n) {
				t.Errorf("the connection of the session broke %d times", n)
			}
			if err := tx.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

// A member cannot leave for as long as somebody's open transaction holds it, and its session asks again and again. It takes no more and more of the
// server's connections, although each request that was given up waits on.
func TestRequestsThatWaitAreFew(t *testing.T) {
	t.Parallel()
	addr := sharedPostgres(t).Addrs()[0]
	const schema, few = "waits_long", 6
	s := newClient(t, addr, postgres.Options{Schema: schema, TTL: ttl}).live(t)
	m := join(t, s, coordtest.Name(t), "x")
	tx, err := connect(t, addr).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "SELECT FROM "+schema+".member WHERE pos = $1 FOR KEY SHARE", int64(m.Position)); err != nil {
		t.Fatal(err)
	}
	watch := calm.Start(t)
	done := make(chan error, 1)
	go func() { done <- s.Leave(t.Context(), m) }()
	sent := make(map[string]bool) // by the server's process
	for len(sent) < 2*few && !t.Failed() {
		wait := strings.Fields(run(t, addr, "SELECT string_agg(pid::text, ' ') FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%\""+schema+"\".%'"))
		for _, pid := range wait {
			sent[pid] = true
		}
		if len(wait) >= few {
			t.Errorf("%d requests wait at once", len(wait))
		}
		select {
		case err := <-done:
			if !watch.NotJudged(ttl/4, "while somebody holds the member, it leaves: %v", err) {
				t.Errorf("while somebody holds the member, it leaves: %v", err)
			}
			return
		default:
		}
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil && !watch.NotJudged(ttl/4, "it leaves when nobody holds it: %v", err) {
		t.Error(err)
	}
}

// After a failover a transaction that was prepared, and has locked a member since before, holds up nobody but those behind that member.
func TestLockedMemberAfterFailover(t *testing.T) {
	t.Parallel()
	addr := sharedPostgres(t).Addrs()[0]
	s := newClient(t, addr, postgres.Options{Schema: "locked_since", TTL: ttl}).live(t)
	run(t, addr, `INSERT INTO locked_since.session VALUES (gen_random_uuid(), 2000, 'x', 1);
		INSERT INTO locked_since.member SELECT 'old', 1, id, 1, 'x', false FROM locked_since.session WHERE era = 'x'`)
	tx, err := connect(t, addr).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "SELECT FROM locked_since.member WHERE line = 'old' FOR KEY SHARE"); err != nil {
		t.Fatal(err)
	}
	run(t, addr, "UPDATE locked_since.meta SET era = 'x', longest = 100")
	m, old := join(t, s, "e", "x"), join(t, s, "old", "y")
	ctx := within(t, time.Minute)
	first := func(m backend.Member) {
		t.Helper()
		p, err := s.Ahead(ctx, m)
		for err == nil && !p.First {
			err = s.WatchPlace(ctx, m, &p)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	first(m)
	if p, err := s.Ahead(ctx, old); err != nil || p.First {
		t.Errorf("behind the one that is locked: %+v, %v", p, err)
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	first(old)
}

// raise raises the fence of an election.
func raise(t testing.TB, s backend.Session, line string) {
	t.Helper()
	r, err := s.Get(t.Context(), line)
	if err != nil {
		t.Fatal(err)
	}
	h, err := backend.ParseHeader(r.Value)
	if err != nil {
		t.Fatal(err)
	}
	h.Fence += 1000
	if _, err := s.Put(t.Context(), line, h.Encode(), &backend.If{Version: r.Version}); err != nil {
		t.Fatal(err)
	}
}

// A count is a number that others wait for.
type count struct {
	mu  sync.Mutex
	n   int
	new chan struct{} // closed when n has grown
}

func (c *count) add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	close(c.new)
	c.new = make(chan struct{})
}

// now returns the number, and what is closed when it is larger.
func (c *count) now() (int, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n, c.new
}

// reaches blocks until the number is n or ctx ends.
func (c *count) reaches(ctx context.Context, n int) {
	for {
		now, grown := c.now()
		if now >= n {
			return
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return
		}
	}
}

// Leaders that are removed, or lose their session, go on with the transactions that they have open. Each transaction takes the next
// number of a ledger and writes its position there: positions never fall.
func TestGuardUnderDepositions(t *testing.T) {
	t.Parallel()
	const leaders, depositions = 3, 12
	for _, level := range levels {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			addr := sharedPostgres(t).Addrs()[0]
			election := coordtest.Name(t)
			id := fmt.Sprintf("%x", election[len(election)-8:])
			run(t, addr, "CREATE TABLE total_"+id+" (n int); INSERT INTO total_"+id+" VALUES (0); CREATE TABLE entry_"+id+" (n int, pos bigint)")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var running sync.WaitGroup
			committed, refused := count{new: make(chan struct{})}, count{new: make(chan struct{})}
			// work writes entries for a term. It does not stop when that ends, but when the database has refused it. A late one
			// guards its third transaction, and goes on with it when another leader has begun.
			work := func(term *elect.Term, late bool) {
				c, err := pgx.Connect(ctx, "postgres://postgres@"+addr+"/postgres?sslmode=disable")
				if err != nil {
					return
				}
				defer c.Close(context.WithoutCancel(ctx))
				for i := 0; ctx.Err() == nil; i++ {
					err := pgx.BeginTxFunc(ctx, c, pgx.TxOptions{IsoLevel: level}, func(tx pgx.Tx) error {
						if err := postgres.Guard(ctx, tx, "", term.Member()); err != nil {
							return err
						}
						if late && i == 2 {
							select {
							case <-term.Context().Done():
							case <-ctx.Done():
							}
							n, _ := committed.now()
							committed.reaches(ctx, n+2)
						}
						_, err := tx.Exec(ctx, "WITH next AS (UPDATE total_"+id+" SET n = n + 1 RETURNING n) INSERT INTO entry_"+id+" SELECT n, $1 FROM next", int64(term.Member().Position))
						return err
					})
					switch {
					case err == nil:
						committed.add()
					case postgres.Deposed(err):
						refused.add()
						return
					}
				}
			}
			for range leaders {
				e := elect.New(newClient(t, addr, postgres.Options{}), election, nil)
				running.Go(func() {
					for ctx.Err() == nil {
						term, err := e.Campaign(ctx)
						if err != nil {
							continue
						}
						for i := range 3 {
							running.Go(func() { work(term, i == 0) })
						}
						select {
						case <-term.Context().Done():
						case <-ctx.Done():
						}
					}
				})
			}
			for i := range depositions {
				n, _ := committed.now()
				committed.reaches(t.Context(), n+6)
				// The first in line goes, as an operator removes it, or its session.
				what := "DELETE FROM succession.member WHERE (line, pos) = (SELECT line, min(pos) FROM succession.member WHERE line = '" + election + "' GROUP BY line)"
				if i%2 == 0 {
					what = "DELETE FROM succession.session WHERE id = (SELECT session FROM succession.member WHERE line = '" + election + "' ORDER BY pos LIMIT 1)"
				}
				run(t, addr, what)
			}
			n, _ := committed.now()
			committed.reaches(t.Context(), n+6)
			cancel()
			running.Wait()
			if falls := run(t, addr, "SELECT count(*) FROM entry_"+id+" a JOIN entry_"+id+" b ON b.n = a.n + 1 WHERE b.pos < a.pos"); falls != "0" {
				t.Errorf("%s transactions were committed after one of a later leader", falls)
			}
			terms := run(t, addr, "SELECT count(DISTINCT pos) FROM entry_"+id)
			all, _ := committed.now()
			no, _ := refused.now()
			t.Logf("%d transactions committed in %s terms, %d refused", all, terms, no)
			if no == 0 || terms == "1" {
				t.Error("nobody was deposed: the test shows nothing")
			}
		})
	}
}

// Guard would guard nothing on a connection or a pool, so a call with one does not compile.
func TestTxIsATransaction(t *testing.T) {
	tx := reflect.TypeFor[postgres.Tx]()
	if !reflect.TypeFor[pgx.Tx]().Implements(tx) {
		t.Error("a transaction of pgx is none")
	}
	for _, none := range []reflect.Type{reflect.TypeFor[*pgx.Conn](), reflect.TypeFor[*pgxpool.Pool](), reflect.TypeFor[*pgxpool.Conn]()} {
		if none.Implements(tx) {
			t.Errorf("%v is a transaction", none)
		}
	}
}
