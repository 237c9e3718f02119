// Directory is configuration and naming, as in ZooKeeper's documents: servers that write their
// addresses under a name, clients that share their requests among the addresses that are there, and
// a setting that all servers follow.
//
//	go run ./examples/directory
//	go run ./examples/directory -url consul://localhost:8500
//
// Each server and each client has a connection of its own to the coordinator. The run fails if a
// client does not see an address, or a server a setting, soon after it was written.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/succession-dev/succession"
	_ "github.com/succession-dev/succession/consul"
	_ "github.com/succession-dev/succession/etcd"
	"github.com/succession-dev/succession/examples/internal/child"
	_ "github.com/succession-dev/succession/local"
	"github.com/succession-dev/succession/recipes/record"
	_ "github.com/succession-dev/succession/zookeeper"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	url := flag.String("url", "", "the coordinator, such as etcd://localhost:2379; empty is a temporary folder of this machine")
	flag.Parse()
	if err := run(ctx, os.Stdout, *url); err != nil {
		fmt.Fprintln(os.Stderr, "directory:", err)
		os.Exit(1)
	}
}

// A settings is what all servers follow.
type settings struct {
	Greeting string `json:"greeting"`
}

func names(b succession.Backend) *record.Value[[]string] {
	return record.New(b, "directory-names/app1", record.JSON[[]string]())
}

func config(b succession.Backend) *record.Value[settings] {
	return record.New(b, "directory-config/app1", record.JSON[settings]())
}

// A server answers with the greeting of the newest settings.
type server struct {
	address string
	now     atomic.Pointer[settings]
}

func (s *server) answer() string { return s.now.Load().Greeting + " from " + s.address }

// follow keeps what a record says in now, until ctx ends.
func follow[T any](ctx context.Context, v *record.Value[T], now *atomic.Pointer[T]) {
	for e, err := range v.Follow(ctx) {
		if err == nil {
			now.Store(&e.Value)
		}
	}
}

// edit changes the list of addresses, whoever else changes it at the same time.
func edit(ctx context.Context, b succession.Backend, change func([]string) []string) error {
	_, err := names(b).Update(ctx, func(addresses []string) ([]string, error) { return change(addresses), nil })
	return err
}

// run is the whole example.
func run(ctx context.Context, out io.Writer, url string) error {
	url, remove, err := child.URL(url)
	if err != nil {
		return err
	}
	defer remove()
	ctx, cancel := context.WithCancel(ctx)
	var following sync.WaitGroup
	defer following.Wait()
	defer cancel()
	open := func() (succession.Backend, error) {
		b, err := succession.Connect(ctx, url)
		if err == nil {
			context.AfterFunc(ctx, func() { b.Close() })
		}
		return b, err
	}

	client, err := open()
	if err != nil {
		return err
	}
	if _, err := config(client).Set(ctx, settings{"hello"}); err != nil {
		return err
	}
	if err := edit(ctx, client, func([]string) []string { return nil }); err != nil {
		return err
	}
	var known atomic.Pointer[[]string]
	following.Go(func() { follow(ctx, names(client), &known) })

	servers := make(map[string]*server)
	add := func(address string) error {
		b, err := open()
		if err != nil {
			return err
		}
		s := &server{address: address}
		following.Go(func() { follow(ctx, config(b), &s.now) })
		servers[address] = s
		return edit(ctx, b, func(all []string) []string {
			if slices.Contains(all, address) { // an answer was lost
				return all
			}
			return append(all, address)
		})
	}
	// asks prints the answers of all that the client knows, once these are as many, with this greeting.
	asks := func(when, greeting string, n int) error {
		fmt.Fprintln(out, when)
		if err := soon(ctx, func() bool {
			all := known.Load()
			return all != nil && len(*all) == n && !slices.ContainsFunc(*all, func(a string) bool {
				now := servers[a].now.Load()
				return now == nil || now.Greeting != greeting
			})
		}); err != nil {
			return fmt.Errorf("%s: %w", when, err)
		}
		for _, address := range *known.Load() {
			fmt.Fprintln(out, "   ", servers[address].answer())
		}
		return nil
	}

	for _, step := range []func() error{
		func() error { return add("10.0.0.1:80") },
		func() error { return asks("a server", "hello", 1) },
		func() error { return add("10.0.0.2:80") },
		func() error { return asks("two servers", "hello", 2) },
		func() error { _, err := config(client).Set(ctx, settings{"good evening"}); return err },
		func() error { return asks("another setting", "good evening", 2) },
		func() error {
			return edit(ctx, client, func(all []string) []string {
				return slices.DeleteFunc(all, func(a string) bool { return a == "10.0.0.1:80" })
			})
		},
		func() error { return asks("a server has gone", "good evening", 1) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// soon waits until cond holds.
func soon(ctx context.Context, cond func() bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 20*time.Second, errors.New("not seen within 20 s"))
	defer cancel()
	for !cond() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(5 * time.Millisecond):
		}
	}
	return nil
}
