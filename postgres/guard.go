package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/succession-dev/succession/backend"
)

// A Tx is a transaction of pgx, such as a pgx.Tx. A pool or a connection is none, as [Guard] would guard nothing there: so Commit, which is not
// called, is in it.
type Tx interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Commit(ctx context.Context) error
}

// Guard makes tx fail at its commit if the member m does not lead its election then. If tx commits,
// m led at that moment, and nobody has led after m before, whatever the clocks of this process and
// of the server say. The transaction must be in the database of the election. schema is the one of
// [Options] and of the URL; empty is [DefaultSchema]. In another schema that has elections, or in
// another database, there is no such member, so that it seems deposed. For a term of package elect, m
// is its Member.
//
//	tx, err := pool.Begin(ctx)
//	...
//	if err := postgres.Guard(ctx, tx, "", term.Member()); err != nil { ... }
//	... // what only the leader may do
//	err = tx.Commit(ctx)
//	if postgres.Deposed(err) { ... } // and nothing has happened
//
// Guard may be called at any point of the transaction, and costs a round trip. It fails if m has
// gone already. In a savepoint, such as a Begin within tx makes, it goes with that if that is rolled back, and then nothing is checked: call it
// outside. It locks nothing: until the commit, the transaction of a leader that has vanished
// keeps nobody from leading. At the commit it locks the row of the member until the transaction is
// over; with synchronous replication, until a standby has it, also where the role or the database
// has synchronous_commit off. It works at each isolation level; above READ COMMITTED a commit may
// also fail because it cannot be serialized, and begin tx in the term: m seems deposed in a transaction that
// has looked at the database before m led.
//
// SET CONSTRAINTS ALL IMMEDIATE in tx has Guard look, and lock, at once. Then m cannot leave, and
// nobody leads after it, before tx is over, even if its process has vanished. PREPARE TRANSACTION does the same,
// until somebody commits what was prepared, or rolls it back.
//
// The role needs the grant [Worker]. In a migration to another coordinator Guard refuses from the cutover on, and in one to this
// database until somebody leads who has joined after the cutover.
//
// If the commit waits for a standby, and that is cancelled, by pg_cancel_backend or a driver that asks the server to cancel when a
// context ends, PostgreSQL reports it as done, with a warning: take that for a lost answer. On a primary that was replaced the
// commit is lost, and another may have led.
func Guard(ctx context.Context, tx Tx, schema string, m backend.Member) error {
	return guard(schema, m, func(statement string, args ...any) error {
		_, err := tx.Exec(ctx, statement, args...)
		return err
	})
}

// GuardSQL is [Guard] for a transaction of package database/sql, with any driver of PostgreSQL.
func GuardSQL(ctx context.Context, tx *sql.Tx, schema string, m backend.Member) error {
	return guard(schema, m, func(statement string, args ...any) error {
		_, err := tx.ExecContext(ctx, statement, args...)
		return err
	})
}

func guard(schema string, m backend.Member, exec func(string, ...any) error) error {
	if schema == "" {
		schema = DefaultSchema
	}
	err := checkSchema(schema)
	if err == nil && (m.Line == "" || m.Position == 0 || m.Position >= 1<<63) {
		err = fmt.Errorf("%w member %+v", backend.ErrInvalid, m)
	}
	if err == nil {
		// The casts tell drivers that prepare no statements what the arguments are.
		err = exec("SELECT "+quoted(schema)+".guard($1::text, $2::bigint)", m.Line, int64(m.Position))
		if state := stateOf(err); state == stateNoSchema || state == stateNoFunction {
			err = fmt.Errorf("%w schema %q for Guard: it is not in the database of the transaction; pass the schema of the election, which its URL names: %w", backend.ErrInvalid, schema, err)
		}
	}
	return driver.Wrap("guard", m.Line, err)
}

// Deposed reports whether err says that [Guard] has refused a transaction: its member did not lead,
// and the transaction has done nothing. err may come from pgx, or from another driver whose errors
// have the method SQLState.
func Deposed(err error) bool { return stateOf(err) == stateDeposed }

// stateOf returns the SQLSTATE of an error of any driver, and "" if it has none.
func stateOf(err error) string {
	var state interface{ SQLState() string }
	if !errors.As(err, &state) {
		return ""
	}
	return state.SQLState()
}
