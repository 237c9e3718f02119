package barrier_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/rig/bubble"
	"github.com/succession-dev/succession/internal/rig/lane"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/recipes/barrier"
)

// disturb has faults strike the clients at random until ctx ends, and then heals all of them. If
// early is true, an operator also ends sessions before their time, which the client learns a little
// later than the others.
func disturb(ctx context.Context, r *rand.Rand, clients []*memory.Backend, early bool) {
	for ctx.Err() == nil {
		b := clients[r.IntN(len(clients))]
		switch r.IntN(8) {
		case 0:
			if early {
				b.Expire()
			}
		case 1:
			b.Disconnect()
		case 2:
			b.LoseAnswer()
		case 3:
			b.LoseRequest()
		case 4:
			b.Cut()
		case 5:
			b.CutAnswers()
		default:
			b.Heal()
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(r.Int64N(int64(bubble.TTL)) / (1 + r.Int64N(20)))):
		}
	}
	for _, b := range clients {
		b.Heal()
	}
}

// rig has n clients, each of which does rounds one after the other, under faults. All must end.
func rig(t *testing.T, seed uint64, n int, early bool, rounds func(ctx context.Context, i int, b *memory.Backend) error) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		r := rand.New(rand.NewPCG(seed, 0))
		var clients []*memory.Backend
		results := make(chan error, n)
		for i := range n {
			b := bubble.Client(t, c, fmt.Sprint("c", i))
			b.Delay(time.Duration(r.IntN(20))*time.Millisecond, time.Duration(r.IntN(20))*time.Millisecond)
			clients = append(clients, b)
			go func() { results <- rounds(t.Context(), i, b) }()
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		disturbed := make(chan struct{})
		go func() {
			defer close(disturbed)
			disturb(ctx, r, clients, early)
		}()
		for range n {
			select {
			case err := <-results:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(time.Hour):
				t.Errorf("they wait for each other: %v, %s", c.Members("start-arrivals"), c.Record("start-open").Value)
			}
		}
		stop()
		<-disturbed
		time.Sleep(3 * bubble.TTL)
		empty(t, c)
	})
}

// Whatever happens to their sessions, as long as they live: nobody passes before all have come,
// and all pass.
func TestChaos(t *testing.T) {
	lane.Unraced(t)
	const n, times = 4, 25
	for run := range uint64(20) {
		var mu sync.Mutex
		var calls [n]int
		rig(t, run, n, true, func(ctx context.Context, i int, b *memory.Backend) error {
			br := barrier.New(b, "start", n, nil)
			for round := 1; round <= times; round++ {
				time.Sleep(rand.N(bubble.TTL / 2))
				mu.Lock()
				calls[i] = round
				mu.Unlock()
				if err := br.Wait(ctx); err != nil {
					return err
				}
				mu.Lock()
				all := calls
				mu.Unlock()
				if slices.Min(all[:]) < round {
					return fmt.Errorf("run %d: number %d has passed round %d, and they are in %v", run, i, round, all)
				}
			}
			return nil
		})
	}
}

// Nobody has left before all others have called Leave, or are lost.
func TestDoubleChaos(t *testing.T) {
	lane.Unraced(t)
	const n, times = 4, 15
	// A state is that of one in a round. inside is nil before it has entered.
	type state struct {
		round   int
		inside  *barrier.Inside
		over    bool // it has called Leave
		outside bool // it has been taken for lost
	}
	for run := range uint64(20) {
		var mu sync.Mutex
		var states [n]state
		set := func(i int, s state) (was state) {
			mu.Lock()
			defer mu.Unlock()
			was = states[i]
			states[i] = s
			return was
		}
		rig(t, run, n, false, func(ctx context.Context, i int, b *memory.Backend) error {
			d := barrier.NewDouble(b, "start", n, &elect.Options{ResignTimeout: bubble.TTL})
			for round := 1; round <= times; round++ {
				time.Sleep(rand.N(bubble.TTL / 2))
				set(i, state{round: round})
				in, err := d.Enter(ctx)
				if errors.Is(err, elect.ErrLost) {
					continue
				}
				if err != nil {
					return err
				}
				if was := set(i, state{round: round, inside: in}); was.outside && in.Check() == nil {
					return fmt.Errorf("run %d: number %d is inside of round %d, which the others have left", run, i, round)
				}
				select {
				case <-in.Context().Done():
				case <-time.After(rand.N(bubble.TTL / 10)):
				}
				set(i, state{round: round, inside: in, over: true})
				if err := in.Leave(ctx); err != nil {
					return err
				}
				mu.Lock()
				for j := range states {
					switch s := &states[j]; {
					case s.round > round, s.over, s.inside != nil && s.inside.Check() != nil:
					case s.inside == nil:
						s.outside = true
					default:
						err = errors.Join(err, fmt.Errorf("run %d: number %d has left round %d, and number %d is inside", run, i, round, j))
					}
				}
				mu.Unlock()
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
}
