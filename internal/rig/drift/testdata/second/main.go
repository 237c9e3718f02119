// The program waits for a second of its own, and prints how long that was by its two clocks, to a tenth.
package main

import (
	"fmt"
	"time"

	"github.com/succession-dev/succession/backend/kit/clock"
)

func main() {
	began, mono := clock.Now(), time.Now()
	for time.Since(mono) < time.Second {
		time.Sleep(time.Millisecond)
	}
	fmt.Println(clock.Since(began).Round(100*time.Millisecond), time.Since(mono).Round(100*time.Millisecond))
}
