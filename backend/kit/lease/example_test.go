package lease_test

import (
	"fmt"
	"time"

	"github.com/succession-dev/succession/backend/kit/clock"
	"github.com/succession-dev/succession/backend/kit/lease"
)

// A heartbeat moves the deadline ahead from when it was sent, and not from when it was answered.
func Example() {
	var l lease.Lease
	fmt.Println("a session that was never confirmed has time left:", l.Left() > 0)
	sent := clock.Now()
	// here the request goes out and is answered
	l.Extend(sent, 10*time.Second)
	fmt.Println("time is left:", l.Left() > 0, "and at most the TTL:", l.Left() <= 10*time.Second)
	l.End()
	fmt.Println("after the end:", l.Left() > 0)
	// Output:
	// a session that was never confirmed has time left: false
	// time is left: true and at most the TTL: true
	// after the end: false
}
