package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

const (
	// chunkSize is how much is read at a time.
	chunkSize = 32 << 10
	// queueLength is how many chunks wait in a blocked direction before the proxy stops
	// reading, so that the sender's writes block.
	queueLength = 256
	// dialTimeout bounds the time until the server counts as unreachable.
	dialTimeout = time.Second
)

// A conn is a connection from a client, with the connection to the server that belongs to it.
type conn struct {
	p      *Proxy
	ctx    context.Context // ends when the connection does
	cancel context.CancelFunc
	client *net.TCPConn
	server *net.TCPConn // nil until dialed
	halves [2]half

	// Guarded by p.mu.
	dialing bool  // the server is being dialed, or has been
	loss    *loss // not nil when LoseAnswers has chosen this connection
	severed bool  // Sever resets it when the request that it carries has been delivered
	hold    *hold // not nil when HoldBack has chosen this connection: only its release and Close end it
	kept    bool  // HoldBack has, and the server has not ended it
}

// A half carries one direction of a conn.
type half struct {
	c        *conn
	dir      Direction
	src, dst *net.TCPConn
	writing  bool  // guarded by p.mu
	reserved int64 // how many bytes of CloseAfter's limit the present write may use
}

// A chunk is bytes that came together, or the end of the stream.
type chunk struct {
	bytes []byte
	at    time.Time
	err   error // how the stream ended, io.EOF or a failure; nil if it has not
}

func newConn(p *Proxy, client *net.TCPConn) *conn {
	c := &conn{p: p, client: client}
	c.ctx, c.cancel = context.WithCancel(p.ctx)
	c.halves[ToServer] = half{c: c, dir: ToServer, src: client}
	c.halves[ToClient] = half{c: c, dir: ToClient}
	return c
}

// run carries the connection from its beginning to its end.
func (c *conn) run() {
	defer c.p.change(func() {
		delete(c.p.conns, c)
		c.letGoLocked()
	})
	defer c.cancel()
	var wg sync.WaitGroup
	var queues [2]chan chunk
	for i := range queues {
		queues[i] = make(chan chunk, queueLength)
	}
	wg.Go(func() { c.halves[ToServer].read(queues[ToServer]) }) // sees that the client has gone, also before there is a server
	if !c.dial() {
		c.reset()
		wg.Wait()
		return
	}
	wg.Go(func() { c.halves[ToClient].read(queues[ToClient]) })
	for i := range c.halves {
		h, queue := &c.halves[i], queues[i]
		wg.Go(func() {
			if err := h.write(queue); err != nil && !c.holds(h) {
				c.reset()
			}
		})
	}
	wg.Wait()
	// Either both streams have ended properly, and the kernel still delivers what it holds
	// of them, or both sides are closed already.
	_ = c.client.Close()
	_ = c.server.Close()
}

// dial connects to the server as soon as no direction is blocked: a cut network carries no
// handshake either. If the client gives up before that, the server never hears of it.
func (c *conn) dial() bool {
	p := c.p
	for {
		p.mu.Lock()
		blocked := p.ways[ToServer].blocked || p.ways[ToClient].blocked
		changed := p.changed
		c.dialing = !blocked
		p.mu.Unlock()
		if !blocked {
			return c.dialTarget()
		}
		select {
		case <-changed:
		case <-c.ctx.Done():
			return false
		}
	}
}

// dialTarget connects to the server. It does not stop when the connection is reset meanwhile: the
// server may have accepted already, and would see a proper end, not a reset.
func (c *conn) dialTarget() bool {
	server, err := c.p.dial(c.p.target, dialTimeout)
	if err != nil {
		return false
	}
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	if c.ctx.Err() != nil {
		hangUp(server)
		return false
	}
	c.server = server.(*net.TCPConn)
	c.halves[ToServer].dst = c.server
	c.halves[ToClient].src, c.halves[ToClient].dst = c.server, c.client
	return true
}

// reset closes both sides with a TCP reset, which ends everything that runs for the
// connection.
func (c *conn) reset() {
	c.cancel()
	hangUp(c.client)
	if c.server != nil {
		hangUp(c.server)
	}
}

// hangUp closes a connection with a TCP reset.
func hangUp(conn net.Conn) {
	// Both fail only if the connection is closed already.
	_ = conn.(*net.TCPConn).SetLinger(0)
	_ = conn.Close()
}

// ended notes that the stream has ended. The end of the client's ends the connection if the server has not been dialed.
func (h *half) ended() {
	c, p := h.c, h.c.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if h.dir == ToClient || c.ctx.Err() != nil { // the latter is the proxy's doing
		return
	}
	p.ended++
	p.broadcastLocked()
	if !c.dialing {
		c.cancel()
	}
}

// read puts all incoming bytes into the queue, until the stream ends.
func (h *half) read(queue chan<- chunk) {
	buf := make([]byte, chunkSize)
	for {
		n, err := h.src.Read(buf)
		if h.dir == ToClient {
			h.c.answered(err != nil)
		}
		if n > 0 {
			select {
			case queue <- chunk{bytes: bytes.Clone(buf[:n]), at: time.Now()}:
			case <-h.c.ctx.Done():
				return
			}
		}
		if err != nil {
			h.ended()
			select {
			case queue <- chunk{at: time.Now(), err: err}:
			case <-h.c.ctx.Done():
			}
			return
		}
	}
}

// write delivers what is in the queue. It returns nil after it has passed on the proper end of
// the stream.
func (h *half) write(queue <-chan chunk) error {
	for {
		var next chunk
		select {
		case next = <-queue:
		case <-h.c.ctx.Done():
			return context.Cause(h.c.ctx)
		}
		if err := h.deliver(next); err != nil {
			return err
		}
		if next.err != nil {
			return nil
		}
	}
}

// errReset says that Sever or CloseAfter has struck.
var errReset = errors.New("connection was reset on purpose")

// deliver writes one chunk as soon as the direction is open and the delay is over.
func (h *half) deliver(next chunk) error {
	rest := next.bytes
	for len(rest) > 0 || next.err != nil {
		n, err := h.begin(next, len(rest))
		switch {
		case err != nil:
			return err
		case n < 0: // lost on purpose
			return nil
		case next.err == io.EOF:
			return h.dst.CloseWrite()
		case next.err != nil:
			return next.err
		}
		n, err = h.dst.Write(rest[:n])
		h.wrote(n)
		rest = rest[n:]
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) { // see interrupt
			return err
		}
	}
	return h.c.p.delivered(h)
}

// begin blocks until up to n bytes may be written. It returns how many, and marks that they
// are being written. It returns -1 if the chunk is to be lost.
func (h *half) begin(next chunk, n int) (int, error) {
	p := h.c.p
	for {
		p.mu.Lock()
		w := &p.ways[h.dir]
		changed := p.changed
		wait := time.Until(next.at.Add(w.delay))
		switch {
		case h.c.ctx.Err() != nil:
			p.mu.Unlock()
			return 0, context.Cause(h.c.ctx)
		case h.dir == ToClient && h.c.hold != nil:
			p.mu.Unlock()
			return -1, nil
		case w.blocked:
			wait = -1
		case wait > 0:
		case h.dir == ToServer && p.severed > 0 && !h.c.severed && next.err == nil && h.severLocked():
			p.mu.Unlock()
			return 0, errReset
		case h.dir == ToClient && (h.c.loss != nil || h.c.severed):
			p.mu.Unlock()
			return -1, nil
		case h.dir == ToServer && next.err == nil && n == len(next.bytes) && p.hold.takes(next.bytes):
			h.detachLocked()
			p.mu.Unlock()
			return 0, h.keep(next.bytes)
		case next.err == nil && w.armed && w.left == 0:
			w.armed = false
			p.resetLocked()
			p.mu.Unlock()
			return 0, errReset
		default:
			if next.err == nil {
				n = h.beginLocked(next, n)
			}
			p.mu.Unlock()
			return n, nil
		}
		p.mu.Unlock()

		var timer <-chan time.Time
		if wait > 0 {
			timer = time.After(wait)
		}
		select {
		case <-changed:
		case <-timer:
		case <-h.c.ctx.Done():
		}
	}
}

// detachLocked resets the connection for its client alone. From then on only keep and Close change
// what the server sees of it.
func (h *half) detachLocked() {
	c, p := h.c, h.c.p
	c.hold, p.hold = p.hold, nil
	delete(p.conns, c)
	c.kept = true
	p.kept++
	close(c.hold.held) // before the client can know
	hangUp(c.client)
	p.broadcastLocked()
}

// keep delivers the request when HoldBack's release is called, and returns an error when that has been answered.
func (h *half) keep(request []byte) error {
	hold := h.c.hold
	select {
	case <-hold.released:
	case <-h.c.ctx.Done():
		return context.Cause(h.c.ctx)
	}
	_ = h.dst.SetWriteDeadline(time.Now().Add(answerTimeout))
	if _, err := h.dst.Write(request); err != nil {
		hold.once.Do(func() { close(hold.answered) })
	}
	select {
	case <-hold.answered:
	case <-time.After(answerTimeout):
	case <-h.c.ctx.Done():
	}
	return errReset
}

// holds reports whether HoldBack keeps the connection, although this half of it has ended.
func (c *conn) holds(h *half) bool {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	return c.hold != nil && h.dir == ToClient
}

// answered notes that the server has sent something, or that it has ended the stream. Bytes that
// the server sends before it gets the held request are no answer to it.
func (c *conn) answered(ended bool) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	if c.hold != nil && (ended || isClosed(c.hold.released)) {
		c.hold.once.Do(func() { close(c.hold.answered) })
	}
	if ended && c.kept {
		c.letGoLocked()
		c.p.broadcastLocked()
	}
}

// letGoLocked notes that the server has no connection any more of which HoldBack holds a request.
func (c *conn) letGoLocked() {
	if c.kept {
		c.kept = false
		c.p.kept--
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// severLocked reports whether the connection is to be reset before its next chunk is
// delivered. If not, the connection is marked to be reset after that: it is marked now, before
// any answer can come.
func (h *half) severLocked() bool {
	h.c.p.severed++
	h.c.severed = h.c.p.severed%2 == 0
	return !h.c.severed
}

// beginLocked is the last part of begin, when a write may go ahead.
func (h *half) beginLocked(next chunk, n int) int {
	p := h.c.p
	w := &p.ways[h.dir]
	if w.armed {
		h.reserved = min(int64(n), w.left)
		w.left -= h.reserved
		n = int(h.reserved)
	}
	if h.dir == ToServer && p.loss != nil && p.loss.match(next.bytes) {
		// This is decided before the request is sent, so no answer can come before it.
		h.c.loss, p.loss = p.loss, nil
	}
	h.writing = true
	// It fails only if the connection is closed, and then Write fails too.
	_ = h.dst.SetWriteDeadline(time.Time{})
	return n
}

// interrupt makes a write return that is under way. The caller holds p.mu.
func (h *half) interrupt() {
	if h.writing {
		_ = h.dst.SetWriteDeadline(time.Unix(1, 0))
	}
}

// wrote counts n bytes as delivered.
func (h *half) wrote(n int) {
	h.c.p.change(func() {
		w := &h.c.p.ways[h.dir]
		w.bytes += int64(n)
		if w.armed && h.reserved > 0 {
			w.left += h.reserved - int64(n) // an interrupted write has not used all
		}
		h.reserved = 0
		h.writing = false
	})
}

// delivered closes the channel of LoseAnswers if the server now has its request, and returns
// errReset if Sever is to reset the connection now.
func (p *Proxy) delivered(h *half) error {
	if h.dir != ToServer {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := h.c.loss; l != nil {
		l.once.Do(func() { close(l.delivered) })
	}
	if h.c.severed {
		return errReset
	}
	return nil
}
