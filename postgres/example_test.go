package postgres_test

import (
	"context"
	"errors"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/postgres"
)

// A candidate of a database, in which EnsureSchema, or an operator, has made the schema.
func Example() {
	cfg, err := pgconn.ParseConfig("host=h1,h2 user=app dbname=app target_session_attrs=read-write")
	if err != nil {
		log.Print(err)
		return
	}
	b, err := postgres.New(cfg, nil)
	if err != nil {
		log.Print(err)
		return
	}
	defer b.Close()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err = elect.New(b, "reports", nil).Run(ctx, func(ctx context.Context, term *elect.Term) error {
		log.Print("leading with token ", term.Token())
		<-ctx.Done() // the work, which ends when the term does
		return nil
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		log.Print(err)
	}
}
