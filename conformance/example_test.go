package conformance_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance"
	"github.com/succession-dev/succession/internal/rig/lane"
)

// TestToy is all that somebody must write to exercise their own backend (toy_test.go) by every
// rule that needs no fault.
func TestToy(t *testing.T) {
	lane.Real(t)
	toy := newToy()
	conformance.Run(t, conformance.Harness{
		Name: "toy",
		TTL:  time.Second,
		Open: func(context.Context) (backend.Backend, error) { return toy.dial(), nil },
	})
}

// The suite exercises a backend that has neither records nor pins nor deadlines, with a harness
// that provides no faults: rules that need one are counted as not wired. The file toy_test.go
// has the backend, with the method dial that makes a client.
func ExampleCheck() {
	toy := newToy()
	report := conformance.Check(context.Background(), conformance.Harness{
		Name: "toy",
		TTL:  10 * time.Second,
		Open: func(context.Context) (backend.Backend, error) { return toy.dial(), nil },
		Only: []string{"L1.end", "L1.lost-answer", "Pin.left"},
	}, nil)
	for _, r := range report.Results {
		switch r.ID {
		case "L1.end", "L1.lost-answer", "Pin.left":
			fmt.Println(r.ID, r.Status)
		}
	}
	fmt.Println(report.Err())
	// Output:
	// L1.end passed
	// L1.lost-answer not wired
	// Pin.left impossible
	// <nil>
}
