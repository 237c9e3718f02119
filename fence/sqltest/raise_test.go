//go:build linux

package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/succession-dev/succession/fence"
)

func TestRaiseRefusesSmallerTokens(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		d.exec(t, "CREATE TABLE letter (step BIGINT)")
		var want []uint64
		for i, s := range []struct{ token, largest uint64 }{{7, 7}, {7, 7}, {9, 9}, {7, 9}, {math.MaxInt64, math.MaxInt64}, {9, math.MaxInt64}} {
			err := d.run("letters", s.token, fmt.Sprintf("INSERT INTO letter VALUES (%d)", i))
			if s.token == s.largest {
				want = append(want, uint64(i))
				if err != nil {
					t.Errorf("step %d: token %d is refused: %v", i, s.token, err)
				}
				continue
			}
			wantStale(t, err, fence.StaleError{Resource: "letters", Token: s.token, Largest: s.largest})
		}
		if got := d.tokens(t, "SELECT step FROM letter ORDER BY step"); !slices.Equal(got, want) {
			t.Errorf("steps %d were done, want %d", got, want)
		}
	})
}

func wantStale(t *testing.T, err error, want fence.StaleError) {
	t.Helper()
	var stale *fence.StaleError
	if !errors.As(err, &stale) || *stale != want {
		t.Errorf("got %v, want %v", err, &want)
	}
}

// Names are compared byte by byte. The table may be in a schema.
func TestRaiseNames(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		d.fences.Table = "main.Fence_2"
		if d.fences.Dialect == fence.PostgreSQL {
			d.exec(t, "CREATE SCHEMA main")
		}
		schema, err := d.fences.Schema()
		if err != nil {
			t.Fatal(err)
		}
		d.exec(t, schema)
		names := []string{"", " ", "a", "A", "a ", "ä", "a'; DROP TABLE fence", strings.Repeat("a", 255)}
		for _, token := range []uint64{7, 9} {
			for _, name := range names {
				if err := d.run(name, token); err != nil {
					t.Errorf("%q: %v", name, err)
				}
			}
		}
		for _, name := range names {
			wantStale(t, d.run(name, 8), fence.StaleError{Resource: name, Token: 8, Largest: 9})
		}
	})
}

// Only what is committed has been shown.
func TestRaiseRolledBack(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		full := errors.New("disk full")
		err := d.in(func(tx *sql.Tx) error {
			if err := d.fences.Raise(t.Context(), tx, "letters", 7); err != nil {
				return err
			}
			return full
		})
		if err != full {
			t.Fatal(err)
		}
		if err := d.run("letters", 5); err != nil {
			t.Errorf("a smaller token is refused: %v", err)
		}
	})
}

// Many write with random tokens. Each write takes the next number, which it reads and then
// inserts; only the fence keeps two of them apart. Whoever looks sees no token fall.
func TestRaiseOfManyWriters(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		d.exec(t, "CREATE TABLE log (seq BIGINT PRIMARY KEY, token BIGINT NOT NULL)")
		const stored, logged = "SELECT token FROM fence", "SELECT token FROM log ORDER BY seq"
		var mu sync.Mutex
		var done []uint64 // the tokens of those who were told that they have written
		var writers sync.WaitGroup
		for range 6 {
			writers.Go(func() {
				for i := range uint64(25) {
					token := 1 + i + rand.Uint64N(10)
					err := d.run("log", token, fmt.Sprintf("INSERT INTO log SELECT coalesce(max(seq), 0) + 1, %d FROM log", token))
					var stale *fence.StaleError
					switch {
					case err == nil:
						mu.Lock()
						done = append(done, token)
						mu.Unlock()
					case !errors.As(err, &stale):
						t.Errorf("token %d: %v", token, err)
					case stale.Token != token || stale.Largest <= token:
						t.Errorf("token %d: %v", token, err)
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
			for _, token := range d.tokens(t, stored) {
				if token < before {
					t.Errorf("the stored token went back from %d to %d", before, token)
				}
				before = token
			}
			if log := d.tokens(t, logged); !slices.IsSorted(log) {
				t.Fatalf("a late write is visible: %d", log)
			}
		}
		log := d.tokens(t, logged)
		slices.Sort(done)
		if !slices.Equal(log, done) {
			t.Errorf("there stands %d, and those who have written had %d", log, done)
		}
		if got := d.tokens(t, stored); len(done) == 0 || !slices.Equal(got, done[len(done)-1:]) {
			t.Errorf("the stored tokens are %d, and those who have written had %d", got, done)
		}
	})
}

// A transaction that has raised holds up others, whatever their tokens, and decides what
// becomes of them.
func TestRaiseWaits(t *testing.T) {
	for _, s := range []struct {
		first, second uint64
		commit        bool
		refused       bool
	}{
		{first: 5, second: 7, commit: true},
		{first: 5, second: 5, commit: true},
		{first: 7, second: 5, commit: true, refused: true},
		{first: 7, second: 5, commit: false},
	} {
		for _, there := range []bool{false, true} { // the row of the resource
			t.Run(fmt.Sprintf("%d then %d, committed %t, there %t", s.first, s.second, s.commit, there), func(t *testing.T) {
				d := newPostgres(t)
				d.exec(t, "CREATE TABLE letter (n BIGINT)")
				if there {
					if err := d.run("letters", 1); err != nil {
						t.Fatal(err)
					}
				}
				tx, err := d.db.BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				defer tx.Rollback()
				if err := d.fences.Raise(t.Context(), tx, "letters", s.first); err != nil {
					t.Fatal(err)
				}

				var found []uint64 // what the second reads behind Raise
				second := make(chan error, 1)
				go func() {
					second <- d.once(func(tx *sql.Tx) error {
						if err := d.fences.Raise(t.Context(), tx, "letters", s.second); err != nil {
							return err
						}
						var n int64
						err := tx.QueryRowContext(t.Context(), "SELECT count(*) FROM letter").Scan(&n)
						found = append(found, uint64(n))
						return err
					})
				}()
				waitBlocked(t, d, second)
				if _, err := tx.ExecContext(t.Context(), "INSERT INTO letter VALUES (1)"); err != nil {
					t.Fatal(err)
				}
				want := []uint64{0}
				if s.commit {
					want[0] = 1
					err = tx.Commit()
				} else {
					err = tx.Rollback()
				}
				if err != nil {
					t.Fatal(err)
				}
				err = <-second
				if s.refused {
					wantStale(t, err, fence.StaleError{Resource: "letters", Token: s.second, Largest: s.first})
				} else if err != nil || !slices.Equal(found, want) {
					t.Errorf("it found %d letters, %v; want %d", found, err, want)
				}
			})
		}
	}
}

// On SQLite who must wait for too long is told so, and is not taken for a deposed leader.
func TestRaiseIsBusy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	d := newSQLite(t, path, "wal", 0)
	err := d.in(func(tx *sql.Tx) error {
		if err := d.fences.Raise(t.Context(), tx, "letters", 5); err != nil {
			return err
		}
		for _, token := range []uint64{4, 5, 7} {
			if err := d.run("letters", token); err == nil || errors.Is(err, fence.ErrStale) || !strings.Contains(err.Error(), "locked") {
				t.Errorf("token %d gets %v", token, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.run("letters", 7); err != nil {
		t.Error(err)
	}
}

// What Raise is not: a SELECT and then an UPDATE, which goes back, and lets a late write in.
func TestReadThenWriteGoesBack(t *testing.T) {
	d := newPostgres(t)
	if err := d.run("letters", 1); err != nil {
		t.Fatal(err)
	}
	err := d.in(func(tx *sql.Tx) error {
		var largest int64
		if err := tx.QueryRowContext(t.Context(), "SELECT token FROM fence").Scan(&largest); err != nil {
			return err
		}
		if err := d.run("letters", 7); err != nil { // the next leader writes
			return err
		}
		if largest > 5 {
			return fence.ErrStale
		}
		_, err := tx.ExecContext(context.Background(), "UPDATE fence SET token = 5")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := d.tokens(t, "SELECT token FROM fence"); !slices.Equal(got, []uint64{5}) {
		t.Errorf("the stored tokens are %d; then a SELECT would do", got)
	}
}
