//go:build !race

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/bench/internal/candidate"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/lane"
	_ "github.com/succession-dev/succession/memory"
)

// Half of them are weighed against all of them: the more there are, the less counts what else the
// process does.
const waiters = 400

// A cost is what one more waiter takes of its process.
type cost struct{ heap, stacks, goroutines float64 } // of the memory KiB

// each is what one waiter takes of the second half of them: what that half adds.
func each(half, all weight) cost {
	const n = waiters / 2
	return cost{float64(all.heap-half.heap) / n / 1024, float64(all.stacks-half.stacks) / n / 1024, float64(all.goroutines-half.goroutines) / n}
}

// judge fails the test where one more waiter takes more than most, in the middle of several measurements of each: Go keeps memory of stacks
// that are not used any more, which is now and then some KiB a waiter, in the first half or in the second.
func judge(t *testing.T, what string, measured []cost, most cost) {
	t.Helper()
	for _, c := range []struct {
		what string
		of   func(cost) float64
		more float64
	}{
		{"KiB of the heap", func(c cost) float64 { return c.heap }, 0},
		{"KiB of stacks", func(c cost) float64 { return c.stacks }, 0},
		{"goroutines", func(c cost) float64 { return c.goroutines }, 0.05},
	} {
		var all []float64
		for _, m := range measured {
			all = append(all, c.of(m))
		}
		slices.Sort(all)
		t.Logf("%s, %s: one more waiter takes %.2f %s, in the middle of %.2f", t.Name(), what, all[len(all)/2], c.what, all)
		if all[len(all)/2] > c.of(most)+c.more {
			t.Errorf("that is more than %.0f", c.of(most))
		}
	}
}

// A kind is whether all wait in one line, or each in a line of its own.
type kind struct {
	what   string
	suffix func(i int) string // of the line of the i-th
}

var kinds = []kind{
	{"in one line", func(int) string { return "" }},
	{"in a line each", func(i int) string { return fmt.Sprint("-", i) }},
}

// lines is in how many lines n wait.
func (k kind) lines(n int) int {
	if k.suffix(0) == k.suffix(1) {
		return 1
	}
	return n
}

// TestWaiters counts what a candidate that waits takes of its process, in a line with all others,
// and in a line of its own behind the leader there. Most of it is its stack, of which Go gives back
// half where less than a quarter is in use: it is 16 KiB once it has joined, and 8 where what waits has
// less than 3 on it. With Consul each line in which somebody waits needs a connection besides.
func TestWaiters(t *testing.T) {
	lane.All(t) // what all drivers share is seen in memory
	t.Parallel()
	for _, c := range []struct {
		coordinator string
		most        [2]cost // of each kind
	}{
		{candidate.Etcd, [2]cost{{6, 12, 1}, {6, 12, 1}}},
		{candidate.ZooKeeper, [2]cost{{6, 17, 1}, {8, 17, 1}}},
		{candidate.Local, [2]cost{{6, 12, 1}, {6, 12, 1}}},
		{candidate.Consul, [2]cost{{6, 17, 1}, {8, 17, 4}}},
		{candidate.Postgres, [2]cost{{6, 12, 1}, {6, 12, 1}}},
		{candidate.Kubernetes, [2]cost{{12, 12, 1}, {8, 12, 1}}},
	} {
		t.Run(c.coordinator, func(t *testing.T) {
			t.Parallel()
			chosen, err := candidate.Choose("^"+c.coordinator+": "+candidate.Ours+"$", t.Output())
			if err != nil || len(chosen) != 1 {
				t.Fatalf("libraries %v, %v", chosen, err)
			}
			p, err := start(t.Context(), c.coordinator, false)
			if err != nil {
				t.Fatal(err)
			}
			defer p.stop()
			for i, k := range kinds {
				var measured []cost
				for range 3 {
					measured = append(measured, each(k.wait(t, p, chosen[0])))
				}
				judge(t, k.what, measured, c.most[i])
			}
		})
	}
}

// wait has half of all candidates wait, and then all. It returns what their process then has.
func (k kind) wait(t *testing.T, p *place, l candidate.Library) (half, all weight) {
	q, err := open(t.Context(), p, l, 2, how{session: time.Minute, idle: true})
	if err != nil {
		t.Fatal(err)
	}
	defer q.close()
	join := func(p *coordtest.Peer, i int) {
		if err := p.Send("join " + k.suffix(i)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range k.lines(waiters) {
		join(q.processes[0], i)
		if err := q.await(t.Context(), func(e coordtest.PeerEvent) bool { return e.What == "elected"+k.suffix(i) }); err != nil {
			t.Fatal(err)
		}
	}
	for i := range waiters {
		join(q.processes[1], i)
		if i != waiters/2-1 && i != waiters-1 {
			continue
		}
		lines := k.lines(i + 1)
		for j := range lines {
			if _, err := q.standIn(t.Context(), k.suffix(j), 1+(i+1)/lines, patience); err != nil {
				t.Fatal(err)
			}
		}
		half = all
		if all, err = q.weigh(t.Context(), q.processes[1]); err != nil {
			t.Fatal(err)
		}
	}
	return half, all
}

// TestWaitersInMemory is TestWaiters for the coordinator in memory, which is one for this process
// alone, and is counted too. Nothing runs beside it.
func TestWaitersInMemory(t *testing.T) {
	for _, k := range kinds {
		open := func() backend.Backend {
			b, err := succession.Connect(t.Context(), "memory:"+t.Name()+k.suffix(0))
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		leads, waits := open(), open()
		defer leads.Close()
		defer waits.Close()
		election := func(b backend.Backend, i int) *elect.Election { return elect.New(b, "e"+k.suffix(i), nil) }
		for i := range k.lines(waiters) {
			if _, err := election(leads, i).Campaign(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		var weights []weight
		for i := range waiters {
			all.Go(func() {
				if _, err := election(waits, i).Campaign(ctx); !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
			if i == waiters/2-1 || i == waiters-1 {
				w, err := steady(t.Context(), func() (w weight, err error) {
					w.heap, w.stacks, w.goroutines = candidate.Weigh()
					return w, nil
				})
				if err != nil {
					t.Fatal(err)
				}
				weights = append(weights, w)
			}
		}
		judge(t, k.what, []cost{each(weights[0], weights[1])}, cost{5, 10, 1})
		cancel()
		all.Wait()
	}
}
