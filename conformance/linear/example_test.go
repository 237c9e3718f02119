package linear_test

import (
	"context"
	"fmt"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance"
	"github.com/succession-dev/succession/conformance/linear"
	"github.com/succession-dev/succession/memory"
)

// A second of calls of several clients is recorded, and then an order is looked for in which each
// answer is right. For a real coordinator, wire faults into the harness and let it go on for longer.
func ExampleRecord() {
	c := memory.New(nil)
	harness := conformance.Harness{
		Name: "memory",
		TTL:  time.Second,
		Open: func(context.Context) (backend.Backend, error) { return c.Client("one of several"), nil },
	}
	all, err := linear.Record(context.Background(), harness, &linear.Options{For: time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, h := range all {
		if err := h.Check(); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println("histories:", len(all))
	// Output: histories: 3
}
