package kubernetes_test

import (
	"context"
	"errors"
	"log"
	"os"
	"os/signal"

	"k8s.io/client-go/rest"

	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/kubernetes"
)

// A Pod is a candidate in its namespace. Its ServiceAccount needs the rights that docs/kubernetes.md names.
func Example() {
	cfg, err := rest.InClusterConfig()
	if err != nil {
		log.Print(err)
		return
	}
	b, err := kubernetes.New(cfg, nil) // in the namespace of the Pod
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
