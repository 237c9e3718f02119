// Transfer is a service of which one instance moves money, from the table checking to the table
// savings, and writes down each transfer. The election is in the same database as the money: each
// transaction is guarded, so one of an instance that does not lead any more changes nothing,
// however late it comes. Copy this file, and replace transfer. With a PostgreSQL and nothing else, in this
// folder:
//
//	createdb bank
//	go run . -setup -database "dbname=bank"
//	go run . -database "dbname=bank" -url "postgres:///bank"    and the same in other terminals
//
// Kill the first one, or stop it with ^Z and let it go on with fg: the next one leads, and not one
// transfer is done twice.
package main

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/postgres"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	url := flag.String("url", "postgres:///bank", "the coordinator, in the database with the money")
	database := flag.String("database", "dbname=bank", "that database, as PostgreSQL's clients have it")
	pause := flag.Duration("pause", time.Second, "the time between two transfers")
	setup := flag.Bool("setup", false, "make the tables, and end")
	flag.Parse()
	var err error
	if *setup {
		err = makeTables(ctx, *database)
	} else {
		err = run(ctx, *url, *database, *pause)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		slog.Error("transfer", "err", err)
		os.Exit(1)
	}
}

// run leads now and then, until ctx ends.
func run(ctx context.Context, url, database string, pause time.Duration) error {
	b, err := succession.Open(url)
	if err != nil {
		return err
	}
	defer b.Close()
	db, err := pgxpool.New(ctx, database)
	if err != nil {
		return err
	}
	defer db.Close()
	return elect.New(b, "transfers", nil).Run(ctx, func(ctx context.Context, term *elect.Term) error {
		slog.Info("leading", "token", term.Token())
		for ctx.Err() == nil {
			if err := transfer(ctx, db, term); postgres.Deposed(err) {
				slog.Info("another instance leads by now, and nothing was moved")
			} else if err != nil && ctx.Err() == nil {
				// If the connection broke at the commit, one may have been.
				slog.Warn("the table transfers tells whether a coin was moved", "err", err)
			}
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
		}
		return ctx.Err()
	})
}

// transfer moves one coin, if the term still lasts when it commits.
func transfer(ctx context.Context, db *pgxpool.Pool, term *elect.Term) error {
	return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		// What an instance that was stopped here has locked, it locks no longer than this.
		if _, err := tx.Exec(ctx, "SET LOCAL idle_in_transaction_session_timeout = '2s'"); err != nil {
			return err
		}
		if err := postgres.Guard(ctx, tx, "", term.Member()); err != nil {
			return err
		}
		for _, statement := range []string{
			"UPDATE checking SET coins = coins - 1",
			"UPDATE savings SET coins = coins + 1",
		} {
			if _, err := tx.Exec(ctx, statement); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, "INSERT INTO transfers (savings, token) SELECT coins, $1 FROM savings", int64(term.Token()))
		return err
	})
}

// makeTables makes the accounts, with a thousand coins in one of them.
func makeTables(ctx context.Context, database string) error {
	db, err := pgx.Connect(ctx, database)
	if err != nil {
		return err
	}
	defer db.Close(ctx)
	_, err = db.Exec(ctx, `
		CREATE TABLE checking AS SELECT 1000 AS coins;
		CREATE TABLE savings AS SELECT 0 AS coins;
		CREATE TABLE transfers (savings int PRIMARY KEY, token bigint NOT NULL)`)
	return err
}
