//go:build linux

package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	_ "modernc.org/sqlite"

	"github.com/succession-dev/succession/fence"
)

// A database is an empty one, in which the table of fences was made.
type database struct {
	db     *sql.DB
	fences fence.SQL
	level  sql.IsolationLevel
}

// each runs the test on a database of every kind, and at every isolation that suffices.
func each(t *testing.T, test func(t *testing.T, d *database)) {
	for name, journal := range map[string]string{"SQLite": "delete", "SQLite with WAL": "wal"} {
		t.Run(name, func(t *testing.T) {
			test(t, newSQLite(t, filepath.Join(t.TempDir(), "db"), journal, 60_000))
		})
	}
	for name, level := range map[string]sql.IsolationLevel{
		"PostgreSQL":                 sql.LevelDefault, // READ COMMITTED
		"PostgreSQL repeatable read": sql.LevelRepeatableRead,
		"PostgreSQL serializable":    sql.LevelSerializable,
	} {
		t.Run(name, func(t *testing.T) {
			d := newPostgres(t)
			d.level = level
			test(t, d)
		})
	}
}

// newSQLite opens a database that waits for another writer for as many milliseconds.
func newSQLite(t *testing.T, path, journal string, busy int) *database {
	t.Helper()
	url := fmt.Sprintf("file:%s?_pragma=busy_timeout(%d)&_pragma=journal_mode(%s)&_pragma=synchronous(off)", path, busy, journal)
	return newDatabase(t, "sqlite", url, fence.SQL{Dialect: fence.SQLite})
}

func newPostgres(t *testing.T) *database {
	t.Helper()
	url, err := newURL()
	if err != nil {
		t.Fatal(err)
	}
	return newDatabase(t, "pgx", url, fence.SQL{Dialect: fence.PostgreSQL})
}

func newDatabase(t *testing.T, driver, url string, fences fence.SQL) *database {
	t.Helper()
	db, err := sql.Open(driver, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	d := &database{db: db, fences: fences}
	schema, err := fences.Schema()
	if err != nil {
		t.Fatal(err)
	}
	d.exec(t, schema)
	d.exec(t, schema) // again, where it has been run
	return d
}

func (d *database) exec(t *testing.T, statement string) {
	t.Helper()
	if _, err := d.db.ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// tokens returns a column of numbers.
func (d *database) tokens(t *testing.T, query string) []uint64 {
	t.Helper()
	rows, err := d.db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []uint64
	for rows.Next() {
		var n int64
		if err := rows.Scan(&n); err != nil {
			t.Fatal(err)
		}
		all = append(all, uint64(n))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// in runs do in a transaction, and again as long as the database says that it must be
// tried again.
func (d *database) in(do func(tx *sql.Tx) error) error {
	for {
		err := d.once(do)
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != "40001" { // serialization_failure
			return err
		}
	}
}

func (d *database) once(do func(tx *sql.Tx) error) error {
	tx, err := d.db.BeginTx(context.Background(), &sql.TxOptions{Isolation: d.level})
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// run runs statements behind Raise in a transaction.
func (d *database) run(resource string, token uint64, statements ...string) error {
	return d.in(func(tx *sql.Tx) error {
		if err := d.fences.Raise(context.Background(), tx, resource, token); err != nil {
			return err
		}
		for _, s := range statements {
			if _, err := tx.ExecContext(context.Background(), s); err != nil {
				return err
			}
		}
		return nil
	})
}
