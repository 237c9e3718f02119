package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	recipe "go.etcd.io/etcd/client/v3/experimental/recipes"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/bench/internal/candidate"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/recipes/queue"
)

const (
	taken   = 200 // items, of those that stand
	takers  = 4   // each with a client of its own
	putters = 32  // at a time, over these clients
)

// etcdQueue is the name of etcd's own queue, which loses what a taker has had that dies.
const etcdQueue = "recipes.Queue"

// peerQueues are the queues of other programs, by the kind of their peer.
var peerQueues = map[string]string{
	"kazoo LockingQueue": coordtest.PeerKazooQueue, "Curator DistributedQueue": coordtest.PeerCuratorQueue,
}

// queuesOf are the names of the queues that are measured on a coordinator.
func queuesOf(coordinator string) []string {
	switch coordinator {
	case candidate.Etcd:
		return []string{candidate.Ours, etcdQueue}
	case candidate.ZooKeeper:
		return append([]string{candidate.Ours}, slices.Sorted(maps.Keys(peerQueues))...)
	}
	return []string{candidate.Ours}
}

// A store is a queue of some kind: fill adds n items, and each of take takes one and confirms it.
type store struct {
	fill  func(ctx context.Context, n int) error
	take  []func(ctx context.Context) error
	close func()
}

// queues measures how many items are taken and confirmed in a second, by takers that work side by side, and what requests
// each takes, where so many stand when the first is taken.
func (b *bench) queues(ctx context.Context, coordinator string, standing int) error {
	p, err := start(ctx, coordinator, b.disk)
	if err != nil {
		return err
	}
	defer p.stop()
	for _, kind := range queuesOf(coordinator) {
		f := &figure{
			Measure: queueing, Coordinator: coordinator, Server: p.version, Library: kind, N: standing, Candidates: takers,
			Version: candidate.Library{Peer: peerQueues[kind]}.Version(),
			Date:    time.Now().Format(time.DateOnly), NoDisk: !b.disk,
		}
		b.measured(ctx, f, f.queue(ctx, p))
	}
	return nil
}

func (f *figure) queue(ctx context.Context, p *place) error {
	open := f.ours
	switch {
	case f.Library == etcdQueue:
		open = f.etcdRecipe
	case peerQueues[f.Library] != "":
		open = f.peers
	}
	q, err := open(ctx, p.addr)
	if err != nil {
		return err
	}
	defer q.close()
	if err := q.fill(ctx, f.N+takers); err != nil {
		return err
	}
	for _, take := range q.take { // the first does not count
		if err := take(ctx); err != nil {
			return err
		}
	}
	count := func() (n int) {
		if p.requests != nil && err == nil {
			n, err = p.requests(ctx)
		}
		return n
	}
	n := min(f.N, taken)
	before, begun := count(), time.Now()
	errs := make(chan error, takers)
	var taking sync.WaitGroup
	for _, take := range q.take {
		taking.Go(func() {
			for range n / takers {
				if err := take(ctx); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	taking.Wait()
	f.Rate = float64(n) / time.Since(begun).Seconds()
	if after := count(); p.requests != nil {
		f.Requests = float64(after-before) / float64(n)
	}
	select {
	case err := <-errs:
		return err
	default:
		return err
	}
}

// filling returns a store's fill, which has put called for each item, some at a time.
func filling(put []func(context.Context) error) func(ctx context.Context, n int) error {
	return func(ctx context.Context, n int) error {
		var left atomic.Int64
		left.Store(int64(n))
		errs := make(chan error, putters)
		for i := range putters {
			go func() {
				for left.Add(-1) >= 0 {
					if err := put[i%len(put)](ctx); err != nil {
						errs <- err
						return
					}
				}
				errs <- nil
			}()
		}
		var err error
		for range putters {
			err = errors.Join(err, <-errs)
		}
		return err
	}
}

// ours opens this project's queue.
func (f *figure) ours(ctx context.Context, addr string) (*store, error) {
	s := candidate.Settings{Library: candidate.Library{Coordinator: f.Coordinator}, Addresses: []string{addr}, Session: longSession}
	st := &store{}
	var all []backend.Backend
	var put []func(context.Context) error
	st.close = func() {
		for _, b := range all {
			b.Close()
		}
	}
	name := fmt.Sprintf("costs-%08x", rand.Uint32())
	for range takers {
		b, err := succession.Connect(ctx, s.URL())
		if err != nil {
			st.close()
			return nil, err
		}
		all = append(all, b)
		q := queue.New(b, name, nil)
		put = append(put, func(ctx context.Context) error { _, err := q.Put(ctx, "x"); return err })
		st.take = append(st.take, func(ctx context.Context) error {
			item, err := q.Take(ctx)
			if err != nil {
				return err
			}
			return item.Done(ctx)
		})
	}
	st.fill = filling(put)
	return st, nil
}

// etcdRecipe opens etcd's own queue.
func (f *figure) etcdRecipe(_ context.Context, addr string) (*store, error) {
	st := &store{}
	var all []*clientv3.Client
	var put []func(context.Context) error
	st.close = func() {
		for _, c := range all {
			c.Close()
		}
	}
	name := fmt.Sprintf("costs-%08x", rand.Uint32())
	for range takers {
		c, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}, DialTimeout: 5 * time.Second})
		if err != nil {
			st.close()
			return nil, err
		}
		all = append(all, c)
		q := recipe.NewQueue(c, name)
		put = append(put, func(context.Context) error { return q.Enqueue("x") })
		st.take = append(st.take, func(context.Context) error {
			v, err := q.Dequeue()
			if err == nil && v != "x" {
				err = errors.New("it has another value")
			}
			return err
		})
	}
	st.fill = filling(put)
	return st, nil
}

// peers opens the queue of another program, with a process for each taker.
func (f *figure) peers(ctx context.Context, addr string) (*store, error) {
	dir, err := os.MkdirTemp("", "costs-")
	if err != nil {
		return nil, err
	}
	var all []*peer
	st := &store{close: func() {
		for _, p := range all {
			p.Kill()
		}
		os.RemoveAll(dir)
	}}
	name := fmt.Sprintf("/costs-%08x", rand.Uint32())
	for i := range takers {
		p, err := startPeer(ctx, coordtest.PeerOptions{
			Kind: peerQueues[f.Library], Address: addr, Path: name, ID: fmt.Sprint("taker-", i), Session: longSession, Dir: dir,
		})
		if err != nil {
			st.close()
			return nil, err
		}
		all = append(all, p)
		st.take = append(st.take, func(ctx context.Context) error {
			_, err := p.does(ctx, "join", "elected")
			if err == nil {
				_, err = p.does(ctx, "leave", "left")
			}
			return err
		})
	}
	st.fill = func(ctx context.Context, n int) error {
		// One more for each taker: Curator's has an item in hand before it is asked for one.
		_, err := all[0].does(ctx, fmt.Sprint("put ", n+takers), "put")
		return err
	}
	return st, nil
}

// queueTable has a row for each queue.
func (b *book) queueTable(w io.Writer) {
	figures := slices.DeleteFunc(b.of(queueing), func(f *figure) bool { return f.Rate == 0 })
	if len(figures) == 0 {
		return
	}
	fmt.Fprintf(w, "\nTo take an item and to confirm it, by %d takers at the same time, who take %d:\n\n"+
		"| coordinator | | items that stand | requests | items a second |\n|---|---|---|---|---|\n", takers, taken)
	for _, f := range figures {
		name := f.row()
		if f.Library == etcdQueue {
			name += ", which loses what a taker has that dies"
		}
		fmt.Fprintf(w, "| %s | %s | %d | %s | %.0f |\n", f.coordinator(), name, f.N, f.sent(), f.Rate)
	}
}
