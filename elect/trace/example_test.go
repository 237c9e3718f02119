package trace_test

import (
	"context"
	"fmt"

	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/memory"
)

// The steps of a term, from the session to the end.
func Example() {
	b := memory.New(nil).Client("web-1")
	defer b.Close()
	e := elect.New(b, "reports", &elect.Options{ID: "web-1", Trace: func(ev trace.Event) {
		if ev.Kind != trace.Heartbeat { // it may come at any time
			fmt.Println(ev.Election, ev.Kind)
		}
	}})
	if err := e.Run(context.Background(), func(context.Context, *elect.Term) error { return nil }); err != nil {
		fmt.Println(err)
	}
	// Output:
	// reports started
	// reports session opened
	// reports joined
	// reports elected
	// reports ended
	// reports left
	// reports finished
}
