package elect_test

import (
	"context"
	"fmt"

	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/memory"
)

// The function runs only while this process leads, and its context ends when
// leadership does. Here it does its work and returns, and Run resigns.
func ExampleElection_Run() {
	ctx := context.Background()
	b := memory.New(nil).Client("web-1") // or succession.Connect(ctx, os.Getenv("SUCCESSION_URL"))
	defer b.Close()

	err := elect.New(b, "reports", nil).Run(ctx, func(ctx context.Context, t *elect.Term) error {
		fmt.Println("leading with token", t.Token())
		return nil
	})
	fmt.Println("Run returned", err)
	// Output:
	// leading with token 1
	// Run returned <nil>
}

// A leader writes down how far it got. The write is refused once another has taken
// over, even if this process does not know that yet.
func ExampleTerm_Put() {
	ctx := context.Background()
	b := memory.New(nil).Client("web-1")
	defer b.Close()

	t, err := elect.New(b, "reports", nil).Campaign(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer t.Resign(ctx)

	at, err := t.Get(ctx, "reports-position")
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = t.Put(ctx, "reports-position", []byte("1042"), at.Version)
	fmt.Println("written:", err == nil)
	// Output: written: true
}

// An observer is told who leads, and when nobody does. It does not stand in line.
func ExampleElection_Observe() {
	ctx := context.Background()
	c := memory.New(nil)
	b, o := c.Client("web-1"), c.Client("dashboard")
	defer b.Close()
	defer o.Close()

	t, err := elect.New(b, "reports", &elect.Options{ID: "web-1"}).Campaign(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	for s, err := range elect.New(o, "reports", nil).Observe(ctx) {
		switch {
		case err != nil:
			fmt.Println(err)
		case s.Vacant():
			fmt.Println("nobody leads")
			return
		default:
			fmt.Println(s.Leader.ID, "leads")
			t.Resign(ctx)
		}
	}
	// Output:
	// web-1 leads
	// nobody leads
}
