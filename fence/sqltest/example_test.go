//go:build linux

package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/fence"
	"github.com/succession-dev/succession/memory"
)

// Two leaders write to a database in a file.
func Example_sqlite() {
	dir, err := os.MkdirTemp("", "fence-sqlite-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	// Another writer is waited for. A transaction begins with a write, so that it need not
	// be told that it will write.
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "db")+"?_pragma=busy_timeout(10000)")
	if err != nil {
		panic(err)
	}
	defer db.Close()
	twoLeaders(db, fence.SQL{Dialect: fence.SQLite})
	// Output:
	// web-1 deposits: <nil>
	// web-2 deposits: <nil>
	// web-1 believes that it leads: true
	// web-1 deposits, and is refused: true
	// the balance is 20
}

// Two leaders write to a PostgreSQL server.
func Example_postgreSQL() {
	url, err := newURL() // or that of your server
	if err != nil {
		panic(err)
	}
	db, err := sql.Open("pgx", url)
	if err != nil {
		panic(err)
	}
	defer db.Close()
	twoLeaders(db, fence.SQL{Dialect: fence.PostgreSQL})
	// Output:
	// web-1 deposits: <nil>
	// web-2 deposits: <nil>
	// web-1 believes that it leads: true
	// web-1 deposits, and is refused: true
	// the balance is 20
}

// twoLeaders lets web-1 lead, and then web-2, while web-1 does not know that it is deposed.
func twoLeaders(db *sql.DB, fences fence.SQL) {
	ctx := context.Background()
	schema, err := fences.Schema()
	if err != nil {
		panic(err)
	}
	for _, migration := range []string{
		schema,
		"CREATE TABLE account (id BIGINT PRIMARY KEY, balance BIGINT NOT NULL)",
		"INSERT INTO account VALUES (1, 0)",
	} {
		if _, err := db.ExecContext(ctx, migration); err != nil {
			panic(err)
		}
	}
	deposit := func(t *elect.Term, n int) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback() // does nothing after Commit
		if err := fences.Raise(ctx, tx, "accounts", t.Token()); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, fmt.Sprintf("UPDATE account SET balance = balance + %d WHERE id = 1", n)); err != nil {
			return err
		}
		return tx.Commit()
	}

	c := memory.New(nil) // or any other coordinator
	web1, web2 := c.Client("web-1"), c.Client("web-2")
	defer web1.Close()
	defer web2.Close()
	first, err := elect.New(web1, "accounts", nil).Campaign(ctx)
	if err != nil {
		panic(err)
	}
	defer first.Resign(ctx)
	fmt.Println("web-1 deposits:", deposit(first, 10))

	web1.Cut()
	c.Remove("accounts", first.Member().Key) // an operator does not wait for the end of the session
	second, err := elect.New(web2, "accounts", nil).Campaign(ctx)
	if err != nil {
		panic(err)
	}
	defer second.Resign(ctx)
	fmt.Println("web-2 deposits:", deposit(second, 10))
	fmt.Println("web-1 believes that it leads:", first.Check() == nil)
	fmt.Println("web-1 deposits, and is refused:", errors.Is(deposit(first, 10), fence.ErrStale))
	web1.Heal()

	var balance int
	if err := db.QueryRowContext(ctx, "SELECT balance FROM account WHERE id = 1").Scan(&balance); err != nil {
		panic(err)
	}
	fmt.Println("the balance is", balance)
}
