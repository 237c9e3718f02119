package coordtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
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

// Test programs run side by side, and a server that is down for a while must find its
// ports free when it comes back. So a program takes ports from blocks that are its own: it
// holds a lock on a file for each, which the kernel releases when the program ends.
const (
	blockPorts = 256
	maxBlocks  = 16 // of one program, so that some are left for others
)

var owned struct {
	sync.Mutex
	ports []int // of the blocks, in any order; those before next have been handed out
	next  int
	locks []func() // a file that nothing refers to is closed
}

// ownPort returns a port of this program's blocks. None is handed out again before all
// have been.
func ownPort() (int, error) {
	owned.Lock()
	defer owned.Unlock()
	if owned.next == len(owned.ports) {
		switch block, err := takeBlock(); {
		case err != nil:
			return 0, err
		case block > 0:
			for i := range blockPorts {
				owned.ports = append(owned.ports, block+i)
			}
		case len(owned.ports) == 0:
			return 0, errors.New("find a free port: other test programs have taken all")
		default:
			owned.next = 0
		}
		fresh := owned.ports[owned.next:]
		rand.Shuffle(len(fresh), func(i, j int) { fresh[i], fresh[j] = fresh[j], fresh[i] })
	}
	port := owned.ports[owned.next]
	owned.next++
	return port, nil
}

// takeBlock returns the first port of another block; 0 if there is none to be had. The
// caller holds the lock.
func takeBlock() (int, error) {
	if len(owned.ports) == maxBlocks*blockPorts {
		return 0, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return 0, err
	}
	dir := filepath.Join(cache, "succession", "ports")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, err
	}
	now, cancel := context.WithCancel(context.Background())
	cancel() // who holds a lock keeps it
	for _, i := range rand.Perm((maxPort + 1 - minPort) / blockPorts) {
		unlock, err := lockFile(now, filepath.Join(dir, strconv.Itoa(i)), func() {})
		if err == nil {
			owned.locks = append(owned.locks, unlock)
			return minPort + i*blockPorts, nil
		}
		if !errors.Is(err, context.Canceled) {
			return 0, err
		}
	}
	return 0, nil
}

// freePorts returns n different ports on the loopback address that nobody listens
// on at this moment, and that no call of this or of another test program is likely to
// return. The caller must be ready to lose one of them before its server has bound it.
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
		port, err := ownPort()
		if err != nil {
			return nil, err
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
