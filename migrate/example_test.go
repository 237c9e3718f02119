package migrate_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/migrate"
)

// An election moves while its leader works. In production the two coordinators are clusters, the
// operator is "succession migrate", and each process is restarted with both of them first.
func Example() {
	ctx := context.Background()
	from, to := memory.New(nil), memory.New(nil)
	both := func(id string) *migrate.Backend {
		return migrate.New(from.Client(id), to.Client(id), &migrate.Options{From: "memory:from", To: "memory:to", Logger: slog.New(slog.DiscardHandler)})
	}
	operator := both("operator")
	defer operator.Close()
	if _, err := operator.Begin(ctx, "reports"); err != nil {
		fmt.Println(err)
		return
	}

	b := both("web-1")
	defer b.Close()
	term, err := elect.New(b, "reports", nil).Campaign(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer term.Resign(ctx)

	status, err := operator.Cutover(ctx, "reports")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(status.Phase, "and the same term goes on:", term.Check() == nil)
	// Output: moved and the same term goes on: true
}
