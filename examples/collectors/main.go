// Collectors divides log sources over processes that come and go: the log collectors of
// ZooKeeper's documents.
//
//	go run ./examples/collectors
//	go run ./examples/collectors -url etcd://localhost:2379 -collectors 5 -rounds 20
//
// It starts collectors, which are processes of this program, on a coordinator. Each joins a group,
// takes its share of the sources, and records how far it has come in each, so that whoever gets the
// source next goes on from there. Again and again one of the collectors is killed, or leaves, and
// comes back. At each change the run prints who collects what. At the end it prints how often a
// source has moved, and that none ever had two collectors at once.
//
// collect.go is what a collector does. desk.go is how the run watches the collectors.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/succession-dev/succession"
	_ "github.com/succession-dev/succession/consul"
	_ "github.com/succession-dev/succession/etcd"
	"github.com/succession-dev/succession/examples/internal/child"
	_ "github.com/succession-dev/succession/local"
	_ "github.com/succession-dev/succession/zookeeper"
)

var sources = []string{"auth", "cron", "daemon", "kernel", "mail", "ssh", "user", "web"}

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	url := flag.String("url", "", "the coordinator, such as etcd://localhost:2379; empty is a temporary folder of this machine")
	collectors := flag.Int("collectors", 3, "how many there are")
	rounds := flag.Int("rounds", 6, "how often one goes and comes back")
	pause := flag.Duration("pause", time.Second, "the time between two changes")
	id := flag.String("collector", "", "used by the run itself: be the collector with this ID")
	flag.Parse()

	var err error
	if *id != "" {
		err = collector(ctx, *url, *id)
	} else {
		err = run(ctx, os.Stdout, *url, *collectors, *rounds, *pause)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "collectors:", err)
		os.Exit(1)
	}
}

// run is the whole example. It fails if it sees what package group promises not to happen.
func run(ctx context.Context, out io.Writer, url string, collectors, rounds int, pause time.Duration) error {
	if collectors < 2 {
		return errors.New("two collectors are needed, so that one can go")
	}
	url, remove, err := child.URL(url)
	if err != nil {
		return err
	}
	defer remove()
	b, err := succession.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer b.Close()
	d, err := newDesk(ctx, b, out)
	if err != nil {
		return err
	}
	told, tells, err := os.Pipe()
	if err != nil {
		return err
	}
	defer tells.Close()
	go d.listen(told)

	var all []*child.Process
	defer func() {
		for _, p := range all {
			p.Stop()
		}
	}()
	for i := range collectors {
		id := fmt.Sprint("collector-", i+1)
		p := &child.Process{ID: id, Args: []string{"-collector", id, "-url", url}, Out: tells}
		if err := p.Start(); err != nil {
			return err
		}
		all = append(all, p)
		if err := d.settles(ctx, p.ID, "has come", i+1); err != nil {
			return err
		}
	}
	for round := range rounds {
		p, before, how := all[round%collectors], d.owners(), "is killed"
		time.Sleep(pause)
		if round%2 == 0 {
			d.excuses(p.ID)
			p.Crash()
		} else {
			how = "leaves"
			p.Stop()
		}
		if err := d.settles(ctx, p.ID, how, collectors-1); err != nil {
			return err
		}
		time.Sleep(pause)
		if err := p.Start(); err != nil {
			return err
		}
		if err := d.settles(ctx, p.ID, "is back", collectors); err != nil {
			return err
		}
		if !maps.Equal(before, d.owners()) {
			return fmt.Errorf("%s is back and does not find its own sources again", p.ID)
		}
	}
	return d.figures(ctx)
}

// collector is what a collector's process runs. It ends when its standard input ends.
func collector(ctx context.Context, url, id string) error {
	ctx, cancel := child.Context(ctx)
	defer cancel()
	b, err := succession.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer b.Close()
	err = collect(ctx, b, id, func(what, source string, token uint64) {
		fmt.Println(what, id, source, token)
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}
