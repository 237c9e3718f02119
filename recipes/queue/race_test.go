package queue_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/internal/rig/bubble"
	"github.com/succession-dev/succession/internal/rig/lane"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/recipes/queue"
)

// Of those who want the same item at the same moment one gets it, and the others get others.
func TestManyAtOnce(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		const clients, items = 8, 5
		p := of(t, c, "producer")
		for i := range items {
			put(t, p, fmt.Sprint(i))
		}
		type result struct {
			item *queue.Item
			err  error
		}
		results := make(chan result, clients)
		for i := range clients {
			b := bubble.Client(t, c, fmt.Sprint(i))
			b.Delay(time.Millisecond, time.Millisecond)
			go func() {
				item, err := named(b, b.Name()).TryTake(t.Context())
				results <- result{item, err}
			}()
		}
		taken := make(map[string]bool)
		for range clients {
			r := <-results
			if r.err != nil {
				bubble.Want(t, r.err, queue.ErrEmpty)
				continue
			}
			if taken[r.item.Value] {
				t.Errorf("two have the item %s", r.item.Value)
			}
			taken[r.item.Value] = true
			defer r.item.Return(t.Context())
		}
		if len(taken) != items {
			t.Errorf("of %d items %d are taken", items, len(taken))
		}
	})
}

// An item that another takes and confirms between a look and the claim that follows it is not
// handed out again.
func TestConfirmedMeanwhile(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		q, b := of(t, c, "quick"), bubble.Client(t, c, "slow")
		put(t, q, "one")
		slow := named(b, "slow")
		bubble.Must[int](t)(slow.Len(t.Context())) // opens the session
		b.Delay(time.Second, 0)
		result := make(chan error)
		go func() {
			_, err := slow.TryTake(t.Context())
			result <- err
		}()
		time.Sleep(3 * time.Second / 2) // the look takes one request
		done(t, takes(t, q, "one"))
		bubble.Want(t, <-result, queue.ErrEmpty)
		synctest.Wait()
		abandoned(t, c)
	})
}

// Whatever happens to those who take items, none is lost, none is had by two at a time, and none is
// confirmed twice.
func TestChaos(t *testing.T) {
	lane.Unraced(t)
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			bubble.Run(t, func(t *testing.T, c *memory.Coordinator) { chaos(t, c, seed) })
		})
	}
}

func chaos(t *testing.T, c *memory.Coordinator, seed uint64) {
	const takers, items = 4, 150
	rnd := rand.New(rand.NewPCG(seed, 1))
	var (
		mu        sync.Mutex // guards the rest
		bs        [takers]*memory.Backend
		newest    = make(map[string]*queue.Item) // who took it last, by ID
		confirmed = make(map[string]bool)
		unknown   = make(map[string]bool) // whether it is confirmed
		lost      int
		working   sync.WaitGroup
	)
	ctx, stop := context.WithCancel(t.Context())
	enters := func(item *queue.Item) {
		mu.Lock()
		defer mu.Unlock()
		if before := newest[item.ID]; before != nil {
			if before.Check() == nil && item.Check() == nil || before.Token() >= item.Token() {
				t.Errorf("%s is taken by the %s after the %s", item.Value, item, before)
			}
		}
		if confirmed[item.ID] {
			t.Errorf("%s is taken by the %s, after it was confirmed", item.Value, item)
		}
		newest[item.ID] = item
	}
	for i := range bs {
		bs[i] = c.Client(fmt.Sprint(i))
		rnd := rand.New(rand.NewPCG(seed, uint64(i+2)))
		working.Go(func() {
			for ctx.Err() == nil {
				mu.Lock()
				q := named(bs[i], bs[i].Name())
				mu.Unlock()
				some, cancel := context.WithTimeout(ctx, time.Minute)
				item, err := q.Take(some)
				cancel()
				if err != nil {
					time.Sleep(time.Second)
					continue
				}
				enters(item)
				time.Sleep(time.Duration(rnd.IntN(8000)) * time.Millisecond)
				if rnd.IntN(10) == 0 {
					item.Return(t.Context())
					continue
				}
				err = item.Done(t.Context())
				mu.Lock()
				switch {
				case errors.Is(err, queue.ErrLost):
					unknown[item.ID] = true
					lost++
				case err != nil:
					t.Errorf("Done: %v", err)
				case confirmed[item.ID]:
					t.Errorf("%s is confirmed twice", item.Value)
				default:
					confirmed[item.ID] = true
				}
				mu.Unlock()
				item.Return(t.Context())
			}
		})
	}
	p := bubble.Client(t, c, "producer")
	working.Go(func() {
		for i := range items {
			put(t, named(p, "producer"), fmt.Sprint(i))
			time.Sleep(time.Duration(i%5) * time.Second)
		}
	})
	for end := time.Now().Add(10 * time.Minute); time.Now().Before(end); {
		i := rnd.IntN(takers)
		mu.Lock()
		b := bs[i]
		mu.Unlock()
		switch rnd.IntN(12) {
		case 0:
			b.Cut()
		case 1:
			b.CutRequests()
		case 2:
			b.CutAnswers()
		case 3, 4, 5:
			b.Heal()
		case 6, 7:
			b.Disconnect()
		case 8:
			b.LoseAnswer()
		case 9:
			b.LoseRequest()
		case 10:
			b.Delay(time.Duration(rnd.IntN(1000))*time.Millisecond, time.Duration(rnd.IntN(1000))*time.Millisecond)
		case 11:
			b.Kill()
			mu.Lock()
			bs[i] = c.Client(fmt.Sprint(i))
			mu.Unlock()
		}
		time.Sleep(time.Duration(rnd.IntN(6000)) * time.Millisecond)
	}
	for i := range bs {
		bs[i].Heal()
		bs[i].Delay(0, 0)
	}
	time.Sleep(10 * time.Minute)
	stop()
	working.Wait()
	for _, b := range bs {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
	time.Sleep(2 * bubble.TTL) // the sessions of those who were killed
	if n := len(c.Members("jobs-items")); n != 0 {
		t.Errorf("%d items are left", n)
	}
	abandoned(t, c)
	for id, item := range newest {
		if !confirmed[id] && !unknown[id] {
			t.Errorf("%s is gone, and nobody has confirmed it", item.Value)
		}
	}
	if len(newest) != items || lost == 0 {
		t.Errorf("of %d items %d were taken, and %d claims were lost", items, len(newest), lost)
	}
}
