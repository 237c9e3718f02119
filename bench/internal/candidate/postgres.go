package candidate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib" // for package database/sql
)

// PostgresConfig returns what pgx needs to know to connect to a PostgreSQL that coordtest has started: to the first of the
// servers at these addresses that takes writes.
func PostgresConfig(addresses ...string) string {
	var hosts, ports []string
	for _, a := range addresses {
		host, port, err := net.SplitHostPort(a)
		if err != nil {
			host = a // the error of the connection says it
		}
		hosts, ports = append(hosts, host), append(ports, port)
	}
	return "user=postgres dbname=postgres sslmode=disable target_session_attrs=read-write host=" + strings.Join(hosts, ",") + " port=" + strings.Join(ports, ",")
}

// PostgresKey is the number of the advisory lock of an election, as an expression of SQL; $1 is the name.
const PostgresKey = "hashtextextended($1, 0)"

// advisoryLock holds a session-level advisory lock of a connection of its own, as the manual of PostgreSQL has it: the lock
// is held "until explicitly released or the session ends". Nothing tells its holder that the session has ended, and nothing is
// asked: it acts until it is done.
func advisoryLock(_ context.Context, s Settings) (func(string) Elector, error) {
	return func(election string) Elector { return (&advisory{Settings: s, election: election}).elect }, nil
}

// advisoryPinged is advisoryLock with what a careful application adds: it asks the server over the connection of the lock from
// time to time, four times in a session's time, and acts no more if there is no answer in as long.
func advisoryPinged(_ context.Context, s Settings) (func(string) Elector, error) {
	return func(election string) Elector { return (&advisory{Settings: s, election: election, pings: true}).elect }, nil
}

// An advisory is a candidate with a connection of its own, which it keeps from term to term.
type advisory struct {
	Settings
	election string
	pings    bool
	conn     *pgx.Conn
}

func (a *advisory) elect(ctx context.Context) (Term, error) {
	var err error
	if a.conn == nil {
		if a.conn, err = pgx.Connect(ctx, PostgresConfig(a.Addresses...)); err != nil {
			return Term{}, err
		}
	}
	if _, err = a.conn.Exec(ctx, "SELECT pg_advisory_lock("+PostgresKey+")", a.election); err != nil {
		a.hangUp()
		return Term{}, err
	}
	if !a.pings {
		return Term{Leads: always, Release: func(bool) error { return a.unlock(ctx) }}, nil
	}
	holds, stop := a.ask(ctx)
	return Term{Leads: holds, Release: func(lost bool) error {
		stop()
		if lost {
			a.hangUp() // which frees the lock, if the server hears of it
			return nil
		}
		return a.unlock(ctx)
	}}, nil
}

// ask asks the server until it gives no answer in time. holds says that it has not come to that.
func (a *advisory) ask(ctx context.Context) (holds func() bool, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var silent atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(a.Session / 4)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			// The context of stop does not cut an answer short: that would end the connection, and with it the lock.
			bounded, done := context.WithTimeout(context.WithoutCancel(ctx), a.Session/4)
			_, err := a.conn.Exec(bounded, "SELECT 1")
			done()
			if err != nil {
				silent.Store(true)
				return
			}
		}
	}()
	return func() bool { return !silent.Load() }, func() { cancel(); <-ended }
}

func (a *advisory) unlock(ctx context.Context) error {
	_, err := a.conn.Exec(ctx, "SELECT pg_advisory_unlock("+PostgresKey+")", a.election)
	return err
}

// hangUp gives up the connection, without a word that could take its time.
func (a *advisory) hangUp() {
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	_ = a.conn.Close(gone)
	a.conn = nil
}

// pollEvery is how often a candidate tries that does not wait in the server, and asks while it leads.
const pollEvery = time.Second

// advisoryPolled tries to get the lock every second, by a pool of connections of package database/sql that has its default settings. While
// it leads it asks every second whether the connection that it is given has the lock, and acts no more if it has not, or if there is no answer
// in a second. It gets the lock on the connection that it happens to be given, and asks for it on another one if that one was closed.
func advisoryPolled(_ context.Context, s Settings) (func(string) Elector, error) {
	return func(election string) Elector {
		// A pool for each candidate, as one session of PostgreSQL may take a lock several times.
		db, err := sql.Open("pgx", PostgresConfig(s.Addresses...))
		has := func(ctx context.Context, question string) (yes bool, err error) {
			ctx, cancel := context.WithTimeout(ctx, pollEvery)
			defer cancel()
			return yes, db.QueryRowContext(ctx, question, election).Scan(&yes)
		}
		return func(ctx context.Context) (Term, error) {
			if err != nil {
				return Term{}, err
			}
			for {
				got, err := has(ctx, "SELECT pg_try_advisory_lock("+PostgresKey+")")
				if err != nil {
					return Term{}, err
				}
				if got {
					break
				}
				time.Sleep(pollEvery)
			}
			ctx, cancel := context.WithCancel(ctx)
			var lost atomic.Bool
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for {
					select {
					case <-time.After(pollEvery):
					case <-ctx.Done():
						return
					}
					if still, err := has(context.WithoutCancel(ctx), holdsAdvisory); err != nil || !still {
						lost.Store(true)
						return
					}
				}
			}()
			return Term{Leads: func() bool { return !lost.Load() }, Release: func(bool) error {
				cancel()
				<-ended
				freed, err := has(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock("+PostgresKey+")")
				if err == nil && !freed && !lost.Load() {
					err = errors.New("this connection does not have the lock")
				}
				return err
			}}, nil
		}
	}, nil
}

// holdsAdvisory asks whether the connection has the lock. The number of the lock is in two columns.
const holdsAdvisory = "SELECT EXISTS (SELECT FROM pg_locks WHERE pid = pg_backend_pid() AND " + advisoryIs + " AND granted)"

const advisoryIs = "locktype = 'advisory' AND objsubid = 1 AND (classid::bigint << 32 | objid::bigint) = " + PostgresKey

// PostgresLocks are the advisory locks of an election, held and waited for, as rows of pg_locks; $1 is the name.
const PostgresLocks = "FROM pg_locks WHERE " + advisoryIs

// postgresFloor has a row for each candidate. The leader deletes its row and notifies, and who listens reads once.
func postgresFloor(_ context.Context, s Settings) (func(string) Elector, error) {
	return func(election string) Elector {
		var conn *pgx.Conn
		return func(ctx context.Context) (term Term, err error) {
			if conn == nil {
				if conn, err = pgx.Connect(ctx, PostgresConfig(s.Addresses...)); err != nil {
					return term, err
				}
			}
			table := pgx.Identifier{election}.Sanitize()
			channel := func(n int64) string { return fmt.Sprintf("%s %d", election, n) }
			var own int64
			var front *int64
			// One after the other: two cannot make the table at the same time, and who joins must see who has joined before.
			if err = oneByOne(ctx, conn, func(tx pgx.Tx) error {
				if _, err := tx.Exec(ctx, "CREATE TABLE IF NOT EXISTS "+table+" (n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY)"); err != nil {
					return err
				}
				return tx.QueryRow(ctx, "WITH front AS (SELECT max(n) AS n FROM "+table+"), own AS (INSERT INTO "+table+" DEFAULT VALUES RETURNING n) "+
					"SELECT own.n, front.n FROM own, front").Scan(&own, &front)
			}); err != nil {
				return term, err
			}
			term = Term{Leads: always, Release: func(bool) error {
				_, err := conn.Exec(ctx, "WITH gone AS (DELETE FROM "+table+" WHERE n = $1) SELECT pg_notify($2, '')", own, channel(own))
				return err
			}}
			if front == nil {
				return term, nil
			}
			name := pgx.Identifier{channel(*front)}.Sanitize()
			if _, err = conn.Exec(ctx, "UNLISTEN *; LISTEN "+name); err != nil {
				return term, err
			}
			there := false
			look := func() error {
				return conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM "+table+" WHERE n = $1)", *front).Scan(&there)
			}
			if err = look(); err != nil {
				return term, err
			}
			if there {
				if _, err = conn.WaitForNotification(ctx); err != nil {
					return term, err
				}
				if err = look(); err == nil && there {
					err = errors.New("it was told that a row had gone which has not")
				}
			}
			return term, err
		}
	}, nil
}

// oneByOne runs f in a transaction, while nobody else does.
func oneByOne(ctx context.Context, db interface {
	Begin(context.Context) (pgx.Tx, error)
}, f func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(0)"); err != nil {
			return err
		}
		return f(tx)
	})
}
