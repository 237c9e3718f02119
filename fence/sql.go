package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"regexp"
)

// A Dialect is a database's way to write statements.
type Dialect int

// The dialects. Databases that speak one of them can be used too, if their locks do what the
// package comment says.
const (
	SQLite     Dialect = iota + 1 // 3.35 or later
	PostgreSQL                    // 9.5 or later
	MySQL                         // with InnoDB, and MariaDB; written from the manuals, and not tested on a server
)

// A SQL is a table that remembers the largest token of each resource, in the database that
// also has the resource. It imports no driver. It is safe for concurrent use.
type SQL struct {
	Dialect Dialect
	// Table is the name of the table, with a schema before it if need be ("app.fence"): ASCII
	// letters, digits and underscores. Empty means "fence".
	Table string
}

const maxResource = 255 // bytes of a name: the column of MySQL has a limit

var tableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?$`)

// statements are the statements of each dialect, with %s for the table. raise has two parameters,
// the resource and the token. It returns the larger token; where it cannot, read does, whose
// parameter is the resource.
var statements = map[Dialect]struct{ schema, raise, read string }{
	SQLite: {
		schema: `CREATE TABLE IF NOT EXISTS %s (resource TEXT NOT NULL PRIMARY KEY, token BIGINT NOT NULL)`,
		raise: `INSERT INTO %s AS f (resource, token) VALUES (?, ?)
			ON CONFLICT (resource) DO UPDATE SET token = max(f.token, excluded.token) RETURNING token`,
	},
	PostgreSQL: {
		schema: `CREATE TABLE IF NOT EXISTS %s (resource TEXT NOT NULL PRIMARY KEY, token BIGINT NOT NULL)`,
		raise: `INSERT INTO %s AS f (resource, token) VALUES ($1, $2)
			ON CONFLICT (resource) DO UPDATE SET token = greatest(f.token, excluded.token) RETURNING token`,
	},
	MySQL: {
		// Names are compared byte by byte, and only InnoDB has transactions.
		schema: `CREATE TABLE IF NOT EXISTS %s (resource VARBINARY(255) NOT NULL PRIMARY KEY, token BIGINT NOT NULL) ENGINE=InnoDB`,
		raise: `INSERT INTO %s (resource, token) VALUES (?, ?)
			ON DUPLICATE KEY UPDATE token = greatest(token, VALUES(token))`,
		// FOR UPDATE reads what the statement before has locked, and no older snapshot.
		read: `SELECT token FROM %s WHERE resource = ? FOR UPDATE`,
	},
}

// Schema returns the statement that creates the table if there is none. It is the migration: run it
// once, as a user who may create tables. Raise then needs the rights to select, insert and update.
func (s SQL) Schema() (string, error) {
	table, err := s.table()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(statements[s.Dialect].schema, table), nil
}

// Raise shows the token to the resource, in tx. It fails with a [*StaleError] if the resource
// has seen a larger one; tx must then be rolled back. Otherwise, until tx ends, all others wait in
// Raise, whatever their tokens, and once tx is committed, no transaction with a smaller token
// passes Raise.
//
// Raise must be the first statement of tx. Any isolation from READ COMMITTED on is enough;
// the package comment says why. Raise blocks while another transaction has the row, until
// ctx ends or the database gives up. An error that is no [*StaleError] is the database's own,
// such as that the transaction must be tried again.
//
// The name of a resource has at most 255 bytes. A token must fit a signed column; a larger
// one is an [ErrInvalid].
func (s SQL) Raise(ctx context.Context, tx *sql.Tx, resource string, token uint64) error {
	table, err := s.table()
	if err != nil {
		return err
	}
	if err := checkToken(token); err != nil {
		return err
	}
	if token > math.MaxInt64 {
		return fmt.Errorf("fence: %w %d: it does not fit a BIGINT", ErrInvalid, token)
	}
	if len(resource) > maxResource {
		return fmt.Errorf("fence: resource %.32q...: %d bytes, at most %d are possible", resource, len(resource), maxResource)
	}
	largest, err := s.raise(ctx, tx, table, resource, int64(token))
	if err != nil {
		return fmt.Errorf("fence: raise the token of %q in table %s: %w", resource, table, err)
	}
	if largest := uint64(largest); token < largest {
		return &StaleError{Resource: resource, Token: token, Largest: largest}
	}
	return nil
}

// raise sets the token to the larger of the two, and returns that.
func (s SQL) raise(ctx context.Context, tx *sql.Tx, table, resource string, token int64) (largest int64, err error) {
	do := statements[s.Dialect]
	raise := fmt.Sprintf(do.raise, table)
	if do.read == "" {
		err = tx.QueryRowContext(ctx, raise, resource, token).Scan(&largest)
		return largest, err
	}
	if _, err := tx.ExecContext(ctx, raise, resource, token); err != nil {
		return 0, err
	}
	err = tx.QueryRowContext(ctx, fmt.Sprintf(do.read, table), resource).Scan(&largest)
	return largest, err
}

func (s SQL) table() (string, error) {
	if _, ok := statements[s.Dialect]; !ok {
		return "", errors.New("fence: SQL has no Dialect; it is SQLite, PostgreSQL or MySQL")
	}
	if s.Table == "" {
		return "fence", nil
	}
	if !tableName.MatchString(s.Table) {
		return "", fmt.Errorf("fence: table %q: use ASCII letters, digits and underscores, and one dot behind a schema", s.Table)
	}
	return s.Table, nil
}

// Updated returns nil if a statement has changed a row, and a [*StaleError] without Largest
// if it has changed none. It is for an UPDATE of one row that is there, and that has a column
// for tokens: with "token = $2" in its SET and "token <= $2" in its WHERE. The resource and
// the token are for the error.
//
// MySQL does not count a row that it has found and left as it was, so connect with
// clientFoundRows=true there.
func Updated(r sql.Result, resource string, token uint64) error {
	n, err := r.RowsAffected()
	if err != nil {
		return fmt.Errorf("fence: count the rows of %q that were changed: %w", resource, err)
	}
	if n == 0 {
		return &StaleError{Resource: resource, Token: token}
	}
	return nil
}
