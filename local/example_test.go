package local_test

import (
	"context"
	"errors"
	"log"
	"os"
	"os/signal"

	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/local"
)

// Processes of one machine elect a leader through a folder, without a server.
func Example() {
	b, err := local.New("/run/app", nil)
	if err != nil {
		log.Print(err)
		return
	}
	defer b.Close()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
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
