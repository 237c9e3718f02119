package barrier_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/recipes/barrier"
)

// Three machines warm up, and begin to send load at the same moment.
func ExampleBarrier() {
	ctx := context.Background()
	c := memory.New(nil)
	var machines sync.WaitGroup
	for i := range 3 {
		machines.Go(func() {
			b := c.Client(fmt.Sprint("machine-", i)) // or succession.Connect(ctx, os.Getenv("SUCCESSION_URL"))
			defer b.Close()

			// warm up
			if err := barrier.New(b, "load-test/start", 3, nil).Wait(ctx); err != nil {
				fmt.Println(err)
				return
			}
			fmt.Println("all three are warm")
		})
	}
	machines.Wait()
	// Output:
	// all three are warm
	// all three are warm
	// all three are warm
}

// Two workers compute a part each. When both are done, each sees the part of the other.
func ExampleDoubleBarrier() {
	ctx := context.Background()
	c := memory.New(nil)
	var workers sync.WaitGroup
	for _, part := range []string{"left", "right"} {
		workers.Go(func() {
			b := c.Client(part)
			defer b.Close()

			in, err := barrier.NewDouble(b, "sort", 2, nil).Enter(ctx)
			if err != nil {
				fmt.Println(err)
				return
			}
			if _, err := in.Put(ctx, "sort-"+part, []byte("sorted"), backend.Any); err != nil {
				fmt.Println(err) // it was lost: the other one may have gone on without it
			}
			if err := in.Leave(ctx); err != nil {
				fmt.Println(err)
				return
			}
			for _, part := range []string{"left", "right"} {
				r, err := in.Get(ctx, "sort-"+part)
				fmt.Println(part, string(r.Value), err)
			}
		})
	}
	workers.Wait()
	// Unordered output:
	// left sorted <nil>
	// right sorted <nil>
	// left sorted <nil>
	// right sorted <nil>
}
