package consul_test

import (
	"context"
	"errors"
	"log"
	"os"
	"os/signal"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/consul"
	"github.com/succession-dev/succession/elect"
)

// A candidate of the local agent, in the folder app of the key-value store.
func Example() {
	b, err := consul.New(api.DefaultConfig(), &consul.Options{Prefix: "app"})
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
