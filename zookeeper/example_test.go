package zookeeper_test

import (
	"context"
	"errors"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/zookeeper"
)

// A candidate of an ensemble, in one line with candidates of Curator's LeaderLatch.
func Example() {
	b, err := zookeeper.New([]string{"h1:2181", "h2:2181", "h3:2181"}, &zookeeper.Options{
		Prefix: "/app",
		TTL:    15 * time.Second,
		As:     zookeeper.CuratorLatch,
	})
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
