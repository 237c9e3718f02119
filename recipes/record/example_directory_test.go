package record_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/recipes/record"
)

// A picker hands out the addresses behind a name in turn, and follows them as they change.
type picker struct {
	addresses atomic.Pointer[[]string]
	next      atomic.Uint64
}

// follow keeps the addresses up to date until ctx ends. It calls changed after each change.
func (p *picker) follow(ctx context.Context, name *record.Value[[]string], changed func()) error {
	for e, err := range name.Follow(ctx) {
		if err != nil {
			return err
		}
		p.addresses.Store(&e.Value)
		changed()
	}
	return nil
}

// pick returns the next address, or false if there is none.
func (p *picker) pick() (string, bool) {
	addresses := p.addresses.Load()
	if addresses == nil || len(*addresses) == 0 {
		return "", false
	}
	n := p.next.Add(1) - 1
	return (*addresses)[n%uint64(len(*addresses))], true
}

// A directory: a name stands for addresses, servers write themselves into it, and clients share
// their requests among those that are there.
func Example_directory() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c := memory.New(nil)
	server, client := c.Client("server"), c.Client("client")
	defer server.Close()
	defer client.Close()

	name := record.New(server, "names/app1", record.JSON[[]string]())
	add := func(address string) {
		_, err := name.Update(ctx, func(addresses []string) ([]string, error) {
			if slices.Contains(addresses, address) { // an answer was lost
				return addresses, nil
			}
			return append(addresses, address), nil
		})
		if err != nil {
			fmt.Println(err)
		}
	}
	add("10.0.0.1:80")

	var p picker
	changes := make(chan int)
	go p.follow(ctx, record.New(client, "names/app1", record.JSON[[]string]()), func() { changes <- 0 })
	<-changes
	add("10.0.0.2:80")
	<-changes
	for range 4 {
		fmt.Println(p.pick())
	}
	// Output:
	// 10.0.0.1:80 true
	// 10.0.0.2:80 true
	// 10.0.0.1:80 true
	// 10.0.0.2:80 true
}
