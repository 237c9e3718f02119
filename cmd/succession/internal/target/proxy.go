package target

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"runtime/pprof"
	"sync"
	"time"
)

// A direction is one of the two ways through a proxy.
type direction int

const (
	toServer direction = iota
	toClient
)

// A proxy forwards the TCP connections of one client to one server. Each direction
// can be held: what is on its way then waits, and arrives in order after release.
// A connection to a proxy that is held is accepted, and comes no further. What a
// method does has taken effect when it returns.
type proxy struct {
	listener net.Listener
	target   string
	ctx      context.Context // ends with close
	cancel   context.CancelFunc
	wg       sync.WaitGroup // all goroutines of the proxy

	mu       sync.Mutex
	changed  *sync.Cond // something below has changed
	held     [2]bool
	severing bool // a connection that carries a request is reset
	hidden   bool // no connection is made, for now
	refusing bool // the same, for good
	conns    map[*conn]struct{}
}

// A conn is a connection of the client, and the one to the server that belongs to it.
type conn struct {
	p       *proxy
	client  *net.TCPConn
	server  *net.TCPConn // nil until dialed
	writing [2]bool
	severed bool // it carries a request, and is to be reset: no answer may be faster
	ended   bool
}

// newProxy starts a proxy for target on a free port of the loopback address.
func newProxy(target string) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: l, target: target, conns: make(map[*conn]struct{})}
	p.changed = sync.NewCond(&p.mu)
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.wg.Go(p.accept)
	return p, nil
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

// hold holds back everything in one direction.
func (p *proxy) hold(d direction) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held[d] = true
	for c := range p.conns {
		if c.writing[d] { // perhaps to one who does not read
			_ = c.to(d).SetWriteDeadline(time.Unix(1, 0))
		}
		for c.writing[d] {
			p.changed.Wait()
		}
	}
}

// sever has each connection reset as soon as it has carried something to the server,
// which comes to no answer.
func (p *proxy) sever() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.severing = true
}

// hide resets all connections, and every new one until release.
func (p *proxy) hide() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hidden = true
	p.reset()
}

// reset resets all connections. It is called with the lock held.
func (p *proxy) reset() {
	for c := range p.conns {
		c.end()
	}
}

// release lets everything through again.
func (p *proxy) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held, p.severing, p.hidden = [2]bool{}, false, false
	p.changed.Broadcast()
}

// abandon resets all connections and every new one, for good.
func (p *proxy) abandon() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refusing = true
	p.reset()
}

// close ends the proxy, and returns when nothing of it runs any more.
func (p *proxy) close() {
	p.cancel()
	_ = p.listener.Close() // fails only where it is closed
	p.abandon()
	p.wg.Wait()
}

func (p *proxy) accept() {
	// The suite finds the goroutines of its clients by their labels, which are
	// inherited. Those of a proxy are none.
	pprof.SetGoroutineLabels(context.Background())
	for {
		client, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Too many open files, perhaps: that passes, and no event tells when.
			select {
			case <-time.After(10 * time.Millisecond):
			case <-p.ctx.Done():
			}
			continue
		}
		c := &conn{p: p, client: client.(*net.TCPConn)}
		p.mu.Lock()
		if p.refusing || p.hidden {
			c.end()
		} else {
			p.conns[c] = struct{}{}
			p.wg.Go(c.run)
		}
		p.mu.Unlock()
	}
}

// run carries the connection from its beginning to its end.
func (c *conn) run() {
	p := c.p
	if c.dial() {
		var wg sync.WaitGroup
		wg.Go(func() { c.carry(toServer) })
		wg.Go(func() { c.carry(toClient) })
		wg.Wait()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
	c.end()
}

// dial connects to the server once nothing is held: a cut network carries no
// handshake either.
func (c *conn) dial() bool {
	p := c.p
	p.mu.Lock()
	for (p.held[toServer] || p.held[toClient]) && !c.ended {
		p.changed.Wait()
	}
	p.mu.Unlock()
	server, err := new(net.Dialer).DialContext(p.ctx, "tcp", p.target)
	if err != nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.ended {
		hangUp(server.(*net.TCPConn))
		return false
	}
	c.server = server.(*net.TCPConn)
	return true
}

// carry carries one direction until it has ended.
func (c *conn) carry(d direction) {
	buf := make([]byte, 32<<10)
	for {
		n, err := c.to(1 - d).Read(buf)
		severed := n > 0 && d == toServer && c.sever()
		if n > 0 && !c.deliver(d, buf[:n]) || severed {
			err = net.ErrClosed
		}
		switch {
		case err == io.EOF:
			c.whenFree(d, func() { _ = c.to(d).CloseWrite() }) // fails only where it is closed
			return
		case err != nil:
			c.p.mu.Lock()
			defer c.p.mu.Unlock()
			c.end()
			return
		}
	}
}

// sever reports whether the connection, which is about to carry a request, is to be reset
// after it.
func (c *conn) sever() bool {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	c.severed = c.p.severing
	return c.severed
}

// deliver writes b while the direction is free. It returns false when the connection
// has ended.
func (c *conn) deliver(d direction, b []byte) bool {
	p, dst := c.p, c.to(d)
	for len(b) > 0 {
		ok := c.whenFree(d, func() {
			c.writing[d] = true
			_ = dst.SetWriteDeadline(time.Time{}) // fails as Write will
		})
		if !ok {
			return false
		}
		n, err := dst.Write(b)
		b = b[n:]
		p.mu.Lock()
		c.writing[d] = false
		p.changed.Broadcast()
		p.mu.Unlock()
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) { // see hold
			return false
		}
	}
	return true
}

// whenFree waits until the direction is not held and calls f, with the lock held. It
// returns false, and does not, when the connection has ended.
func (c *conn) whenFree(d direction, f func()) bool {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	for (c.p.held[d] || d == toClient && c.severed) && !c.ended {
		c.p.changed.Wait()
	}
	if !c.ended {
		f()
	}
	return !c.ended
}

// to returns the end that direction d leads to.
func (c *conn) to(d direction) *net.TCPConn {
	if d == toServer {
		return c.server
	}
	return c.client
}

// end closes both sides with a TCP reset. It is called with the lock held.
func (c *conn) end() {
	if c.ended {
		return
	}
	c.ended = true
	hangUp(c.client)
	if c.server != nil {
		hangUp(c.server)
	}
	c.p.changed.Broadcast()
}

func hangUp(c *net.TCPConn) {
	// Both fail only where it is closed already.
	_ = c.SetLinger(0)
	_ = c.Close()
}
