package memory_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/rig/lane"
	"github.com/succession-dev/succession/memory"
)

// An hour of partitions, delays, crashes, restarts and pauses in virtual time, where
// instants are exact: nobody works, before its deadline, after a later term has
// begun (G1), tokens grow (G2), somebody leads whenever all is well (G8), and at
// the end nobody stands in line (G6).
func TestChaos(t *testing.T) {
	lane.Unraced(t)
	for seed := range uint64(24) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { chaos(t, seed) })
		})
	}
}

func chaos(t *testing.T, seed uint64) {
	const clients = 5
	rnd := rand.New(rand.NewPCG(seed, 1))
	c := memory.New(&memory.Options{TTL: ttl, Slack: time.Duration(rnd.IntN(3)) * time.Second})
	ctx, cancel := context.WithCancel(t.Context())
	began := time.Now()

	var (
		mu sync.Mutex // guards the rest
		bs [clients]*memory.Backend
		w  watchman
		wg sync.WaitGroup
	)
	at := func(i int) *memory.Backend {
		mu.Lock()
		defer mu.Unlock()
		return bs[i]
	}
	for i := range bs {
		bs[i] = c.Client(fmt.Sprint(i))
		rnd := rand.New(rand.NewPCG(seed, uint64(2+i)))
		wg.Go(func() {
			for ctx.Err() == nil {
				term := time.Duration(rnd.IntN(60)) * time.Second
				err := candidacy(ctx, at(i), 5*time.Minute, func(s backend.Session, _ backend.Member, token uint64) error {
					return w.lead(ctx, s, token, term)
				})
				if err != nil {
					t.Errorf("after %v: client %d: %v", time.Since(began), i, err)
				}
				time.Sleep(time.Duration(rnd.IntN(1000)) * time.Millisecond)
			}
		})
	}

	for end := time.Now().Add(time.Hour); time.Now().Before(end); {
		b := at(rnd.IntN(clients))
		switch rnd.IntN(14) {
		case 0:
			b.Cut()
		case 1:
			b.CutRequests()
		case 2:
			b.CutAnswers()
		case 3, 4, 5:
			b.Heal()
		case 6:
			b.Delay(time.Duration(rnd.IntN(4000))*time.Millisecond, time.Duration(rnd.IntN(4000))*time.Millisecond)
		case 7:
			b.Delay(0, 0)
		case 8:
			b.Disconnect()
		case 9:
			b.LoseAnswer()
		case 10:
			b.LoseRequest()
		case 11:
			c.Restart()
		case 12:
			c.Pause()
			time.Sleep(time.Duration(rnd.IntN(15)) * time.Second)
			c.Resume()
		case 13:
			i := rnd.IntN(clients)
			at(i).Kill()
			mu.Lock()
			bs[i] = c.Client(fmt.Sprint(i))
			mu.Unlock()
		}
		time.Sleep(time.Duration(rnd.IntN(20)) * time.Second)
	}

	for i := range bs {
		at(i).Heal()
		at(i).Delay(0, 0)
	}
	before := w.count()
	time.Sleep(10 * time.Minute)
	if n := w.count() - before; n < 10 {
		t.Errorf("%d terms of at most a minute in ten minutes without faults", n)
	}
	cancel()
	wg.Wait()
	for i := range bs {
		ok(t, "Close", at(i).Close())
	}
	time.Sleep(2 * ttl) // sessions of those who were killed
	if n := len(c.Sessions()); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
	wantLine(t, c)
}

// A watchman sees all terms.
type watchman struct {
	mu    sync.Mutex
	token uint64
	terms int
}

func (w *watchman) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.terms
}

// lead works as long as the term may last and the deadline has not passed. It fails if a
// later term has begun meanwhile.
func (w *watchman) lead(ctx context.Context, s backend.Session, token uint64, term time.Duration) error {
	for end := time.Now().Add(term); ctx.Err() == nil && time.Now().Before(end) && time.Now().Before(s.Deadline()) && s.Err() == nil; {
		w.mu.Lock()
		if w.token > token {
			w.mu.Unlock()
			return fmt.Errorf("works with token %d while the term %d has begun", token, w.token)
		}
		if w.token < token {
			w.token = token
			w.terms++
		}
		w.mu.Unlock()
		time.Sleep(100 * time.Millisecond)
	}
	return nil
}
