//go:build !race

package consul_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/consul"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// occupied returns how much memory and how many goroutines this process has.
func occupied() (bytes, goroutines int64) {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse), int64(runtime.NumGoroutine())
}

// A waiter costs little memory, and one goroutine, its caller's, if its process has others in
// the line. It is measured alone, as other tests would be counted too, and without the race
// detector, which takes as much again.
func TestMemoryOfAWaiter(t *testing.T) {
	const n = 150
	addr := server(t)
	for _, test := range []struct {
		name              string
		line              func(i int) string
		bytes, goroutines int64
	}{
		{"in one line", func(int) string { return "" }, 16 << 10, 1},
		{"in a line each", func(i int) string { return fmt.Sprint("-", i) }, 40 << 10, 4},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := &consul.Options{TTL: time.Hour}
			other, s := session(t, addr, o), session(t, addr, o)
			name := coordtest.Name(t)
			var members []backend.Member
			var places []backend.Place
			for i := range n {
				line := name + test.line(i)
				if i == 0 || test.line(i) != "" {
					join(t, other, line, "")
				}
				m := join(t, s, line, "")
				p, err := s.Ahead(t.Context(), m)
				if err != nil {
					t.Fatal(err)
				}
				members, places = append(members, m), append(places, p)
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, n)
			bytes, goroutines := occupied()
			for i := range n {
				go func() {
					ended <- s.(backend.PlaceWatcher).WatchPlace(ctx, members[i], &places[i])
				}()
			}
			time.Sleep(2 * time.Second) // nothing tells that all queries are under way
			b, g := occupied()
			t.Logf("a waiter has %d bytes and %.1f goroutines", (b-bytes)/n, float64(g-goroutines)/n)
			if (b-bytes)/n > test.bytes || g-goroutines > n*test.goroutines+20 {
				t.Errorf("%d waiters have %d bytes and %d goroutines; want at most %d and %d each", n, b-bytes, g-goroutines, test.bytes, test.goroutines)
			}
			cancel()
			for range n {
				<-ended
			}
		})
	}
}
