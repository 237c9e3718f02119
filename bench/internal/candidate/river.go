package candidate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// riverVersion is the version of River whose leader election this is written after. River elects who maintains its queues, by a package that
// nobody else can import, so this is no code of River's: it does, in other words, what these files of River do, which are under the
// Mozilla Public License 2.0:
//
//	https://github.com/riverqueue/river/blob/v0.51.2/internal/leadership/elector.go
//	https://github.com/riverqueue/river/blob/v0.51.2/riverdriver/riverpgxv5/internal/dbsqlc/river_leader.sql
//
// A table that is not in the log of the server has one row, that of the leader, with a time at which it runs out by the server's clock. Candidates
// delete a row that has run out, and insert their own if there is none; the leader writes a later time. Who has not heard from the server
// for long by its own clock gives up: it first deletes its row and notifies the others, with three tries, and then says
// that it leads no more.
//
// All times are River's own by default (a row lasts for 15 s, and is written again every 5 s), in proportion to the session's time.
const riverVersion = "0.51.2"

// A river is a process of candidates.
type river struct {
	Settings
	pool    *pgxpool.Pool
	entered atomic.Int64 // candidates, whose identities must differ
}

func riverElector(ctx context.Context, s Settings) (func(string) Elector, error) {
	pool, err := pgxpool.New(ctx, PostgresConfig(s.Addresses...))
	if err != nil {
		return nil, err
	}
	r := &river{Settings: s, pool: pool}
	return func(election string) Elector {
		e := &riverCandidate{
			river: r, id: fmt.Sprint(s.ID, "-", r.entered.Add(1)), table: pgx.Identifier{"river_leader_" + election}.Sanitize(), topic: election,
			woken: make(chan struct{}, 1),
		}
		return e.elect
	}, nil
}

// of returns what n seconds of River's times are here.
func (r *river) of(seconds float64) time.Duration {
	const ttl = 15
	return time.Duration(float64(r.Session) * seconds / ttl)
}

// backoff is the pause after the attempt of that number, the first being 1.
func (r *river) backoff(attempt, reset int) time.Duration {
	seconds := math.Pow(2, float64((attempt-1)%reset))
	return r.of(seconds * (0.9 + 0.2*rand.Float64()))
}

// A riverCandidate is one candidate.
type riverCandidate struct {
	*river
	id, table, topic string
	listens          bool
	woken            chan struct{} // another one has resigned
}

// A resignation is what a leader notifies.
type resignation struct {
	Action   string `json:"action"`
	LeaderID string `json:"leader_id"`
}

// elect is what a follower does, until it leads.
func (c *riverCandidate) elect(ctx context.Context) (Term, error) {
	if !c.listens {
		if err := c.prepare(ctx); err != nil {
			return Term{}, err
		}
		c.listens = true
		go c.listen(ctx)
	}
	for attempt := 1; ; attempt++ {
		begun := time.Now()
		elected, err := c.attempt(ctx)
		if err != nil {
			if err := c.sleep(ctx, c.backoff(attempt, 7)); err != nil {
				return Term{}, err
			}
			continue
		}
		if !elected.IsZero() {
			return c.lead(ctx, elected, begun), nil
		}
		attempt = 0
		select {
		case <-time.After(c.of(5 + rand.Float64())):
		case <-c.woken:
			if err := c.sleep(ctx, rand.N(50*time.Millisecond)); err != nil {
				return Term{}, err
			}
		case <-ctx.Done():
			return Term{}, context.Cause(ctx)
		}
	}
}

// prepare makes the table, which two cannot do at the same time.
func (c *riverCandidate) prepare(ctx context.Context) error {
	return oneByOne(ctx, c.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "CREATE UNLOGGED TABLE IF NOT EXISTS "+c.table+
			" (leader_id text NOT NULL, elected_at timestamptz NOT NULL, expires_at timestamptz NOT NULL, name text PRIMARY KEY DEFAULT 'default')")
		return err
	})
}

// attempt stands for election once. It returns when the candidate was elected, by the server's clock, or zero if another one leads.
func (c *riverCandidate) attempt(ctx context.Context) (elected time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.of(5))
	defer cancel()
	err = pgx.BeginFunc(ctx, c.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "DELETE FROM "+c.table+" WHERE expires_at < now()"); err != nil {
			return err
		}
		err := tx.QueryRow(ctx, "INSERT INTO "+c.table+" (leader_id, elected_at, expires_at) VALUES ($1, now(), now() + make_interval(secs => $2)) "+
			"ON CONFLICT (name) DO NOTHING RETURNING elected_at", c.id, c.Session.Seconds()).Scan(&elected)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	return elected, err
}

// lead leads from an election on whose request was sent at begun.
func (c *riverCandidate) lead(ctx context.Context, elected, begun time.Time) Term {
	var over atomic.Bool
	leaves, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		lost := c.keep(ctx, elected, begun, leaves)
		var err error
		if !lost {
			err = c.resign(ctx, elected)
		}
		over.Store(true) // after it has resigned, as there
		ended <- err
	}()
	return Term{Leads: func() bool { return !over.Load() }, Release: func(lost bool) error {
		if !lost {
			close(leaves)
		}
		return <-ended
	}}
}

// keep writes a later time again and again. It returns true if another one leads, and false if this one is told to leave, or has not
// been answered for so long that it may have lost its row.
func (c *riverCandidate) keep(ctx context.Context, elected, begun time.Time, leaves <-chan struct{}) (lost bool) {
	trusted := begun.Add(c.of(14))
	wait := c.of(5)
	for failed := 0; ; {
		select {
		case <-leaves:
			return false
		case <-time.After(wait):
		}
		begun := time.Now()
		limit := min(trusted.Sub(begun), c.of(5))
		if limit <= 0 {
			return false
		}
		bounded, cancel := context.WithTimeout(ctx, limit)
		var until time.Time
		err := c.pool.QueryRow(bounded, "UPDATE "+c.table+" SET expires_at = now() + make_interval(secs => $3) "+
			"WHERE elected_at = $1 AND leader_id = $2 AND expires_at >= now() RETURNING expires_at", elected, c.id, c.Session.Seconds()).Scan(&until)
		cancel()
		if errors.Is(err, pgx.ErrNoRows) {
			return true
		}
		if err == nil {
			failed, wait, trusted = 0, c.of(5), begun.Add(c.of(14))
			continue
		}
		failed++
		rest := time.Until(trusted)
		if rest <= 0 {
			return false
		}
		_ = c.sleep(ctx, min(rest, c.backoff(failed, 3)))
		wait = 0
	}
}

// resign deletes the row and notifies the others, with three tries.
func (c *riverCandidate) resign(ctx context.Context, elected time.Time) (err error) {
	said, err := json.Marshal(resignation{"resigned", c.id})
	if err != nil {
		return err
	}
	for attempt := 1; attempt <= 3; attempt++ {
		bounded, cancel := context.WithTimeout(ctx, c.of(float64(attempt)))
		_, err = c.pool.Exec(bounded, "WITH own AS (SELECT FROM "+c.table+" WHERE elected_at = $1 AND leader_id = $2 FOR UPDATE), "+
			"told AS (SELECT pg_notify($3, $4) FROM own) DELETE FROM "+c.table+" USING told", elected, c.id, c.topic, string(said))
		cancel()
		if err == nil {
			return nil
		}
		_ = c.sleep(ctx, c.backoff(attempt, 3))
	}
	return err
}

// listen wakes the candidate when another one has resigned, for as long as the process lives. While there is no connection, candidates look
// from time to time, as always.
func (c *riverCandidate) listen(ctx context.Context) {
	for attempt := 1; ctx.Err() == nil; attempt++ {
		conn, err := pgx.Connect(ctx, PostgresConfig(c.Addresses...))
		if err == nil {
			_, err = conn.Exec(ctx, "LISTEN "+pgx.Identifier{c.topic}.Sanitize())
			for err == nil {
				attempt = 0
				n, e := conn.WaitForNotification(ctx)
				var r resignation
				if err = e; err == nil && json.Unmarshal([]byte(n.Payload), &r) == nil && r.Action == "resigned" && r.LeaderID != c.id {
					select {
					case c.woken <- struct{}{}:
					default:
					}
				}
			}
			_ = conn.Close(ctx)
		}
		_ = c.sleep(ctx, c.backoff(max(1, attempt), 7))
	}
}

func (c *riverCandidate) sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
