package rig

import (
	"context"
	"net"
	"runtime/pprof"
)

// DialUnlabelled takes off the labels by which the suite finds the goroutines of its
// clients: a connection that is kept for the next request is no goroutine of the one
// that it was made for. It is the DialContext of an http.Transport, which runs it from
// the goroutine that dials.
func DialUnlabelled(ctx context.Context, network, addr string) (net.Conn, error) {
	pprof.SetGoroutineLabels(context.Background())
	return new(net.Dialer).DialContext(ctx, network, addr)
}
