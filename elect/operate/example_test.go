package operate_test

import (
	"context"
	"fmt"

	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/memory"
)

// An operator closes an election while its disk is replaced. Its leader is asked to resign, and nobody leads.
func Example() {
	ctx := context.Background()
	c := memory.New(nil)
	service, ops := c.Client("web-1"), c.Client("ops")
	defer service.Close()
	defer ops.Close()

	term, err := elect.New(service, "reports", &elect.Options{ID: "web-1"}).Campaign(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	resigned := make(chan error, 1)
	go func() {
		<-term.Context().Done() // the work ends
		fmt.Println(context.Cause(term.Context()))
		resigned <- term.Resign(ctx)
	}()

	op := operate.New(ops, "reports", "anna")
	if _, err := op.Pause(ctx, "the disk is replaced"); err != nil {
		fmt.Println(err)
		return
	}
	<-resigned
	_, err = elect.New(ops, "reports", nil).Leader(ctx)
	fmt.Println(err)
	if _, err := op.Resume(ctx, nil); err != nil {
		fmt.Println(err)
	}
	// Output:
	// leadership lost of reports (token 1): asked to resign by anna: the disk is replaced
	// nobody leads: the election is paused by anna: the disk is replaced
}
