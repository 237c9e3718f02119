package coordtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// Servers listen below the range from which kernels pick the ports of outgoing
// connections (Linux: from 32768, ip(7); macOS: from 49152). A port from that range
// could be taken by any connection while its server restarts, and a client that
// dials it meanwhile may even connect to itself.
const (
	minPort = 10240
	maxPort = 32767
)

// given are the ports that this process has handed out. None is handed out again, so
// that a server that is down for a while finds its own when it comes back.
var given struct {
	sync.Mutex
	ports map[int]bool
}

// give reports whether the port had not been handed out. When half of all have been it
// begins anew.
func give(port int) bool {
	given.Lock()
	defer given.Unlock()
	if given.ports == nil || len(given.ports) > (maxPort-minPort)/2 {
		given.ports = make(map[int]bool)
	}
	fresh := !given.ports[port]
	given.ports[port] = true
	return fresh
}

// freePorts returns n different ports on the loopback address that nobody listens
// on at this moment, and that no other call has returned. The caller must be ready to
// lose one of them to another process before its server has bound it.
func freePorts(n int) ([]int, error) {
	var ports []int
	var held []net.Listener
	defer func() {
		for _, l := range held {
			l.Close()
		}
	}()
	for tries := 0; len(ports) < n; tries++ {
		if tries == 100+n {
			return nil, fmt.Errorf("find %d free ports from %d to %d: gave up after %d attempts", n, minPort, maxPort, tries)
		}
		port := minPort + rand.IntN(maxPort-minPort+1)
		if !give(port) {
			continue
		}
		l, err := net.Listen("tcp", loopback(port))
		if err != nil {
			continue
		}
		held = append(held, l)
		ports = append(ports, port)
	}
	return ports, nil
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// errPortTaken says that a server found one of its ports in use.
var errPortTaken = errors.New("a port is in use")
