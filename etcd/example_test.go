package etcd_test

import (
	"context"
	"errors"
	"log"
	"os"
	"os/signal"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/etcd"
)

// A program that has a client of etcd leads with it.
func Example() {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"h1:2379", "h2:2379", "h3:2379"}, DialKeepAliveTime: 10 * time.Second})
	if err != nil {
		log.Print(err)
		return
	}
	defer client.Close()
	b, err := etcd.New(client, &etcd.Options{Prefix: "app/"})
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
