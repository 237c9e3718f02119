package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/fence"
	"github.com/succession-dev/succession/memory"
)

// A process keeps something for the leaders, and writes each new token down before it
// obeys it. After a restart it still knows them.
func ExampleChecker() {
	ctx := context.Background()
	disk := make(map[string]uint64) // what a restart leaves
	start := func() *fence.Checker {
		c := &fence.Checker{Keep: func(_ context.Context, resource string, token uint64) error {
			disk[resource] = token
			return nil
		}}
		c.Restore(disk)
		return c
	}
	account := 100
	deposit := func(c *fence.Checker, token uint64, n int) error {
		return c.Do(ctx, "account", token, func(context.Context) error {
			account += n
			return nil
		})
	}

	c := start()
	fmt.Println(deposit(c, 5, 10))
	fmt.Println(deposit(c, 7, 10)) // the next leader
	c = start()
	fmt.Println(deposit(c, 5, 10)) // the one before goes on after a pause
	fmt.Println(account)
	// Output:
	// <nil>
	// <nil>
	// stale token 5 for "account": 7 has been seen
	// 120
}

// A service stores reports for whoever leads. web-1 is deposed and does not know it yet; its
// request is refused, because web-2 has shown its token.
func ExampleHandler() {
	ctx := context.Background()
	put := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println("stored", r.PathValue("name"))
	})
	byName := func(r *http.Request) string { return r.PathValue("name") }
	mux := http.NewServeMux()
	mux.Handle("PUT /reports/{name}", fence.Handler(new(fence.Checker), byName, put))
	service := httptest.NewServer(mux)
	defer service.Close()

	send := func(t fence.Term) error {
		client := http.Client{Transport: &fence.Transport{Term: t}}
		r, err := http.NewRequestWithContext(ctx, "PUT", service.URL+"/reports/daily", strings.NewReader("all is well"))
		if err != nil {
			return err
		}
		resp, err := client.Do(r)
		if err != nil {
			return err // also if the term is over: nothing was sent then
		}
		defer resp.Body.Close()
		if err := fence.Refused(resp); err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			return errors.New(resp.Status)
		}
		return nil
	}

	c := memory.New(nil) // or any other coordinator
	web1, web2 := c.Client("web-1"), c.Client("web-2")
	defer web1.Close()
	defer web2.Close()
	first, err := elect.New(web1, "reports", nil).Campaign(ctx)
	if err != nil {
		panic(err)
	}
	defer first.Resign(ctx)
	fmt.Println(send(first))

	web1.Cut()
	c.Remove("reports", first.Member().Key) // an operator does not wait for the end of the session
	second, err := elect.New(web2, "reports", nil).Campaign(ctx)
	if err != nil {
		panic(err)
	}
	defer second.Resign(ctx)
	fmt.Println(send(second))
	fmt.Println("web-1 believes that it leads:", first.Check() == nil)
	fmt.Println(errors.Is(send(first), fence.ErrStale))
	web1.Heal()
	// Output:
	// stored daily
	// <nil>
	// stored daily
	// <nil>
	// web-1 believes that it leads: true
	// true
}

// The leaders of an election on this machine write one file.
func ExampleFile() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "fence-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	state := fence.File(filepath.Join(dir, "state"))

	fmt.Println(state.Write(ctx, 5, []byte("17 letters")))
	data, err := state.Read(ctx, 7) // the next leader begins
	fmt.Printf("%s, %v\n", data, err)
	fmt.Println(errors.Is(state.Write(ctx, 5, []byte("18 letters")), fence.ErrStale))
	// Output:
	// <nil>
	// 17 letters, <nil>
	// true
}

// A leader reads and writes in a transaction that begins with its token.
func ExampleSQL_Raise() {
	fences := fence.SQL{Dialect: fence.PostgreSQL}
	transfer := func(ctx context.Context, db *sql.DB, t *elect.Term, from, to string, n int) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback() // does nothing after Commit
		if err := fences.Raise(ctx, tx, "accounts", t.Token()); err != nil {
			return err
		}
		var balance int
		if err := tx.QueryRowContext(ctx, "SELECT balance FROM account WHERE id = $1", from).Scan(&balance); err != nil {
			return err
		}
		if balance < n {
			return fmt.Errorf("%s has %d only", from, balance)
		}
		const add = "UPDATE account SET balance = balance + $1 WHERE id = $2"
		if _, err := tx.ExecContext(ctx, add, -n, from); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, add, n, to); err != nil {
			return err
		}
		return tx.Commit()
	}
	_ = transfer // package sqltest runs such a transaction on databases
}
