package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"runtime/pprof"
	"sync"
	"time"
)

// answerTimeout bounds the wait of the release of HoldBack.
const answerTimeout = time.Second

// acceptPause is the pause before the next attempt after a connection could not be accepted.
const acceptPause = 10 * time.Millisecond

// A Direction is one of the two ways through a [Proxy].
type Direction int

const (
	ToServer Direction = iota // from the client to the server
	ToClient                  // from the server to the client
)

// String returns the direction in words.
func (d Direction) String() string { return [...]string{"to server", "to client"}[d] }

// Options are the optional settings of [Start]. Nil and the zero value are the
// defaults.
type Options struct {
	// Listener is the TCP listener to which clients connect. The proxy closes it. If it is
	// nil, the proxy listens on a free port of the loopback address.
	Listener net.Listener
	// Dial connects to the server by TCP, and gives up after the timeout. It is called from
	// several goroutines at once. If it is nil, the proxy uses [net.DialTimeout].
	Dial func(addr string, timeout time.Duration) (net.Conn, error)
}

// A Proxy stands between clients and one TCP server, and does to their connections what networks
// do. Each direction can be blocked alone: its bytes then wait, also those on their way, and come
// through later, in order. A change by a method holds for open connections and for new ones, and
// has taken effect when the method returns. A Proxy is safe for concurrent use.
type Proxy struct {
	target   string
	listener net.Listener
	dial     func(target string, timeout time.Duration) (net.Conn, error)
	ctx      context.Context // ends with Close
	cancel   context.CancelFunc
	wg       sync.WaitGroup // everything that the proxy runs

	mu       sync.Mutex
	changed  chan struct{} // closed, and made anew, when anything below changes
	refuse   bool
	severed  int   // 1 plus the requests that Sever has met; 0 if Sever is not in force
	killed   bool  // refuse for good
	loss     *loss // the last LoseAnswers, until it has found its connection
	hold     *hold // the last HoldBack, until it has found its connection or was released
	kept     int   // [Stats] Held
	ways     [2]way
	conns    map[*conn]struct{}
	accepted int
	ended    int // [Stats] Ended
}

// A way is the state of one direction.
type way struct {
	blocked bool
	delay   time.Duration
	armed   bool  // CloseAfter is in force
	left    int64 // how many bytes may still pass, if armed
	bytes   int64
}

// A loss is one call of LoseAnswers.
type loss struct {
	match     func(request []byte) bool
	delivered chan struct{}
	once      sync.Once // closes delivered
}

// A hold is one call of HoldBack.
type hold struct {
	match    func(request []byte) bool
	skip     int           // how many matches are to pass
	held     chan struct{} // closed when a connection was found
	released chan struct{} // closed by release
	answered chan struct{} // closed when the server has answered, or the connection has ended
	once     sync.Once     // closes answered
}

// Stats counts what has gone through a [Proxy].
type Stats struct {
	Accepted int   // connections accepted from clients, without those that were refused
	Open     int   // connections that are open now
	Ended    int   // connections that their clients have ended, also those that are open still because that is held back
	Held     int   // connections that HoldBack has taken from their clients, and that are open at the server
	ToServer int64 // bytes delivered to the server
	ToClient int64 // bytes delivered to clients
}

// Start starts a proxy that forwards to target, a host:port. The caller closes it.
func Start(target string, o *Options) (*Proxy, error) {
	o = cmp.Or(o, new(Options))
	p := &Proxy{
		target:   target,
		listener: o.Listener,
		dial:     o.Dial,
		changed:  make(chan struct{}),
		conns:    make(map[*conn]struct{}),
	}
	if p.dial == nil {
		p.dial = func(addr string, timeout time.Duration) (net.Conn, error) {
			return net.DialTimeout("tcp", addr, timeout)
		}
	}
	if p.listener == nil {
		var err error
		if p.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return nil, fmt.Errorf("start proxy: %w", err)
		}
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.wg.Go(p.accept)
	return p, nil
}

// Addr returns the host:port for clients.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Close resets all connections, stops listening, and returns when all goroutines of the proxy have
// ended. Closing twice does no harm.
func (p *Proxy) Close() {
	p.cancel()
	// Only a second Close finds the listener closed.
	_ = p.listener.Close()
	p.Reset()
	p.wg.Wait()
}

// Block holds back all bytes in one direction until Unblock or Heal. New connections are
// accepted, but do not reach the server before that.
func (p *Proxy) Block(d Direction) {
	p.change(func() {
		p.ways[d].blocked = true
		for c := range p.conns {
			c.halves[d].interrupt()
		}
	})
	p.await(func() bool {
		for c := range p.conns {
			if c.halves[d].writing {
				return false
			}
		}
		return true
	})
}

// Unblock lets the bytes of one direction through again, beginning with those held back.
func (p *Proxy) Unblock(d Direction) { p.change(func() { p.ways[d].blocked = false }) }

// Cut blocks both directions. As on a network that loses every packet, neither side notices more
// than silence.
func (p *Proxy) Cut() {
	p.Block(ToServer)
	p.Block(ToClient)
}

// Heal undoes all calls of Block, Cut, Refuse, Hide and Sever.
func (p *Proxy) Heal() {
	p.change(func() {
		p.ways[ToServer].blocked = false
		p.ways[ToClient].blocked = false
		p.refuse, p.severed = false, 0
	})
}

// Sever resets each connection as soon as its client sends anything, until Heal. What the
// client sends on the first connection is delivered, but not answered; what it sends on the
// next one is lost; and so on in turns. An idle connection stays, and what the server sends on
// it comes through.
func (p *Proxy) Sever() { p.change(func() { p.severed = 1 }) }

// Refuse resets new connections as soon as they are made, until Heal. Open ones stay.
func (p *Proxy) Refuse() { p.change(func() { p.refuse = true }) }

// Hide resets all connections, and new ones as soon as they are made, until Heal, as if the
// server's address had gone.
func (p *Proxy) Hide() {
	p.change(func() {
		p.refuse = true
		p.resetLocked()
	})
}

// Kill is Hide for good: Heal does not undo it. To the server it looks as if the client had
// crashed. The caller must still close the proxy.
func (p *Proxy) Kill() {
	p.change(func() {
		p.killed = true
		p.resetLocked()
	})
}

// Reset closes all connections, on both sides, with a TCP reset. What was held back
// in them is lost. Clients can connect again.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resetLocked()
}

func (p *Proxy) resetLocked() {
	for c := range p.conns {
		c.reset()
	}
}

// Delay delivers all bytes in one direction d later than they came. 0 ends the delay.
func (p *Proxy) Delay(dir Direction, d time.Duration) {
	p.change(func() { p.ways[dir].delay = d })
}

// CloseAfter lets n more bytes through in one direction, counted over all connections.
// Instead of delivering the next byte it resets all connections, once. CloseAfter(ToClient, 0)
// loses the server's next answer, whatever that is.
func (p *Proxy) CloseAfter(d Direction, n int64) {
	p.change(func() { p.ways[d].armed, p.ways[d].left = true, n })
}

// LoseAnswers loses the answer to one request. It waits for the first connection on which a
// client sends bytes for which match returns true. From then on nothing reaches the client on
// that connection, while what the client sends still reaches the server. The channel is closed
// when the request has been delivered. Reset then ends the connection.
//
// match is called with the bytes as they come from the network, which may be a part of a
// request or several requests, and must be quick. A nil match matches all bytes. A second call
// replaces one that has found no connection yet.
func (p *Proxy) LoseAnswers(match func(request []byte) bool) <-chan struct{} {
	if match == nil {
		match = func([]byte) bool { return true }
	}
	delivered := make(chan struct{})
	p.change(func() { p.loss = &loss{match: match, delivered: delivered} })
	return delivered
}

// HoldBack holds one request back until release is called, whatever else happens to its client and
// to the network meanwhile. It waits for bytes from a client for which match, as in LoseAnswers,
// returns true, and lets the first skip of them pass. The connection of the next matching bytes is
// reset for the client, which can make others; held reports whether that has happened, before the
// client can know. For the server the connection stays, and the bytes arrive when release is
// called. release returns when the server has answered something or closed the connection, which
// then ends; it waits for a second at most. If no such bytes have come, release ends the search. A
// second call of HoldBack replaces one that has found nothing yet.
func (p *Proxy) HoldBack(skip int, match func(request []byte) bool) (held func() bool, release func()) {
	h := &hold{match: match, skip: skip, held: make(chan struct{}), released: make(chan struct{}), answered: make(chan struct{})}
	p.change(func() { p.hold = h })
	return func() bool { return isClosed(h.held) }, sync.OnceFunc(func() {
		p.change(func() {
			if p.hold == h {
				p.hold = nil
			}
			close(h.released)
		})
		if !isClosed(h.held) {
			return
		}
		select {
		case <-h.answered:
		case <-time.After(answerTimeout):
		case <-p.ctx.Done():
		}
	})
}

// takes reports whether the request is to be held back.
func (h *hold) takes(request []byte) bool {
	if h == nil || !h.match(request) {
		return false
	}
	h.skip--
	return h.skip < 0
}

// Stats returns the counters.
func (p *Proxy) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.statsLocked()
}

func (p *Proxy) statsLocked() Stats {
	return Stats{
		Accepted: p.accepted,
		Open:     len(p.conns),
		Ended:    p.ended,
		Held:     p.kept,
		ToServer: p.ways[ToServer].bytes,
		ToClient: p.ways[ToClient].bytes,
	}
}

// Wait blocks until cond is true for the counters. It fails if ctx ends first.
func (p *Proxy) Wait(ctx context.Context, cond func(Stats) bool) error {
	for {
		p.mu.Lock()
		ok, s, changed := cond(p.statsLocked()), p.statsLocked(), p.changed
		p.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("proxy %s, %+v: %w", p.Addr(), s, context.Cause(ctx))
		}
	}
}

// change calls f with the lock held, and wakes all that wait for a change.
func (p *Proxy) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	p.broadcastLocked()
}

func (p *Proxy) broadcastLocked() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// await blocks until cond, called with the lock held, is true.
func (p *Proxy) await(cond func() bool) {
	for {
		p.mu.Lock()
		ok, changed := cond(), p.changed
		p.mu.Unlock()
		if ok {
			return
		}
		<-changed
	}
}

// accept takes connections until the listener is closed.
func (p *Proxy) accept() {
	// The suite finds goroutines that its clients have left behind by their labels, which
	// goroutines inherit. The goroutines of a proxy belong to no client.
	pprof.SetGoroutineLabels(context.Background())
	for {
		client, err := p.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			// There may be too many open files. That passes, but no event tells when.
			select {
			case <-time.After(acceptPause):
			case <-p.ctx.Done():
			}
			continue
		}
		p.mu.Lock()
		if p.refuse || p.killed || p.ctx.Err() != nil {
			p.mu.Unlock()
			hangUp(client)
			continue
		}
		c := newConn(p, client.(*net.TCPConn))
		p.conns[c] = struct{}{}
		p.accepted++
		p.wg.Go(c.run)
		p.broadcastLocked()
		p.mu.Unlock()
	}
}
