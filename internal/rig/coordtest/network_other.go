//go:build !linux

package coordtest

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// A network cannot be had here; see the one of Linux.
type network struct{ ports []*port }

type port struct{ addr netip.Addr }

var errNoNetwork = fmt.Errorf("make a network that can be cut, which takes Linux: %w", errors.ErrUnsupported)

func newNetwork(int) (*network, error) { return nil, errNoNetwork }

func (*network) close() {}

func (*network) isolate(*port) {}

func (*network) heal() {}

func (*port) enter() error { return errNoNetwork }

func (*port) dial(string, time.Duration) (net.Conn, error) { return nil, errNoNetwork }
