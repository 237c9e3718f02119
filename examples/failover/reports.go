// Package failover is code that leads, with a test of its failover to copy: failover_test.go. Nothing
// in it waits, and nothing has to be installed.
package failover

import (
	"context"
	"time"

	"github.com/succession-dev/succession/elect"
)

// SendReports sends a report each minute while this process leads. It blocks until ctx ends.
func SendReports(ctx context.Context, e *elect.Election, send func(token uint64)) error {
	return e.Run(ctx, func(ctx context.Context, t *elect.Term) error {
		tick := time.NewTicker(time.Minute)
		defer tick.Stop()
		for t.Check() == nil {
			send(t.Token())
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-tick.C:
			}
		}
		return context.Cause(ctx)
	})
}
