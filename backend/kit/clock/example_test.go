package clock_test

import (
	"fmt"
	"time"

	"github.com/succession-dev/succession/backend/kit/clock"
)

// The time since an instant counts what the machine has slept.
func Example() {
	began := clock.Now()
	time.Sleep(time.Millisecond)
	fmt.Println("a millisecond has passed:", clock.Since(began) >= time.Millisecond)
	// Output: a millisecond has passed: true
}
