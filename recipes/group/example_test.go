package group_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/recipes/group"
)

// Each worker says how far it is. Whoever wants to know looks.
func ExampleGroup_Members() {
	ctx := context.Background()
	c := memory.New(nil)
	worker, console := c.Client("worker"), c.Client("console")
	defer worker.Close()
	defer console.Close()

	p, err := group.New(worker, "workers", &elect.Options{ID: "web-1", Value: "idle"}).Join(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Leave(ctx)
	workers := group.New(console, "workers", nil)
	for _, progress := range []string{"", "10%", "20%"} {
		if progress != "" {
			if err := p.Set(ctx, progress); err != nil {
				fmt.Println(err)
				return
			}
		}
		members, err := workers.Members(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, m := range members {
			fmt.Println(m.ID, m.Value)
		}
	}
	// Output:
	// web-1 idle
	// web-1 10%
	// web-1 20%
}

// A load balancer follows who is present, and stops when nobody is.
func ExampleGroup_Follow() {
	ctx := context.Background()
	c := memory.New(nil)
	server, balancer := c.Client("server"), c.Client("balancer")
	defer server.Close()
	defer balancer.Close()

	p, err := group.New(server, "servers", &elect.Options{ID: "web-1", Value: "10.0.0.1:80"}).Join(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	for members, err := range group.New(balancer, "servers", nil).Follow(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(members)
		if len(members) == 0 {
			return
		}
		p.Leave(ctx)
	}
	// Output:
	// [{web-1 10.0.0.1:80 1}]
	// []
}

// A collector takes its share of the sources, and joins again when it has been away.
func ExamplePresence_Assign() {
	ctx, cancel := context.WithCancel(context.Background())
	b := memory.New(nil).Client("web-1")
	defer b.Close()

	sources := []string{"mail", "web"}
	var collecting sync.WaitGroup
	collecting.Add(len(sources))
	go func() { // a signal, such as SIGTERM
		collecting.Wait()
		cancel()
	}()
	g := group.New(b, "collectors", &elect.Options{ID: "web-1"})
	err := g.Run(ctx, func(ctx context.Context, p *group.Presence) error {
		return p.Assign(ctx, sources, func(ctx context.Context, source string, t *elect.Term) error {
			// Collect here, until ctx ends, and give t.Token() to the store.
			collecting.Done()
			<-ctx.Done()
			return nil
		})
	})
	fmt.Println(err)
	owners, err := g.Owners(context.Background(), sources...)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, o := range owners {
		fmt.Printf("%s was collected by %s last, and is by nobody now: %v\n", o.Item, o.ID, !o.Held)
	}
	// Output:
	// context canceled
	// mail was collected by web-1 last, and is by nobody now: true
	// web was collected by web-1 last, and is by nobody now: true
}
