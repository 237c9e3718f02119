package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/bench/internal/candidate"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/recipes/group"
)

// A crowd is a group of which each member follows all, with a client of its own.
type crowd struct {
	name  string
	all   []backend.Backend
	place *place

	sees    []atomic.Int64 // how many members each follower has seen last
	changed chan struct{}  // somebody has seen something
	failed  chan error
	end     context.CancelFunc
	follow  sync.WaitGroup
}

// groups measures how long it takes until all members of a group have seen one more, with its value, and how many requests that takes of
// each of them. One joins, and leaves again when all have seen it; that is done -joins times.
func (b *bench) groups(ctx context.Context, coordinator string, n int) error {
	p, err := start(ctx, coordinator, b.disk)
	if err != nil {
		return err
	}
	defer p.stop()
	for _, l := range groupsOf(coordinator) {
		f := &figure{
			Measure: grouping, Coordinator: coordinator, Server: p.version, Library: l, N: n,
			Date: time.Now().Format(time.DateOnly), NoDisk: !b.disk,
		}
		gather := f.ourGroup
		if l == curatorGroup {
			gather, f.Version = f.curatorGroup, candidate.Library{Peer: coordtest.PeerCuratorGroup}.Version()
		}
		b.measured(ctx, f, f.group(ctx, p, b.joins, gather))
	}
	return nil
}

// curatorGroup is the name of Curator's group. All its members are in one process, too.
const curatorGroup = "Curator GroupMember"

// groupsOf are the names of the groups that are measured on a coordinator.
func groupsOf(coordinator string) []string {
	if coordinator == candidate.ZooKeeper {
		return []string{candidate.Ours, curatorGroup}
	}
	return []string{candidate.Ours}
}

// A gathering is a group whose members all follow it. One more joins, and leaves again; each returns when all have seen
// it, and joins says how long that took.
type gathering struct {
	joins  func(ctx context.Context) (time.Duration, error)
	leaves func(ctx context.Context) error
	close  func()
}

func (f *figure) group(ctx context.Context, p *place, joins int, gather func(context.Context, *place) (*gathering, error)) error {
	g, err := gather(ctx, p)
	if err != nil {
		return err
	}
	defer g.close()
	requests := 0
	for i := range joins + 1 { // the first does not count
		if err := sleep(ctx, settle+time.Duration(f.N)*herdSettle); err != nil { // nothing tells that all watch
			return err
		}
		before := 0
		if p.requests != nil {
			if before, err = p.requests(ctx); err != nil {
				return err
			}
		}
		took, err := g.joins(ctx)
		if err != nil {
			return err
		}
		if i > 0 {
			f.Times = append(f.Times, took)
		}
		if p.requests != nil {
			// Whoever has seen the change begins to watch again, and nothing tells that it does.
			if err := sleep(ctx, settle+time.Duration(f.N)*herdSettle); err != nil {
				return err
			}
			after, err := p.requests(ctx)
			if err != nil {
				return err
			}
			if i > 0 {
				requests += after - before
			}
		}
		if err := g.leaves(ctx); err != nil {
			return err
		}
	}
	f.Requests = float64(requests) / float64(joins) / float64(f.N)
	return nil
}

// ourGroup gathers a group of this project's.
func (f *figure) ourGroup(ctx context.Context, p *place) (*gathering, error) {
	c := &crowd{
		name: fmt.Sprintf("costs-%08x", rand.Uint32()), place: p,
		sees: make([]atomic.Int64, f.N), changed: make(chan struct{}, 1), failed: make(chan error, f.N),
	}
	if err := c.gather(ctx, f); err != nil {
		c.close()
		return nil, err
	}
	s := candidate.Settings{Library: candidate.Library{Coordinator: f.Coordinator}, Addresses: []string{p.addr}, Session: longSession}
	b, err := succession.Connect(ctx, s.URL())
	if err != nil {
		c.close()
		return nil, err
	}
	g := group.New(b, c.name, &elect.Options{ID: "one more", Value: value})
	var one *group.Presence
	return &gathering{
		joins: func(ctx context.Context) (time.Duration, error) {
			begin := time.Now()
			var err error
			if one, err = g.Join(ctx); err == nil {
				err = c.seen(ctx, f.N+1)
			}
			return time.Since(begin), err
		},
		leaves: func(ctx context.Context) error {
			if err := one.Leave(ctx); err != nil {
				return err
			}
			return c.seen(ctx, f.N)
		},
		close: func() { b.Close(); c.close() },
	}, nil
}

// curatorGroup gathers a group of Curator's. Its process asks each member whom it knows, every millisecond.
func (f *figure) curatorGroup(ctx context.Context, p *place) (*gathering, error) {
	dir, err := os.MkdirTemp("", "costs-")
	if err != nil {
		return nil, err
	}
	peer, err := startPeer(ctx, coordtest.PeerOptions{
		Kind: coordtest.PeerCuratorGroup, Address: p.addr, Path: fmt.Sprintf("/costs-%08x", rand.Uint32()), ID: "members", Session: longSession, Dir: dir,
	})
	if err == nil {
		if _, err = peer.does(ctx, fmt.Sprint("put ", f.N), "put"); err != nil {
			peer.Kill()
		}
	}
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return &gathering{
		joins: func(ctx context.Context) (time.Duration, error) { return peer.does(ctx, "join", "elected") },
		leaves: func(ctx context.Context) error {
			_, err := peer.does(ctx, "leave", "left")
			return err
		},
		close: func() { peer.Kill(); os.RemoveAll(dir) },
	}, nil
}

// silent does not say that members go when the measuring is over.
var silent = slog.New(slog.DiscardHandler)

// value is that of each member: an address, and what it can do.
const value = "10.0.0.1:8080 read,write"

// gather has all members join, and follow. Some connect at a time.
func (c *crowd) gather(ctx context.Context, f *figure) error {
	following, cancel := context.WithCancel(ctx)
	c.end = cancel
	c.all = make([]backend.Backend, f.N)
	errs := make(chan error, f.N)
	slots := make(chan struct{}, 16)
	for i := range c.all {
		go func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			s := candidate.Settings{Library: candidate.Library{Coordinator: f.Coordinator}, Addresses: []string{c.place.addr}, Session: longSession}
			b, err := succession.Connect(ctx, s.URL())
			if err == nil {
				c.all[i] = b
				_, err = group.New(b, c.name, &elect.Options{ID: fmt.Sprint("member-", i), Value: value, Logger: silent}).Join(ctx)
			}
			errs <- err
		}()
	}
	for range c.all {
		if err := <-errs; err != nil {
			return err
		}
	}
	for i, b := range c.all {
		c.follow.Go(func() {
			for members, err := range group.New(b, c.name, nil).Follow(following) {
				if err != nil {
					if following.Err() == nil {
						c.failed <- err
					}
					return
				}
				for _, m := range members {
					if m.Value != value {
						c.failed <- errors.New("a member has another value")
						return
					}
				}
				c.sees[i].Store(int64(len(members)))
				select {
				case c.changed <- struct{}{}:
				default:
				}
			}
		})
	}
	return c.seen(ctx, f.N)
}

// seen waits until all have seen n members.
func (c *crowd) seen(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not all have seen %d members after %v", n, patience))
	defer cancel()
	for i := 0; i < len(c.sees); {
		if c.sees[i].Load() == int64(n) {
			i++
			continue
		}
		select {
		case <-c.changed:
		case err := <-c.failed:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// close ends all members.
func (c *crowd) close() {
	if c.end != nil {
		c.end()
	}
	c.follow.Wait()
	var closing sync.WaitGroup
	for _, b := range c.all {
		if b != nil {
			closing.Go(func() { b.Close() })
		}
	}
	closing.Wait()
}

// groupTable has a row for each size.
func (b *book) groupTable(w io.Writer) {
	first := true
	for _, f := range b.of(grouping) {
		if len(f.Times) == 0 && f.Error == "" {
			continue
		}
		if first {
			fmt.Fprintln(w, "\nOne more joins a group whose members all follow it, with their values, each with a client of its own in one process:\n\n"+
				"| coordinator | | members | requests of each | until all have seen it, p50 | worst |\n|---|---|---|---|---|---|")
			first = false
		}
		if f.Error != "" {
			fmt.Fprintf(w, "| %s | %s | %d | – | %s | – |\n", f.coordinator(), f.row(), f.N, f.Error)
			continue
		}
		fmt.Fprintf(w, "| %s | %s | %d | %s | %s | %s |\n", f.coordinator(), f.row(), f.N, f.sent(), seconds(f.quantile(0.5)), seconds(f.quantile(1)))
	}
}
