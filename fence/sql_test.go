package fence_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/succession-dev/succession/fence"
)

// What the statements do is tested on databases, in folder sqltest. Here is what needs none:
// a database that notes statements, and has seen token 7.
type noted struct{ statements []string }

func (n *noted) Connect(context.Context) (driver.Conn, error) { return n, nil }
func (n *noted) Driver() driver.Driver                        { return nil }
func (n *noted) Prepare(string) (driver.Stmt, error)          { return nil, errors.ErrUnsupported }
func (n *noted) Begin() (driver.Tx, error)                    { return n, nil }
func (n *noted) Close() error                                 { return nil }
func (n *noted) Commit() error                                { return nil }
func (n *noted) Rollback() error                              { return nil }

func (n *noted) note(statement string, args []driver.NamedValue) {
	for _, a := range args {
		statement += fmt.Sprintf(" %v", a.Value)
	}
	n.statements = append(n.statements, strings.Join(strings.Fields(statement), " "))
}

func (n *noted) ExecContext(_ context.Context, statement string, args []driver.NamedValue) (driver.Result, error) {
	n.note(statement, args)
	return driver.RowsAffected(0), nil
}

func (n *noted) QueryContext(_ context.Context, statement string, args []driver.NamedValue) (driver.Rows, error) {
	n.note(statement, args)
	return new(seven), nil
}

// seven is one row with the token 7.
type seven struct{ read bool }

func (r *seven) Columns() []string { return []string{"token"} }
func (r *seven) Close() error      { return nil }
func (r *seven) Next(row []driver.Value) error {
	if r.read {
		return io.EOF
	}
	r.read = true
	row[0] = int64(7)
	return nil
}

func TestSQLStatements(t *testing.T) {
	for dialect, want := range map[fence.Dialect][]string{
		fence.SQLite: {
			"INSERT INTO app.fence AS f (resource, token) VALUES (?, ?) ON CONFLICT (resource) DO UPDATE SET token = max(f.token, excluded.token) RETURNING token accounts 5",
		},
		fence.PostgreSQL: {
			"INSERT INTO app.fence AS f (resource, token) VALUES ($1, $2) ON CONFLICT (resource) DO UPDATE SET token = greatest(f.token, excluded.token) RETURNING token accounts 5",
		},
		fence.MySQL: {
			"INSERT INTO app.fence (resource, token) VALUES (?, ?) ON DUPLICATE KEY UPDATE token = greatest(token, VALUES(token)) accounts 5",
			"SELECT token FROM app.fence WHERE resource = ? FOR UPDATE accounts",
		},
	} {
		n := new(noted)
		tx := begin(t, n)
		f := fence.SQL{Dialect: dialect, Table: "app.fence"}
		wantStale(t, f.Raise(t.Context(), tx, "accounts", 5), fence.StaleError{Resource: "accounts", Token: 5, Largest: 7})
		if !slices.Equal(n.statements, want) {
			t.Errorf("dialect %d: %q\nwant %q", dialect, n.statements, want)
		}
		if err := f.Raise(t.Context(), tx, "accounts", 7); err != nil {
			t.Errorf("an equal token: %v", err)
		}
		schema, err := f.Schema()
		if err != nil || !strings.HasPrefix(schema, "CREATE TABLE IF NOT EXISTS app.fence (resource ") {
			t.Errorf("dialect %d: %s, %v", dialect, schema, err)
		}
	}
}

// begin returns a transaction in a database that notes statements.
func begin(t *testing.T, n *noted) *sql.Tx {
	t.Helper()
	db := sql.OpenDB(n)
	t.Cleanup(func() { db.Close() })
	tx, err := db.BeginTx(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tx.Rollback() })
	return tx
}

// What is wrong with the arguments is said before the database is asked.
func TestSQLRefusesArguments(t *testing.T) {
	good := fence.SQL{Dialect: fence.SQLite}
	for what, s := range map[string]struct {
		f        fence.SQL
		resource string
		token    uint64
		invalid  bool // it is about the token
	}{
		"no dialect":      {fence.SQL{}, "accounts", 5, false},
		"unknown dialect": {fence.SQL{Dialect: 4}, "accounts", 5, false},
		"token 0":         {good, "accounts", 0, true},
		"large token":     {good, "accounts", 1 << 63, true},
		"long resource":   {good, strings.Repeat("a", 256), 5, false},
		"injection":       {fence.SQL{Dialect: fence.SQLite, Table: "fence; DROP TABLE fence"}, "accounts", 5, false},
		"newline":         {fence.SQL{Dialect: fence.SQLite, Table: "fence\n"}, "accounts", 5, false},
		"two dots":        {fence.SQL{Dialect: fence.SQLite, Table: "a.b.c"}, "accounts", 5, false},
		"digit":           {fence.SQL{Dialect: fence.SQLite, Table: "1fence"}, "accounts", 5, false},
	} {
		n := new(noted)
		err := s.f.Raise(t.Context(), begin(t, n), s.resource, s.token)
		if err == nil || errors.Is(err, fence.ErrInvalid) != s.invalid || len(n.statements) > 0 {
			t.Errorf("%s: %v, after %q", what, err, n.statements)
		}
		if _, err := s.f.Schema(); (err == nil) != (s.f == good) {
			t.Errorf("%s: Schema: %v", what, err)
		}
	}
	n := new(noted)
	for _, token := range []uint64{7, 1<<63 - 1} {
		if err := good.Raise(t.Context(), begin(t, n), strings.Repeat("a", 255), token); err != nil {
			t.Errorf("the longest name with token %d: %v", token, err)
		}
	}
}

func TestUpdated(t *testing.T) {
	if err := fence.Updated(driver.RowsAffected(1), "accounts", 5); err != nil {
		t.Error(err)
	}
	wantStale(t, fence.Updated(driver.RowsAffected(0), "accounts", 5), fence.StaleError{Resource: "accounts", Token: 5})
	if err := fence.Updated(driver.ResultNoRows, "accounts", 5); err == nil || errors.Is(err, fence.ErrStale) {
		t.Errorf("rows cannot be counted: %v", err)
	}
}
