package rig

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance"
	"github.com/succession-dev/succession/conformance/proxy"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// Clients fills in the faults of single clients: Expire, LoseAnswer, HoldBack, Requests, and those
// between a client and its coordinator; see [conformance.Faults.Network]. of returns what stands between a client and its coordinator, or between a composite and
// each of its coordinators: a fault then happens on all sides.
func Clients(f *conformance.Faults, of func(backend.Backend) []Client) {
	f.Network(func(b backend.Backend) (proxies []*proxy.Proxy) {
		for _, c := range of(b) {
			proxies = append(proxies, c.Proxy())
		}
		return proxies
	})
	f.Expire = func(ctx context.Context, b backend.Backend) error {
		if _, err := b.Session(ctx); err != nil {
			return err
		}
		var errs []error
		for _, c := range of(b) {
			errs = append(errs, c.Expire(ctx))
		}
		if slices.Contains(errs, nil) {
			// A composite has no session yet where it has not needed one.
			errs = slices.DeleteFunc(errs, func(err error) bool { return err == ErrNoSession })
		}
		return errors.Join(errs...)
	}
	f.LoseAnswer = func(b backend.Backend) {
		for _, c := range of(b) {
			c.LoseAnswer()
		}
	}
	f.HoldBack = func(b backend.Backend, skip int) (held func() bool, release func()) {
		var each []func() (func() bool, func())
		for _, c := range of(b) {
			each = append(each, func() (func() bool, func()) { return c.HoldBack(skip) })
		}
		return HoldBack(each)
	}
	f.Requests = func(b backend.Backend) (n int64) {
		for _, c := range of(b) {
			n += c.Requests()
		}
		return n
	}
}

// Cluster returns what can be done to the servers of a cluster that was started with
// the option Links. of returns the address of the server that a client talks to. A client with
// that URL knows all servers; it is empty where none can.
func Cluster(c *coordtest.Cluster, url string, of func(backend.Backend) string) *conformance.ClusterFaults {
	f := &conformance.ClusterFaults{
		Leader: func(ctx context.Context) (int, error) {
			s, err := c.LeaderAfter(ctx, nil)
			return slices.Index(c.Servers(), s), err
		},
		Of: func(b backend.Backend) int { return slices.Index(c.Addrs(), of(b)) },
	}
	if url != "" {
		f.Failover = func(ctx context.Context) (backend.Backend, error) { return succession.Connect(ctx, url) }
	}
	for i, s := range c.Servers() {
		f.Servers = append(f.Servers, conformance.ServerFaults{
			Kill:   func() error { s.Kill(); return nil },
			Start:  s.Restart,
			Pause:  s.Pause,
			Resume: s.Resume,
			Isolate: func() (func(), error) {
				if err := c.Isolate(s); err != nil {
					return nil, fmt.Errorf("server %d: %w", i, err)
				}
				return c.Heal, nil
			},
		})
	}
	return f
}
