//go:build linux

package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/succession-dev/succession/fence"
)

// newAccount makes a table of the application, and then adds the column, as package fence
// says.
func newAccount(t *testing.T, d *database) {
	d.exec(t, "CREATE TABLE account (id BIGINT PRIMARY KEY, balance BIGINT NOT NULL)")
	d.exec(t, "INSERT INTO account VALUES (1, 0), (2, 0)")
	d.exec(t, "ALTER TABLE account ADD COLUMN token BIGINT NOT NULL DEFAULT 0")
}

// setBalance is the guarded statement of package fence, without Raise.
func setBalance(d *database, id int, balance, token uint64) error {
	return d.in(func(tx *sql.Tx) error {
		r, err := tx.ExecContext(context.Background(),
			fmt.Sprintf("UPDATE account SET balance = %d, token = %d WHERE id = %d AND token <= %[2]d", balance, token, id))
		if err != nil {
			return err
		}
		return fence.Updated(r, "account", token)
	})
}

func TestUpdatedRefusesSmallerTokens(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		newAccount(t, d)
		for i, s := range []struct {
			id      int
			token   uint64
			refused bool
		}{{1, 7, false}, {1, 7, false}, {1, 9, false}, {1, 7, true}, {2, 7, false}, {3, 11, true}} {
			err := setBalance(d, s.id, 10, s.token) // the same balance: no value changes
			if s.refused {
				wantStale(t, err, fence.StaleError{Resource: "account", Token: s.token})
			} else if err != nil {
				t.Errorf("step %d: %v", i, err)
			}
		}
		if got := d.tokens(t, "SELECT token FROM account ORDER BY id"); !slices.Equal(got, []uint64{9, 7}) {
			t.Errorf("the tokens of the rows are %d", got)
		}
	})
}

// Many write one row with random tokens. Whoever looks sees no token fall.
func TestUpdatedByManyWriters(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		newAccount(t, d)
		var mu sync.Mutex
		var largest uint64
		var writers sync.WaitGroup
		for range 6 {
			writers.Go(func() {
				for i := range uint64(25) {
					token := 1 + i + rand.Uint64N(10)
					err := setBalance(d, 1, 2*token, token)
					if err != nil && !errors.Is(err, fence.ErrStale) {
						t.Errorf("token %d: %v", token, err)
					}
					if err == nil {
						mu.Lock()
						largest = max(largest, token)
						mu.Unlock()
					}
				}
			})
		}
		end := make(chan struct{})
		go func() {
			writers.Wait()
			close(end)
		}()
		var before uint64
		for looking := true; looking; {
			select {
			case <-end:
				looking = false
			default:
			}
			token := d.tokens(t, "SELECT token FROM account WHERE id = 1")[0]
			if token < before {
				t.Errorf("the token of the row went back from %d to %d", before, token)
			}
			before = token
		}
		if got := d.tokens(t, "SELECT balance FROM account WHERE id = 1"); before != largest || got[0] != 2*largest {
			t.Errorf("there stands %d of token %d; the largest token of a write was %d", got, before, largest)
		}
	})
}
