// Package addresses dials names that have several addresses, for all drivers.
package addresses

import (
	"cmp"
	"context"
	"net"
	"slices"
	"sync"
	"time"
)

// A Dialer takes the addresses of a name in turn, and at the next dial begins with another
// one. A [net.Dialer] begins with the first each time, and keeps it also if that accepts the
// connection and stays silent: then the others would never be tried. Names are resolved anew
// at each dial.
//
// A Dialer is made with [New], and is safe for concurrent use.
type Dialer struct {
	// Lookup resolves a name; it is the system's resolver. A test may set it.
	Lookup func(ctx context.Context, host string) ([]string, error)

	mu    sync.Mutex
	order map[string][]string // by host: the address that was dialled last is last
}

// New returns a Dialer that has dialled nothing yet.
func New() *Dialer {
	return &Dialer{Lookup: net.DefaultResolver.LookupHost, order: make(map[string][]string)}
}

// DialContext connects to the first address that accepts. Each address has an equal part of
// the time that ctx leaves. It returns the error of the first address if none accepts.
func (d *Dialer) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	all, err := d.Lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	d.sort(host, all)
	var first error
	for i, ip := range all {
		conn, err := dialFor(ctx, len(all)-i, network, net.JoinHostPort(ip, port))
		if err == nil {
			d.took(host, slices.Concat(all[i+1:], all[:i+1]))
			return conn, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

// Several reports whether the name in addr had several addresses when it was dialled last.
func (d *Dialer) Several(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	d.mu.Lock()
	defer d.mu.Unlock()
	return err == nil && len(d.order[host]) > 1
}

// sort puts addresses that were never dialled first, and the one dialled last at the end.
func (d *Dialer) sort(host string, all []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	order := d.order[host]
	slices.SortStableFunc(all, func(x, y string) int { return cmp.Compare(slices.Index(order, x), slices.Index(order, y)) })
}

func (d *Dialer) took(host string, order []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.order[host] = order
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
