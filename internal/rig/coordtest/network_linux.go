package coordtest

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A network joins servers of which each has a network of its own: a namespace of the
// kernel (network_namespaces(7)) with one device, whose packets come to this process
// (a TUN device: Documentation/networking/tuntap.rst in Linux) and are handed on to
// the namespace that they are for. What is cut off gets and sends no packets, and
// nobody is told anything. Nothing of it has a name outside: all is gone when the
// servers and this process are.
type network struct {
	ports []*port
	wg    sync.WaitGroup // one goroutine for each port

	mu   sync.Mutex
	held [][]byte // the newest packets that a cut has kept from arriving
}

// heldPackets is how many packets wait for the end of a cut. They are the last attempts
// of each connection, which would otherwise not try again for as long as the cut has
// lasted.
const heldPackets = 256

// A port is one server's place in a network.
type port struct {
	addr      netip.Addr // for the other servers
	namespace *os.File
	tun       *os.File
	cut       bool // guarded by network.mu
}

// newNetwork makes a network of n ports, for which it needs to be root. The caller
// closes it.
func newNetwork(n int) (*network, error) {
	nw := new(network)
	for i := range n {
		// Addresses that are nobody's (RFC 5737).
		p, err := newPort(netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)}))
		if err != nil {
			nw.close()
			return nil, fmt.Errorf("make a network that can be cut, which takes root, network namespaces and /dev/net/tun: %w", err)
		}
		nw.ports = append(nw.ports, p)
	}
	for _, p := range nw.ports {
		nw.wg.Go(func() { nw.carry(p) })
	}
	return nw, nil
}

// close ends the network when the servers in it have ended.
func (nw *network) close() {
	for _, p := range nw.ports {
		_ = p.tun.Close()
		_ = p.namespace.Close()
	}
	nw.wg.Wait()
}

// carry hands on what comes from one port, until that is closed.
func (nw *network) carry(from *port) {
	buf := make([]byte, 1<<16)
	for {
		n, err := from.tun.Read(buf)
		if err != nil {
			return
		}
		nw.mu.Lock()
		nw.deliver(buf[:n])
		nw.mu.Unlock()
	}
}

// deliver hands on one packet. It is called with nw.mu held.
func (nw *network) deliver(packet []byte) {
	from, to := nw.at(packet, sourceField), nw.at(packet, destinationField)
	switch {
	case from == nil || to == nil:
	case from.cut || to.cut:
		nw.held = append(nw.held, bytes.Clone(packet))
		nw.held = nw.held[max(0, len(nw.held)-heldPackets):]
	default:
		// A packet that a full queue does not take is lost, as in any network.
		_, _ = to.tun.Write(packet)
	}
}

// isolate cuts a port off from all others.
func (nw *network) isolate(p *port) {
	nw.mu.Lock()
	defer nw.mu.Unlock()
	p.cut = true
}

// heal undoes every isolate, and delivers what was held back last.
func (nw *network) heal() {
	nw.mu.Lock()
	defer nw.mu.Unlock()
	for _, p := range nw.ports {
		p.cut = false
	}
	held := nw.held
	nw.held = nil
	for _, packet := range held {
		nw.deliver(packet)
	}
}

// Where the addresses stand in a packet (RFC 791).
const sourceField, destinationField = 12, 16

// at returns whose address stands in a field of the packet; nil where that is nobody's
// here, as with IPv6's search for neighbours.
func (nw *network) at(packet []byte, field int) *port {
	const ipv4, header = 4, 20
	if len(packet) < header || packet[0]>>4 != ipv4 {
		return nil
	}
	addr := netip.AddrFrom4([4]byte(packet[field:]))
	for _, p := range nw.ports {
		if p.addr == addr {
			return p
		}
	}
	return nil
}

// newPort makes a namespace with a device.
func newPort(addr netip.Addr) (*port, error) {
	p := &port{addr: addr}
	err := onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("unshare: %w", err)
		}
		var err error
		if p.namespace, err = os.Open("/proc/thread-self/ns/net"); err != nil {
			return err
		}
		if p.tun, err = newDevice(addr); err != nil {
			_ = p.namespace.Close()
		}
		return err
	})
	return p, err
}

// newDevice makes the device of the thread's namespace, with the address, and brings
// it up, and the loopback device with it.
func newDevice(addr netip.Addr) (_ *os.File, err error) {
	const name = "tun0"
	tun, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/net/tun: %w", err)
	}
	defer func() {
		if err != nil {
			_ = unix.Close(tun)
		}
	}()
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	defer unix.Close(socket)

	// netdevice(7) has these requests.
	flags := func(flags uint16) func(*unix.Ifreq) error {
		return func(r *unix.Ifreq) error { r.SetUint16(flags); return nil }
	}
	inet := func(b [4]byte) func(*unix.Ifreq) error {
		return func(r *unix.Ifreq) error { return r.SetInet4Addr(b[:]) }
	}
	for _, step := range []struct {
		device  string
		fd      int
		request uint
		set     func(*unix.Ifreq) error
	}{
		{name, tun, unix.TUNSETIFF, flags(unix.IFF_TUN | unix.IFF_NO_PI)},
		{name, socket, unix.SIOCSIFADDR, inet(addr.As4())},
		{name, socket, unix.SIOCSIFNETMASK, inet([4]byte{255, 255, 255, 0})},
		{name, socket, unix.SIOCSIFFLAGS, flags(unix.IFF_UP)},
		{"lo", socket, unix.SIOCSIFFLAGS, flags(unix.IFF_UP)},
	} {
		request, err := unix.NewIfreq(step.device)
		if err == nil {
			err = step.set(request)
		}
		if err == nil {
			err = unix.IoctlIfreq(step.fd, step.request, request)
		}
		if err != nil {
			return nil, fmt.Errorf("configure the device %s (request %#x): %w", step.device, step.request, err)
		}
	}
	return os.NewFile(uintptr(tun), name), nil
}

// enter moves the thread, which the goroutine must have locked, into the namespace.
// What runs on it afterwards belongs to it: sockets, and processes that it starts.
func (p *port) enter() error {
	if err := unix.Setns(int(p.namespace.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter a network namespace: %w", err)
	}
	return nil
}

// dial connects to an address of the namespace from within: the network's cuts do
// not matter.
func (p *port) dial(addr string, timeout time.Duration) (conn net.Conn, err error) {
	err = onThread(func() error {
		if err := p.enter(); err != nil {
			return err
		}
		// An address in digits is dialed by this goroutine alone.
		conn, err = net.DialTimeout("tcp", addr, timeout)
		return err
	})
	return conn, err
}

// onThread calls f on a thread of its own, which ends with it: no other goroutine is
// ever run in the namespace that f has moved it to.
func onThread(f func() error) error {
	err := errors.New("it ended its goroutine")
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked
		err = f()
	}()
	<-done
	return err
}
