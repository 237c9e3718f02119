package backoff_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/succession-dev/succession/backend/kit/backoff"
)

// A loop tries again with pauses that grow. Its error says why the last try failed.
func Example() {
	ctx := context.Background()
	tries := 0
	try := func() error {
		if tries++; tries < 3 {
			return errors.New("not yet")
		}
		return nil
	}
	wait := backoff.New(ctx)
	for {
		err := try()
		if err == nil {
			break
		}
		if err := wait.After(ctx, err); err != nil { // ctx has ended
			fmt.Println(err)
			return
		}
	}
	fmt.Println("tries:", tries)
	// Output: tries: 3
}
