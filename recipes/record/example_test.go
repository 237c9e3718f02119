package record_test

import (
	"context"
	"fmt"

	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/recipes/record"
)

// Limits are what the processes of a service may take.
type Limits struct {
	Connections int `json:"connections"`
}

// A configuration is pushed to whoever follows it.
func ExampleValue_Follow() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c := memory.New(nil)
	operator, web := c.Client("operator"), c.Client("web-1")
	defer operator.Close()
	defer web.Close()

	limits := record.New(operator, "config/limits", record.JSON[Limits]())
	if _, err := limits.Set(ctx, Limits{Connections: 10}); err != nil {
		fmt.Println(err)
		return
	}
	for e, err := range record.New(web, "config/limits", record.JSON[Limits]()).Follow(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("connections:", e.Value.Connections)
		if e.Value.Connections == 20 {
			return
		}
		if _, err := limits.CompareAndSet(ctx, e.Version, Limits{Connections: 20}); err != nil {
			fmt.Println(err)
			return
		}
	}
	// Output:
	// connections: 10
	// connections: 20
}

// Each leader writes itself into a list, so that it is known later who led when.
func ExampleValue_SetAs() {
	ctx := context.Background()
	b := memory.New(nil).Client("web-1")
	defer b.Close()

	history := record.New(b, "reports-leaders", record.JSON[[]string]())
	for _, id := range []string{"web-1", "web-2"} {
		err := elect.New(b, "reports", &elect.Options{ID: id}).Run(ctx, func(ctx context.Context, t *elect.Term) error {
			e, err := history.Get(ctx)
			if err != nil {
				return err
			}
			_, err = history.SetAs(ctx, t, e.Version, append(e.Value, id))
			return err
		})
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	e, err := history.Get(ctx)
	fmt.Println(e.Value, err)
	// Output: [web-1 web-2] <nil>
}
