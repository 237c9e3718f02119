package elect_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/memory"
)

// BenchmarkHandover counts what a handover allocates, in all goroutines and with the coordinator
// in memory: a leader resigns, the next one is elected, and one more joins at the end of the line.
func BenchmarkHandover(b *testing.B) {
	for _, n := range []int{2, 5, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			client := memory.New(nil).Client("a")
			defer client.Close()
			ctx, cancel := context.WithCancel(b.Context())
			terms := make(chan *elect.Term, n)
			var campaigns sync.WaitGroup
			defer campaigns.Wait()
			defer cancel()
			joined := make(chan struct{}, n)
			e := elect.New(client, "reports", &elect.Options{Trace: func(ev trace.Event) {
				if ev.Kind == trace.Joined {
					joined <- struct{}{}
				}
			}})
			join := func() {
				campaigns.Go(func() {
					if t, err := e.Campaign(ctx); err == nil {
						terms <- t
					}
				})
				<-joined
			}
			for range n {
				join()
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := (<-terms).Resign(ctx); err != nil {
					b.Fatal(err)
				}
				join()
			}
		})
	}
}
