package zookeeper

import (
	"cmp"
	"context"
	"net"
	"slices"
	"sync"
	"time"
)

// addresses is the default dialer of a backend. It takes the addresses of a name in turn,
// and at the next dial begins with another one. A net.Dialer begins with the first each
// time, and keeps it also if that accepts the connection and stays silent.
type addresses struct {
	lookup func(ctx context.Context, host string) ([]string, error)

	mu    sync.Mutex
	order map[string][]string // by host: the address that was dialled last is last
}

func newAddresses() *addresses {
	return &addresses{lookup: net.DefaultResolver.LookupHost, order: make(map[string][]string)}
}

func (a *addresses) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	all, err := a.lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	a.sort(host, all)
	var first error
	for i, ip := range all {
		conn, err := dialFor(ctx, len(all)-i, network, net.JoinHostPort(ip, port))
		if err == nil {
			a.took(host, slices.Concat(all[i+1:], all[:i+1]))
			return conn, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

// sort puts addresses that were never dialled first, and the one dialled last at the end.
func (a *addresses) sort(host string, all []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	order := a.order[host]
	slices.SortStableFunc(all, func(x, y string) int { return cmp.Compare(slices.Index(order, x), slices.Index(order, y)) })
}

func (a *addresses) took(host string, order []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.order[host] = order
}

// dialFor dials for at most the time that ctx leaves, divided by parts.
func dialFor(ctx context.Context, parts int, network, addr string) (net.Conn, error) {
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)/time.Duration(parts))
		defer cancel()
	}
	return new(net.Dialer).DialContext(ctx, network, addr)
}
