//go:build linux

package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
	"github.com/succession-dev/succession/postgres"
)

// clientOf returns a client that is the user, in a schema.
func clientOf(t testing.TB, addr, user, schema string) *postgres.Backend {
	t.Helper()
	cfg := configOf(t, addr)
	cfg.User = user
	return backendOf(t, cfg, postgres.Options{Schema: schema})
}

// A role does what was granted to it, and nothing else: it has no right on any table.
func TestGrants(t *testing.T) {
	t.Parallel()
	addr := sharedPostgres(t).Addrs()[0]
	const schema = "granted"
	create, err := postgres.Schema(schema)
	if err != nil {
		t.Fatal(err)
	}
	sql := create + "CREATE ROLE granted_nobody LOGIN;"
	for _, g := range []postgres.Grant{postgres.Candidate, postgres.Observer, postgres.Worker} {
		grants, err := postgres.Grants(schema, "granted_"+string(g), g)
		if err != nil {
			t.Fatal(err)
		}
		sql += "CREATE ROLE granted_" + string(g) + " LOGIN;" + grants
	}
	run(t, addr, sql)

	candidate, err := clientOf(t, addr, "granted_candidate", schema).Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m := join(t, candidate, "e", "x")
	version, err := candidate.Put(t.Context(), "r", []byte("y"), &backend.If{Member: m})
	if err != nil {
		t.Fatal(err)
	}
	if err := candidate.Pin(t.Context(), m, backend.Header{}, backend.Absent); err != nil {
		t.Fatal(err)
	}

	observer, err := clientOf(t, addr, "granted_observer", schema).Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if l, err := observer.Line(t.Context(), "e"); err != nil || len(l.Members) != 1 {
		t.Errorf("the observer sees %+v, %v", l, err)
	}
	for name, f := range map[string]func() error{
		"Join":   func() error { _, err := observer.Join(t.Context(), "e", "x", ""); return err },
		"Leave":  func() error { return observer.Leave(t.Context(), m) },
		"Put":    func() error { _, err := observer.Put(t.Context(), "r", nil, nil); return err },
		"Delete": func() error { return observer.Delete(t.Context(), "r", &backend.If{Version: version}) },
		"Append": func() error { _, err := observer.Append(t.Context(), "i", "x"); return err },
	} {
		if err := f(); !errors.Is(err, backend.ErrDenied) || !strings.Contains(err.Error(), kit.RightsHint) {
			t.Errorf("%s of the observer: %v", name, err)
		}
	}
	// Nor does it by calls with the session of the candidate.
	looks := configOf(t, addr)
	looks.User = "granted_observer"
	of := run(t, addr, "SELECT id FROM granted.session WHERE owner = 'granted_candidate'")
	for sql, want := range map[string]string{
		"SELECT why FROM granted.close('" + of + "')":                                                          "",
		"SELECT why FROM granted.beat('" + of + "', 1000)":                                                     "ended",
		"SELECT coalesce(beat, 0) FROM granted.ahead('" + of + "', 'e', " + fmt.Sprint(m.Position) + ", true)": "0",
	} {
		if got, err := tryRun(t.Context(), looks, sql); got != want || err != nil {
			t.Errorf("the observer: %s: %q, %v", sql, got, err)
		}
	}
	for i := range 20 { // with the number of some heartbeat
		if i%2 == 0 { // and after the clock was set back
			run(t, addr, "UPDATE granted.session SET at = clock_timestamp() + interval '1 hour' WHERE id = '"+of+"'")
		}
		beat := run(t, addr, "SELECT beat FROM granted.session WHERE id = '"+of+"'")
		life := run(t, addr, "SELECT granted.life()")
		if _, err := tryRun(t.Context(), looks, "SELECT * FROM granted.reap('{"+of+"}', '{"+beat+"}', '"+life+"')"); err != nil {
			t.Fatal(err)
		}
	}
	if candidate.Err() != nil || run(t, addr, "SELECT count(*) FROM granted.session WHERE id = '"+of+"'") != "1" {
		t.Errorf("the observer has ended the candidate's session: %v", candidate.Err())
	}
	if _, err := tryRun(t.Context(), looks, "SELECT * FROM granted.confirm('')"); !denied(err) {
		t.Errorf("the observer says that an era has begun: %v", err)
	}
	if _, err := tryRun(t.Context(), looks, "SELECT * FROM granted.open(gen_random_uuid(), 2147483647, 1)"); err == nil {
		t.Error("the observer has a session time of 24 days")
	}
	if _, err := clientOf(t, addr, "granted_nobody", schema).Session(t.Context()); !errors.Is(err, backend.ErrDenied) {
		t.Errorf("a role without grants has a session: %v", err)
	}
	for _, user := range []string{"granted_candidate", "granted_observer", "granted_worker"} {
		cfg := configOf(t, addr)
		cfg.User = user
		for _, table := range []string{"session", "joiner", "member", "record", "meta", "stripe", "guarded"} {
			for _, sql := range []string{"SELECT * FROM granted." + table, "DELETE FROM granted." + table} {
				if _, err := tryRun(t.Context(), cfg, sql); !denied(err) {
					t.Errorf("%s: %s: %v", user, sql, err)
				}
			}
		}
		for _, sql := range []string{"SELECT granted.next('e')", "SELECT granted.holds('e', 1)", "SELECT granted.writes()"} {
			if _, err := tryRun(t.Context(), cfg, sql); !denied(err) {
				t.Errorf("%s: %s: %v", user, sql, err)
			}
		}
	}
	worker := configOf(t, addr)
	worker.User = "granted_worker"
	if _, err := tryRun(t.Context(), worker, "SELECT granted.guard('e', 1)"); err == nil || denied(err) {
		t.Errorf("the worker guards a transaction of nobody: %v", err)
	}
	if _, err := tryRun(t.Context(), worker, "SELECT granted.leads('e', 1)"); !denied(err) { // it locks
		t.Errorf("the worker locks a member: %v", err)
	}
	if _, err := tryRun(t.Context(), worker, "SELECT * FROM granted.lines('00000000-0000-0000-0000-000000000000')"); !denied(err) {
		t.Errorf("the worker looks at lines: %v", err)
	}
	if _, err := postgres.Grants(schema, "x", "owner"); !errors.Is(err, backend.ErrInvalid) {
		t.Errorf("an unknown grant: %v", err)
	}
}

// A role that may change a table, as the page on PostgreSQL says, needs no right on what tells others of that.
func TestOperatorWithRightsOnTables(t *testing.T) {
	t.Parallel()
	addr := sharedPostgres(t).Addrs()[0]
	const schema = "operated"
	s, err := clientOf(t, addr, "postgres", schema).Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m := join(t, s, "e", "x")
	gone := make(chan error, 1)
	go func() { gone <- s.Gone(t.Context(), m) }()
	run(t, addr, "CREATE ROLE operated LOGIN; GRANT USAGE ON SCHEMA operated TO operated; GRANT SELECT, DELETE ON operated.member TO operated")
	cfg := configOf(t, addr)
	cfg.User = "operated"
	if _, err := tryRun(t.Context(), cfg, "DELETE FROM operated.member"); err != nil {
		t.Fatal(err)
	}
	if err := <-gone; err != nil {
		t.Error(err)
	}
}

// Who may do everything in one schema may do nothing in another, where others have their elections.
func TestGrantsOfOneSchema(t *testing.T) {
	t.Parallel()
	addr := sharedPostgres(t).Addrs()[0]
	create := ""
	for _, schema := range []string{"ours", "theirs"} {
		sql, err := postgres.Schema(schema)
		if err != nil {
			t.Fatal(err)
		}
		grants, err := postgres.Grants(schema, "candidate_"+schema, postgres.Candidate)
		if err != nil {
			t.Fatal(err)
		}
		create += sql + "CREATE ROLE candidate_" + schema + " LOGIN;" + grants
	}
	run(t, addr, create)
	s, err := clientOf(t, addr, "candidate_theirs", "theirs").Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m := join(t, s, "e", "x")
	if _, err := clientOf(t, addr, "candidate_ours", "ours").Session(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := clientOf(t, addr, "candidate_ours", "theirs").Session(t.Context()); !errors.Is(err, backend.ErrDenied) {
		t.Errorf("a session in the other schema: %v", err)
	}
	ours := configOf(t, addr)
	ours.User = "candidate_ours"
	of := run(t, addr, "SELECT id FROM theirs.session")
	for _, call := range []string{"close('" + of + "')", "leave('" + of + "', 'e', " + fmt.Sprint(m.Position) + ")", "guard('e', " + fmt.Sprint(m.Position) + ")", "lines('" + of + "')"} {
		if _, err := tryRun(t.Context(), ours, "SELECT theirs."+call); !denied(err) {
			t.Errorf("%s: %v", call, err)
		}
	}
	// Nor could it if it had the right to use the schema, as roles may have that only look at tables.
	for what, sql := range map[string]string{
		"functions": "SELECT coalesce(string_agg(proname, ' '), '') FROM pg_proc WHERE pronamespace = 'theirs'::regnamespace AND has_function_privilege('candidate_ours', oid, 'EXECUTE')",
		"tables":    "SELECT coalesce(string_agg(relname, ' '), '') FROM pg_class WHERE relnamespace = 'theirs'::regnamespace AND relkind = 'r' AND has_table_privilege('candidate_ours', oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE')",
	} {
		if may := run(t, addr, sql); may != "" {
			t.Errorf("it may use the %s %s", what, may)
		}
	}
}

// The heartbeats of those who have crashed may be of a time that is still to come, if the clock was set back. They are ended all the same.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	addr := sharedPostgres(t).Addrs()[0]
	s := newClient(t, addr, postgres.Options{Schema: "set_back"}).live(t)
	// A row is all that is left of who has crashed.
	run(t, addr, `INSERT INTO set_back.session VALUES (gen_random_uuid(), 2000, set_back.era(), 1, clock_timestamp() + interval '1 hour');
		INSERT INTO set_back.member SELECT 'e', 1, id, 1, 'x', false FROM set_back.session WHERE at > clock_timestamp()`)
	if err := s.Gone(within(t, time.Minute), backend.Member{Line: "e", Position: 1}); err != nil {
		t.Error(err)
	}
}

func denied(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "42501"
}

// What somebody has put into a schema of the search path is not used in the place of what PostgreSQL has.
func TestSearchPath(t *testing.T) {
	t.Parallel()
	addr := sharedPostgres(t).Addrs()[0]
	run(t, addr, `CREATE SCHEMA evil; CREATE FUNCTION evil.sha256(bytea) RETURNS bytea LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'evil'; END $$;
		CREATE ROLE misled LOGIN SUPERUSER; ALTER ROLE misled SET search_path = evil, pg_catalog`)
	s, err := clientOf(t, addr, "misled", "pathed").Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	join(t, s, "e", "x")
}

// Nobody has to be the one who makes the schema.
func TestEnsureSchema(t *testing.T) {
	t.Parallel()
	addr := sharedPostgres(t).Addrs()[0]
	errs := make(chan error)
	for range 8 {
		go func() { errs <- postgres.EnsureSchema(t.Context(), configOf(t, addr), "ensured") }()
	}
	for range 8 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	run(t, addr, "CREATE ROLE ensuring LOGIN")
	cfg := configOf(t, addr)
	cfg.User = "ensuring"
	if err := postgres.EnsureSchema(t.Context(), cfg, "ensured2"); !errors.Is(err, backend.ErrDenied) || !strings.Contains(err.Error(), "succession postgres schema") {
		t.Errorf("without the right to make it: %v", err)
	}
	for _, name := range []string{"Upper", "pg_x", "a b", `a"`, "a.b", strings.Repeat("a", 25)} {
		if _, err := postgres.Schema(name); !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("schema %q: %v", name, err)
		}
	}
}

// A schema may be called as a word of SQL is.
func TestSchemaOfAWord(t *testing.T) {
	t.Parallel()
	addr := sharedPostgres(t).Addrs()[0]
	for _, schema := range []string{"user", "select"} {
		t.Run(schema, func(t *testing.T) {
			t.Parallel()
			if err := postgres.EnsureSchema(t.Context(), configOf(t, addr), schema); err != nil {
				t.Fatal(err)
			}
			grants, err := postgres.Grants(schema, "word_"+schema, postgres.Candidate)
			if err != nil {
				t.Fatal(err)
			}
			run(t, addr, "CREATE ROLE word_"+schema+" LOGIN;"+grants)
			s, _, _ := lead(t, clientOf(t, addr, "word_"+schema, schema), "e")
			told := make(chan error, 1)
			go func() { _, err := s.Watch(t.Context(), "r", backend.Absent); told <- err }()
			if _, err := s.Put(t.Context(), "r", nil, nil); err != nil {
				t.Fatal(err)
			}
			if err := <-told; err != nil {
				t.Error(err)
			}
			tx, err := connect(t, addr).Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := postgres.Guard(t.Context(), tx, schema, memberOf(t, s, "e")); err != nil {
				t.Error(err)
			}
			if err := tx.Commit(t.Context()); err != nil {
				t.Error(err)
			}
			if there, err := rig.OperatorOf(t, urlOf(addr)+"&schema="+schema).Exists(t.Context(), "r"); err != nil || !there {
				t.Errorf("an operator finds the record: %t, %v", there, err)
			}
		})
	}
}

// A schema that has something else stays as it is: what is in it may be of an application.
func TestSchemaOfAnApplication(t *testing.T) {
	t.Parallel()
	addr := sharedPostgres(t).Addrs()[0]
	run(t, addr, "CREATE ROLE anybody LOGIN")
	for schema, has := range map[string]string{"used": "CREATE TABLE used.session (id uuid PRIMARY KEY)", "called": "CREATE FUNCTION called.f() RETURNS int LANGUAGE sql AS 'SELECT 1'"} {
		run(t, addr, "CREATE SCHEMA "+schema+"; "+has)
		if _, err := clientOf(t, addr, "postgres", schema).Session(t.Context()); !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), "a schema of their own") {
			t.Errorf("%s: %v", schema, err)
		}
		if n := run(t, addr, "SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relnamespace = '"+schema+"'::regnamespace AND relname <> 'session'"); n != "0" {
			t.Errorf("%s has %s more tables", schema, n)
		}
	}
	// What comes later stays as it is when the schema is made one of a newer format.
	if err := postgres.EnsureSchema(t.Context(), configOf(t, addr), "shared_later"); err != nil {
		t.Fatal(err)
	}
	run(t, addr, "CREATE FUNCTION shared_later.f() RETURNS int LANGUAGE sql AS 'SELECT 1'; UPDATE shared_later.meta SET format = 0")
	if err := postgres.EnsureSchema(t.Context(), configOf(t, addr), "shared_later"); err != nil {
		t.Fatal(err)
	}
	if got := run(t, addr, "SELECT has_function_privilege('anybody', 'shared_later.f()', 'EXECUTE')"); got != "t" {
		t.Error("who may call a function of others was changed")
	}
	if got := run(t, addr, "SELECT coalesce(string_agg(p.proname, ','), '') FROM pg_proc p WHERE p.pronamespace = 'shared_later'::regnamespace AND p.proname <> 'f' AND has_function_privilege('anybody', p.oid, 'EXECUTE')"); got != "" {
		t.Errorf("anybody may call %s", got)
	}
}

// The longest session time that is kept is one of all sessions, also of one that is opened while the sessions before a failover are ended.
func TestOpenBesideConfirm(t *testing.T) {
	t.Parallel()
	addr := sharedPostgres(t).Addrs()[0]
	if err := postgres.EnsureSchema(t.Context(), configOf(t, addr), "longest"); err != nil {
		t.Fatal(err)
	}
	if out, err := tryRun(t.Context(), configOf(t, addr), fmt.Sprintf("SET statement_timeout = '20s'; BEGIN; DELETE FROM longest.meta; SELECT longest.open(gen_random_uuid(), 60000, %d)", postgres.Format)); err == nil || !strings.Contains(err.Error(), "not whole") {
		t.Errorf("without a row in meta: %q, %v", out, err)
	}
	run(t, addr, "UPDATE longest.meta SET era = 'before', longest = 60000")
	if got := run(t, addr, "SELECT why FROM longest.open(gen_random_uuid(), 70000, 99)"); got != "format" {
		t.Errorf("a process of format 99 is told %q", got)
	}
	if got := run(t, addr, "SELECT longest FROM longest.meta"); got != "60000" {
		t.Errorf("a process that may have no session has made the longest session time %s", got)
	}
	tx, err := connect(t, addr).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "SELECT longest.confirm(longest.life())"); err != nil {
		t.Fatal(err)
	}
	opened := make(chan string, 1)
	go func() {
		opened <- run(t, addr, fmt.Sprintf("SELECT why FROM longest.open(gen_random_uuid(), 60000, %d)", postgres.Format))
	}()
	until(t, addr, "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'SELECT why FROM longest.open(%'")
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if why := <-opened; why != "" {
		t.Errorf("no session: %s", why)
	}
	if got := run(t, addr, "SELECT longest FROM longest.meta"); got != "60000" {
		t.Errorf("there is a session of 60000 ms, and the longest session time is %s", got)
	}
}

// Why a server refuses to make the schema is told, also if that is before it has begun a transaction.
func TestEnsureSchemaIsRefused(t *testing.T) {
	t.Parallel()
	cfg := configOf(t, sharedPostgres(t).Addrs()[0])
	cfg.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		return rewritten{c, []byte("CREATE TABLE"), []byte("CREATE TABEL")}, err
	}
	if err := postgres.EnsureSchema(t.Context(), cfg, "refused"); err == nil || !strings.Contains(err.Error(), `syntax error at or near "TABEL"`) {
		t.Errorf("%v, want the syntax error", err)
	}
}

// rewritten is a connection in which something is written as something else of the same length.
type rewritten struct {
	net.Conn
	from, to []byte
}

func (r rewritten) Write(b []byte) (int, error) {
	return r.Conn.Write(bytes.ReplaceAll(b, r.from, r.to))
}

// What the pages have administrators write fails if the statements fail, so that a script does not go on.
func TestPsqlOnThePages(t *testing.T) {
	t.Parallel()
	addr := sharedPostgres(t).Addrs()[0]
	run(t, addr, "CREATE DATABASE app")
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			_, command, found := strings.Cut(strings.TrimSpace(line), "| psql")
			if !found || seen[command] {
				continue
			}
			seen[command] = true
			for statement, works := range map[string]bool{"SELECT 1;": true, "SELECT 1/0; SELECT 1;": false} {
				cmd := exec.CommandContext(t.Context(), "sh", "-c", "psql -X"+strings.Replace(command, "host=h1 ", "", 1))
				cmd.Env = append(os.Environ(), "PGHOST="+host, "PGPORT="+port, "PGUSER=postgres")
				cmd.Stdin = strings.NewReader(statement)
				if out, err := cmd.CombinedOutput(); (err == nil) != works {
					t.Errorf("%s: psql%s, with %s %v\n%s", page, command, statement, err, out)
				}
			}
		}
	}
	if len(seen) == 0 {
		t.Error("no page has psql")
	}
}

// Who owns the schema makes and upgrades it without the right to make others.
func TestOwnerOfTheSchema(t *testing.T) {
	t.Parallel()
	addr := sharedPostgres(t).Addrs()[0]
	run(t, addr, "CREATE ROLE owner_of_one LOGIN; CREATE SCHEMA owned AUTHORIZATION owner_of_one")
	if _, err := clientOf(t, addr, "owner_of_one", "owned").Session(t.Context()); err != nil {
		t.Fatalf("where it is empty: %v", err)
	}
	run(t, addr, "UPDATE owned.meta SET format = 0; ALTER TABLE owned.session DROP COLUMN opened")
	cfg := configOf(t, addr)
	cfg.User = "owner_of_one"
	if err := postgres.EnsureSchema(t.Context(), cfg, "owned"); err != nil {
		t.Errorf("where it is of an older format: %v", err)
	}
	if got := run(t, addr, "SELECT count(opened) > 0 FROM owned.session"); got != "t" {
		t.Errorf("sessions that were open do not know when they were opened: %s", got)
	}
	if got := run(t, addr, "SELECT format FROM owned.meta"); got != fmt.Sprint(postgres.Format) {
		t.Errorf("the format is %s", got)
	}
}

// A schema that was dropped is told as a reset, also if somebody has made it anew.
func TestDropped(t *testing.T) {
	t.Parallel()
	addr := sharedPostgres(t).Addrs()[0]
	for _, again := range []bool{false, true} {
		const schema = "dropped"
		c := newClient(t, addr, postgres.Options{TTL: 4 * ttl, Schema: schema}) // which has a heartbeat soon
		s := c.live(t)
		join(t, s, "e", "x")
		run(t, addr, "DROP SCHEMA dropped CASCADE")
		if again {
			create, _ := postgres.Schema(schema)
			run(t, addr, create)
		}
		select {
		case <-s.Done():
		case <-time.After(time.Minute):
			t.Fatal("the session lives on")
		}
		if _, err := c.Session(t.Context()); !errors.Is(err, backend.ErrReset) {
			t.Errorf("the next session, made again: %t: %v", again, err)
		}
	}
}

// A database that is dropped, as before a restore, is one that is out. When it is there again, without what it had, that is told as a reset.
func TestDroppedDatabase(t *testing.T) {
	t.Parallel()
	addr := sharedPostgres(t).Addrs()[0]
	run(t, addr, "DROP DATABASE IF EXISTS dropped WITH (FORCE)")
	run(t, addr, "CREATE DATABASE dropped")
	cfg := configOf(t, addr)
	cfg.Database = "dropped"
	b := backendOf(t, cfg, postgres.Options{TTL: ttl, ConnectTimeout: 10 * time.Second})
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	run(t, addr, "DROP DATABASE dropped WITH (FORCE)")
	if _, err := s.Put(within(t, ttl/4), "r", []byte("x"), nil); errors.Is(err, backend.ErrInvalid) {
		t.Errorf("a write meanwhile: %v", err)
	}
	<-s.Done()
	if _, err := b.Session(t.Context()); !errors.Is(err, backend.ErrUnavailable) {
		t.Errorf("while there is no database: %v", err)
	}
	run(t, addr, "CREATE DATABASE dropped")
	if _, err := b.Session(t.Context()); !errors.Is(err, backend.ErrReset) {
		t.Errorf("when it is there again: %v", err)
	}
}

// Roles and databases have settings under which the functions would promise less.
func TestSettings(t *testing.T) {
	t.Parallel()
	addr := sharedPostgres(t).Addrs()[0]
	for name, setting := range map[string]string{
		"serializable": "default_transaction_isolation = serializable",
		"repeatable":   "default_transaction_isolation = 'repeatable read'",
		"unsynced":     "synchronous_commit = off",
		"late":         "default_transaction_deferrable = on",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, addr, "CREATE ROLE set_"+name+" LOGIN SUPERUSER; ALTER ROLE set_"+name+" SET "+setting)
			cfg := configOf(t, addr)
			cfg.User = "set_" + name
			s, err := backendOf(t, cfg, postgres.Options{Schema: "set_" + name}).Session(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			m := join(t, s, "e", "x")
			for range 20 { // beside the heartbeats
				if _, err := s.Put(t.Context(), "r", []byte("x"), &backend.If{Member: m}); err != nil {
					t.Fatal(err)
				}
			}
			if p, err := s.Ahead(t.Context(), m); err != nil || !p.First {
				t.Errorf("%+v, %v", p, err)
			}
		})
	}
	// What the server refuses leaves the connection as it is.
	grants, err := postgres.Grants("set_serializable", "set_observer", postgres.Observer)
	if err != nil {
		t.Fatal(err)
	}
	if err := postgres.EnsureSchema(t.Context(), configOf(t, addr), "set_serializable"); err != nil {
		t.Fatal(err)
	}
	run(t, addr, "CREATE ROLE set_observer LOGIN; ALTER ROLE set_observer SET default_transaction_isolation = serializable;"+grants)
	s, err := clientOf(t, addr, "set_observer", "set_serializable").Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pid := run(t, addr, "SELECT pid FROM pg_stat_activity WHERE usename = 'set_observer'")
	for range 10 {
		if _, err := s.Join(t.Context(), "e", "x", ""); !errors.Is(err, backend.ErrDenied) {
			t.Errorf("a join of an observer: %v", err)
		}
	}
	for before := s.Deadline(); s.Deadline().Sub(before) < ttl/2; { // a heartbeat
		select {
		case <-s.Done():
			t.Fatal(s.Err())
		case <-time.After(ttl / 20):
		}
	}
	if n := run(t, addr, "SELECT count(*) FROM pg_stat_activity WHERE pid = "+pid); n != "1" {
		t.Error("the session has another connection")
	}
	newClient(t, addr, postgres.Options{}).live(t) // which makes the schema
	// Under this one no trigger works, nor do the references between the tables.
	run(t, addr, "CREATE ROLE set_replica LOGIN SUPERUSER; ALTER ROLE set_replica SET session_replication_role = replica")
	if _, err := clientOf(t, addr, "set_replica", "").Session(t.Context()); !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), "session_replication_role") {
		t.Errorf("a session without triggers: %v", err)
	}
	// What the functions set lasts until the commit.
	if got := run(t, addr, "BEGIN; SET LOCAL synchronous_commit = off; SELECT * FROM succession.close('00000000-0000-0000-0000-000000000000'); SHOW synchronous_commit"); got != "on" {
		t.Errorf("synchronous_commit at the commit is %s", got)
	}
}

// A server that may lose what it has told as done is refused.
func TestUnsynced(t *testing.T) {
	t.Parallel()
	addr := coordtest.NewPostgres(t, &coordtest.PostgresOptions{Config: []string{"fsync=off"}}).Addrs()[0]
	c := newClient(t, addr, postgres.Options{})
	if _, err := c.Session(t.Context()); !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), "fsync") {
		t.Errorf("a session: %v", err)
	}
}

// Processes and schemas of different versions: who fits works, and who does not is told what to do.
func TestFormats(t *testing.T) {
	t.Parallel()
	addr := sharedPostgres(t).Addrs()[0]
	for _, c := range []struct {
		process        int64
		schema, oldest int
		want           string // what is told; "" if the process fits
	}{
		{1, 1, 1, ""},
		{1, 3, 1, ""}, // an older process
		{1, 3, 2, "install a newer one"},
		{2, 3, 2, ""},
		{4, 3, 2, "succession postgres schema"}, // a newer one
	} {
		name := fmt.Sprintf("format_%d_%d_%d", c.process, c.schema, c.oldest)
		run(t, addr, "BEGIN;"+schemaOf(t, name, c.schema, c.oldest)+"COMMIT")
		b := clientOf(t, addr, "postgres", name)
		postgres.SetFormat(b, c.process)
		s, err := b.Session(t.Context())
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			join(t, s, "e", "x")
		} else if !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if n := run(t, addr, "SELECT count(*) FROM "+name+".session"); (n == "0") != (c.want != "") {
			t.Errorf("%s: there are %s sessions", name, n)
		}
	}
}

func schemaOf(t testing.TB, name string, format, oldest int) string {
	t.Helper()
	sql, err := postgres.SchemaOf(name, format, oldest)
	if err != nil {
		t.Fatal(err)
	}
	return sql
}

// A schema is brought to a newer format while a leader of an older version leads, and keeps what is stored, and who has rights. Where
// that leader could not go on, it is not done.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	addr := sharedPostgres(t).Addrs()[0]
	const name, now = "upgraded", postgres.Format
	grants, err := postgres.Grants(name, "upgraded_candidate", postgres.Candidate)
	if err != nil {
		t.Fatal(err)
	}
	run(t, addr, "BEGIN;"+schemaOf(t, name, now, now)+"COMMIT; CREATE ROLE upgraded_candidate LOGIN;"+grants)
	b := clientOf(t, addr, "upgraded_candidate", name)
	s, p, _ := lead(t, b, "e")
	formatIs := func(format, oldest int) {
		t.Helper()
		if got, want := run(t, addr, "SELECT format || ' ' || oldest FROM "+name+".meta"), fmt.Sprint(format, " ", oldest); got != want {
			t.Errorf("formats %s, want %s", got, want)
		}
	}
	apply := func(format, oldest int) error {
		_, err := tryRun(t.Context(), configOf(t, addr), "BEGIN;"+schemaOf(t, name, format, oldest)+"COMMIT")
		return err
	}
	for _, next := range []int{now + 1, now + 1, now + 2} { // twice changes nothing
		if err := apply(next, now); err != nil {
			t.Fatal(err)
		}
	}
	formatIs(now+2, now)
	before := s.Deadline()
	for s.Deadline().Sub(before) < ttl/4 { // its heartbeats go on
		select {
		case <-s.Done():
			t.Fatal(s.Err())
		case <-time.After(ttl / 20):
		}
	}
	if place, err := s.Ahead(t.Context(), memberOf(t, s, "e")); err != nil || place.Token != p.Token {
		t.Errorf("the leader stands at %+v, %v", place, err)
	}
	if err := apply(now+1, now); err == nil || !strings.Contains(err.Error(), "newer") {
		t.Errorf("an older version is applied: %v", err)
	}
	if err := apply(now+3, now+2); err == nil || !strings.Contains(err.Error(), "has sessions") {
		t.Errorf("a version that the leader cannot live with is applied: %v", err)
	}
	formatIs(now+2, now)
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s, err = b.Session(t.Context()); err != nil {
		t.Fatalf("after the upgrade: %v", err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := apply(now+3, now+2); err != nil {
		t.Fatal(err)
	}
	formatIs(now+3, now+2)
	if _, err := b.Session(t.Context()); !errors.Is(err, backend.ErrInvalid) {
		t.Errorf("a process that is too old: %v", err)
	}
}

// A heartbeat tells of the next sessions in a ring, and of those that were opened just before and just after.
func TestBeatTellsOfOthers(t *testing.T) {
	t.Parallel()
	addr := sharedPostgres(t).Addrs()[0]
	run(t, addr, "BEGIN;"+schemaOf(t, "ring", postgres.Format, postgres.Format)+"COMMIT")
	const id = "00000000-0000-0000-0000-00000000000"
	run(t, addr, "INSERT INTO ring.session SELECT ('"+id+"' || i)::uuid, 10000, ring.era(), 1 FROM unnest('{7,3,6,1,9,4,2,8,5}'::int[]) WITH ORDINALITY AS u (i, o) ORDER BY o")
	for _, c := range []struct {
		id   string
		n    int
		want string
	}{
		{"1", 4, "2 3 4 5 6 9"},
		{"8", 4, "1 2 3 5 9"}, // the ring is closed, and one of the others is in it
		{"7", 4, "1 2 3 8 9"}, // the oldest
		{"5", 4, "6 7 8 9"},   // the youngest
		{"1", 3, "2 3 4"},
		{"1", 8, "2 3 4 5 6 7 8 9"},
		{"1", 0, ""},
	} {
		others := run(t, addr, fmt.Sprintf("SELECT others FROM ring.beat('%s%s', %d)", id, c.id, c.n))
		var got []string
		for other := range strings.SplitSeq(others, ",") {
			other, _, _ = strings.Cut(other, " ")
			got = append(got, strings.TrimPrefix(other, id))
		}
		if slices.Sort(got); strings.Join(got, " ") != c.want {
			t.Errorf("session %s is told of %q, want %q", c.id, others, c.want)
		}
	}
}

// A crash is noticed in time, however many sessions come and go.
func TestCrashWhereOthersComeAndGo(t *testing.T) {
	t.Parallel()
	const ttl = 2 * ttl // long beside what else there is to do
	addr, o := sharedPostgres(t).Addrs()[0], postgres.Options{TTL: ttl, Schema: "busy"}
	watch, leads, waits := calm.Start(t), newClient(t, addr, o), newClient(t, addr, o)
	join(t, leads.live(t), "e", "x")
	stop := make(chan struct{})
	var others sync.WaitGroup
	others.Go(func() { // none of them stays for long enough to be ended
		tick := time.NewTicker(ttl / 16)
		defer tick.Stop()
		for {
			if _, err := tryRun(t.Context(), configOf(t, addr), fmt.Sprintf(`DELETE FROM busy.session WHERE beat = 0;
				INSERT INTO busy.session SELECT gen_random_uuid(), %d, busy.era(), 0 FROM generate_series(1, 100)`, ttl.Milliseconds())); err != nil {
				t.Error(err)
				return
			}
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
	})
	defer others.Wait()
	defer close(stop)
	s := waits.live(t)
	m := join(t, s, "e", "x")
	p, err := s.Ahead(t.Context(), m)
	if err != nil || p.First {
		t.Fatalf("the second stands at %+v, %v", p, err)
	}
	time.Sleep(ttl / 2) // who is observed has changed by then
	leads.proxies[0].Cut()
	cut := time.Now()
	for ctx := within(t, 5*ttl); !p.First; {
		if err := s.WatchPlace(ctx, m, &p); err != nil {
			t.Fatal(err)
		}
	}
	const most = ttl * 3 / 2
	if took := time.Since(cut); took > most && !watch.NotJudged(most, "a crash was noticed after %v", took) {
		t.Errorf("a crash was noticed after %v, with a session time of %v", took, ttl)
	}
}

// memberOf returns the only member of a line.
func memberOf(t testing.TB, s backend.Session, line string) backend.Member {
	t.Helper()
	l, err := s.Line(t.Context(), line)
	if err != nil || len(l.Members) != 1 {
		t.Fatalf("%+v, %v", l, err)
	}
	return l.Members[0]
}

// EnsureSchema brings an older schema to this format if its role owns it. Otherwise it leaves it alone, and says so if it can know.
func TestEnsureUpgrades(t *testing.T) {
	t.Parallel()
	addr := sharedPostgres(t).Addrs()[0]
	grants, err := postgres.Grants("old", "stranger", postgres.Candidate)
	if err != nil {
		t.Fatal(err)
	}
	run(t, addr, "BEGIN;"+schemaOf(t, "old", 0, 0)+"COMMIT; CREATE ROLE stranger LOGIN; CREATE ROLE reader LOGIN; GRANT USAGE ON SCHEMA old TO reader; GRANT SELECT ON old.meta TO reader;"+grants)
	newest := fmt.Sprint(postgres.Format)
	stranger, reader := configOf(t, addr), configOf(t, addr)
	stranger.User, reader.User = "stranger", "reader"
	for _, c := range []struct {
		cfg    *pgconn.Config
		want   string
		denied bool
	}{{stranger, "0", false}, {reader, "0", true}, {configOf(t, addr), newest, false}, {reader, newest, false}} {
		if err := postgres.EnsureSchema(t.Context(), c.cfg, "old"); errors.Is(err, backend.ErrDenied) != c.denied || err != nil && !c.denied {
			t.Errorf("%s, where the format is %s in the end: %v", c.cfg.User, c.want, err)
		}
		if got := run(t, addr, "SELECT format FROM old.meta"); got != c.want {
			t.Errorf("the format is %s after %s, want %s", got, c.cfg.User, c.want)
		}
	}
}

// Managed services do not let everybody ask for the timeline. Elections do without; the server's restart then ends sessions.
func TestDeniedFunctions(t *testing.T) {
	t.Parallel()
	const deny = "REVOKE EXECUTE ON FUNCTION pg_walfile_name(pg_lsn) FROM PUBLIC"
	create, err := postgres.Schema("")
	if err != nil {
		t.Fatal(err)
	}
	p := coordtest.NewPostgres(t, nil)
	addr := p.Addrs()[0]
	run(t, addr, "CREATE ROLE managed LOGIN; GRANT CREATE ON DATABASE postgres TO managed")
	managed := configOf(t, addr)
	managed.User = "managed"
	if err := postgres.EnsureSchema(t.Context(), managed, ""); err != nil {
		t.Fatal(err)
	}
	run(t, addr, deny)
	o := postgres.Options{TTL: 3 * ttl} // for which the next one waits
	b := backendOf(t, managed, o)
	if _, err := b.Session(t.Context()); !errors.Is(err, backend.ErrDenied) || !strings.Contains(err.Error(), "pg_walfile_name") || !strings.Contains(err.Error(), "succession postgres schema") {
		t.Errorf("where it was allowed when the schema was made: %v", err)
	}
	if _, err := tryRun(t.Context(), managed, "BEGIN;"+create+"COMMIT"); err != nil {
		t.Fatal(err)
	}
	s, was, _ := lead(t, b, "e")
	deadline := s.Deadline()
	if err := p.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	now, again, at := lead(t, backendOf(t, managed, o), "e")
	if at.Before(deadline) {
		t.Errorf("the next one led %v before the deadline of the one before", deadline.Sub(at))
	}
	if again.Token <= was.Token {
		t.Errorf("the token %d follows %d", again.Token, was.Token)
	}
	if s.Err() == nil {
		t.Error("the session has outlived the server")
	}
	if _, err := now.Put(t.Context(), "r", []byte("x"), nil); err != nil {
		t.Error(err)
	}
}

// Where FIPS 140 counts, the server refuses to compute MD5. Elections do without.
func TestWithoutMD5(t *testing.T) {
	t.Parallel()
	addr := coordtest.NewPostgres(t, nil).Addrs()[0]
	run(t, addr, "CREATE ROLE fips LOGIN; GRANT CREATE ON DATABASE postgres TO fips; REVOKE EXECUTE ON FUNCTION md5(text), md5(bytea) FROM PUBLIC")
	cfg := configOf(t, addr)
	cfg.User = "fips"
	s, _, _ := lead(t, backendOf(t, cfg, postgres.Options{}), "e")
	if _, err := s.Put(t.Context(), "r", nil, nil); err != nil {
		t.Error(err)
	}
}

// Where the default isolation is another one, a session that is opened while the script waits for another script is seen all the same.
func TestUpgradeSeesNewSessions(t *testing.T) {
	t.Parallel()
	addr := sharedPostgres(t).Addrs()[0]
	const name = "isolated"
	cfg := configOf(t, addr)
	cfg.RuntimeParams["default_transaction_isolation"] = "repeatable read"
	apply := func(format int) error {
		_, err := tryRun(t.Context(), cfg, "BEGIN;"+schemaOf(t, name, format, format)+"COMMIT")
		return err
	}
	if err := apply(postgres.Format); err != nil {
		t.Fatal(err)
	}
	opens(t, clientOf(t, addr, "postgres", name)).Close(t.Context()) // the longest session time is known from then on
	locker := connect(t, addr)
	lock := `advisory_lock(hashtext('succession schema "` + name + `"'))`
	if _, err := locker.Exec(t.Context(), "SELECT pg_"+lock); err != nil {
		t.Fatal(err)
	}
	applied := make(chan error, 1)
	go func() { applied <- apply(postgres.Format + 1) }()
	for run(t, addr, "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)") != "t" {
		time.Sleep(time.Millisecond)
	}
	opens(t, clientOf(t, addr, "postgres", name))
	if _, err := locker.Exec(t.Context(), "SELECT pg_"+strings.Replace(lock, "lock", "unlock", 1)); err != nil {
		t.Fatal(err)
	}
	if err := <-applied; err == nil || !strings.Contains(err.Error(), "has sessions") {
		t.Errorf("a version that the session cannot live with is applied: %v", err)
	}
}

// Numbers go on growing when names fall to other counters, as they did with format 3.
func TestUpgradeKeepsNumbersGrowing(t *testing.T) {
	t.Parallel()
	addr := sharedPostgres(t).Addrs()[0]
	const name = "restriped"
	run(t, addr, "BEGIN;"+schemaOf(t, name, 2, 1)+"COMMIT")
	const last = 1 << 52 // as if the clock had been set back since
	run(t, addr, fmt.Sprintf("UPDATE %s.stripe SET last = %d WHERE n = 7", name, last))
	if err := postgres.EnsureSchema(t.Context(), configOf(t, addr), name); err != nil {
		t.Fatal(err)
	}
	s, err := clientOf(t, addr, "postgres", name).Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"e", "f"} {
		if m := join(t, s, line, "x"); m.Position <= last {
			t.Errorf("%s begins at %d, and %d was given", line, m.Position, last)
		}
	}
}

// A server that is too old is told before anything is done there. The server says what its version is when it lets a client in; here
// somebody in between changes that.
func TestOldServer(t *testing.T) {
	t.Parallel()
	addr := sharedPostgres(t).Addrs()[0]
	version := run(t, addr, "SHOW server_version")
	old := "12" + version[2:]
	cfg := configOf(t, addr)
	cfg.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		return replaced{c, []byte("server_version\x00" + version), []byte("server_version\x00" + old)}, err
	}
	if _, err := backendOf(t, cfg, postgres.Options{Schema: "never_made"}).Session(t.Context()); !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), old) {
		t.Errorf("a session: %v", err)
	}
}

// replaced is a connection in which something is read as something else of the same length.
type replaced struct {
	net.Conn
	from, to []byte
}

func (r replaced) Read(b []byte) (int, error) {
	n, err := r.Conn.Read(b)
	copy(b, bytes.Replace(b[:n], r.from, r.to, 1))
	return n, err
}
