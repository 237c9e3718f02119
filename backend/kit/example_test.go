package kit_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/backend/kit/backoff"
)

// A request whose answer may be lost is sent again. What does not pass by itself is told at once.
// Package example, below this one, is a whole driver.
func ExampleRetry() {
	ctx := context.Background()
	sent := 0
	send := func(context.Context) (string, error) {
		if sent++; sent < 3 {
			return "", fmt.Errorf("%w: connection reset", backend.ErrUnavailable)
		}
		return "the answer", nil
	}
	passing := func(err error) bool { return errors.Is(err, backend.ErrUnavailable) }
	answer, err := kit.Retry(ctx, backoff.New(ctx), passing, send)
	fmt.Println(answer, err, "after", sent, "requests")

	_, err = kit.Retry(ctx, backoff.New(ctx), passing, func(context.Context) (string, error) {
		return "", fmt.Errorf("%w: no such role", backend.ErrDenied)
	})
	fmt.Println(err)
	// Output:
	// the answer <nil> after 3 requests
	// permission denied: no such role
}
