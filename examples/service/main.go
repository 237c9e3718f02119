// Service is a service of which one instance leads: with health and metrics, and a shutdown that hands
// leadership over at once. Copy it, and replace work. docs/deploying.md takes it to Kubernetes. In this folder:
//
//	go run . -http 127.0.0.1:8081    and in another terminal
//	go run . -http 127.0.0.1:8082
//	go run . -url etcd://localhost:2379/app
//
// Stop the first one with ^C: the second leads at once.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/succession-dev/succession"
	_ "github.com/succession-dev/succession/consul"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/trace"
	_ "github.com/succession-dev/succession/etcd"
	_ "github.com/succession-dev/succession/local"
	"github.com/succession-dev/succession/metrics"
	"github.com/succession-dev/succession/metrics/health"
	_ "github.com/succession-dev/succession/zookeeper"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	url := flag.String("url", cmp.Or(os.Getenv("SUCCESSION_URL"), "local:"), "the coordinator; the default is $SUCCESSION_URL, else local:")
	name := flag.String("election", "reports", "what is led")
	id := flag.String("id", os.Getenv("POD_NAME"), "who this instance is; the default is $POD_NAME, else host and process")
	address := flag.String("http", ":8080", "where health and metrics are served")
	flag.Parse()
	slog.SetDefault(slog.New(slog.NewJSONHandler(os.Stderr, nil)))
	if err := run(ctx, *url, *name, *id, *address); err != nil && !errors.Is(err, context.Canceled) {
		slog.Error("service", "err", err)
		os.Exit(1)
	}
}

// run leads now and then, until ctx ends.
func run(ctx context.Context, url, name, id, address string) error {
	b, err := succession.Open(url)
	if err != nil {
		return err
	}
	defer b.Close()
	counts, live, ready := metrics.New(nil), health.NewLive(0), health.NewReady()
	e := elect.New(b, name, &elect.Options{ID: id, Logger: slog.Default(), Trace: trace.Tee(counts.Trace, live.Trace, ready.Trace)})

	http.Handle("/metrics", counts)
	http.Handle("/live", live)               // restart the process if this fails
	http.Handle("/ready", ready)             // it stands in line, and can take over
	http.Handle("/leader", health.Leader(e)) // route by this, but never make it a readiness probe
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	slog.Info("serving", "address", l.Addr().String())
	// Whoever is slow to ask, or to read, keeps nothing for ever.
	server := http.Server{ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute}
	defer server.Close() // last, so that probes are answered while the work ends
	go server.Serve(l)

	return e.Run(ctx, work)
}

// work is what one instance does at a time. It returns soon after ctx has ended: leadership was lost,
// or the process is to stop, and the next in line waits for that.
func work(ctx context.Context, t *elect.Term) error {
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	for {
		if err := t.Check(); err != nil { // just before what must not be done twice
			return err
		}
		slog.Info("a report is sent", "token", t.Token()) // send the token, so that the receiver can refuse an old one
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}
