package wire

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/succession-dev/succession/backend/kit/clock"
)

// A wire is one connection to a server, under the client library. It reads what passes, and
// does what the library does not:
//
//   - It has a deadline of its own for the handshake. The library would wait for 6.7
//     session times for a server that accepts and stays silent.
//   - It notices silence in time, see awaits. The library waits for two thirds of the session
//     time, and a leader's term has ended by then.
//   - It carries no session but the link's. The library by itself would go on under a new
//     session, and run there what was queued.
//   - It notes when each request was sent, because the session's deadline counts from that.
//   - When the connection breaks, it ends every watch with an event before the library
//     sees the break. A caller that waits then reads again, on the next connection. The
//     library's own way, SetWatches, can fail unseen, and what it sends races with its
//     reader.
//
// One goroutine at a time may call Read, and one Write.
type wire struct {
	net.Conn
	link *Link
	in   *bufio.Reader

	frame   []byte // the buffer of the frame that Read delivers
	pending []byte // what is left of that frame
	broken  error  // set once the connection cannot be used any more

	established atomic.Bool // the handshake is over
	useful      atomic.Bool // a request has been answered

	shown atomic.Pointer[Auth] // the credentials that the server has accepted; nil for none

	mu       sync.Mutex
	opened   bool // the connect request has been written
	ttl      time.Duration
	requests map[int32]sentRequest
	pings    []clock.Instant // unanswered, oldest first
	touches  touches
	armed    map[WatchKey]struct{}
}

type sentRequest struct {
	request
	sent clock.Instant
}

func newWire(l *Link, conn net.Conn) *wire {
	w := &wire{
		Conn:     conn,
		link:     l,
		requests: make(map[int32]sentRequest),
		touches:  touches{relay: l.relay},
		armed:    make(map[WatchKey]struct{}),
	}
	w.in = bufio.NewReader(&parts{w: w})
	return w
}

// parts reads from a wire's connection. A list of a long line may need longer than the connection
// may be silent for. So each part of it counts like a frame.
type parts struct {
	w    *wire
	read int // of the present part
}

// part is so small that even a slow connection has it in a quarter of a session time, and so large
// that one that brings hardly anything still counts as silent.
const part = 64 << 10

func (p *parts) Read(b []byte) (int, error) {
	n, err := p.w.Conn.Read(b)
	if p.read += n; p.read >= part && p.w.established.Load() {
		p.read = 0
		p.w.mu.Lock()
		defer p.w.mu.Unlock()
		p.w.awaits()
	}
	return n, err
}

// Write sends one whole frame: the library never writes less or more. After the handshake it
// reports no error. It closes the connection instead, and Read reports that. The reason is
// that the library answers a request whose write has failed twice, and once more if it was
// closed meanwhile, into a channel that holds two answers: it would block for good.
func (w *wire) Write(frame []byte) (int, error) {
	if err := w.write(frame); err != nil {
		w.Conn.Close()
		if !w.established.Load() {
			return 0, err
		}
	}
	return len(frame), nil
}

func (w *wire) write(frame []byte) error {
	if err := w.link.Ended(); err != nil {
		return err
	}
	sent := clock.Now() // before the write: the server cannot have heard of it earlier
	frame, err := w.sending(frame, sent)
	if err != nil {
		return err
	}
	_, err = w.Conn.Write(frame)
	return err
}

// sending notes a frame that is to be sent, and returns the frame to send in its place.
func (w *wire) sending(frame []byte, sent clock.Instant) ([]byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.opened {
		h, err := parseConnectRequest(frame)
		if err != nil {
			return nil, err
		}
		w.opened, w.touches.connect = true, sent
		// The library asks for a server that has come as far as its answers, and does not
		// count notices. A server that is behind a notice would show a znode that the
		// session knows has gone.
		return withZxid(frame, w.link.Highest()), w.link.opening(h.session)
	}
	xid, r, err := parseRequest(frame)
	if err != nil {
		return nil, err
	}
	if len(w.pings)+len(w.requests) == 0 {
		defer w.awaits()
	}
	if xid == xidPing {
		w.pings = append(w.pings, sent)
	} else {
		w.requests[xid] = sentRequest{r, sent}
	}
	return frame, nil
}

// awaits is called when the server begins to owe an answer, and with each frame that comes from
// then on, and each part of a long one. If none comes for a quarter of the session time while an
// answer is due, the connection is broken. A leader sends a heartbeat in each sixth, and has time
// left to send the next one to another server. The caller holds mu.
func (w *wire) awaits() {
	var end time.Time // none
	if len(w.pings)+len(w.requests) > 0 {
		end = time.Now().Add(w.ttl / 4)
	}
	_ = w.Conn.SetReadDeadline(end) // it fails only if the connection is closed
}

// Read delivers frames, in pieces that fit p. The wire notes each frame first, when it has
// read all of it.
func (w *wire) Read(p []byte) (int, error) {
	for len(w.pending) == 0 {
		if w.broken != nil {
			return 0, w.broken
		}
		if err := w.next(); err != nil {
			w.lost(err)
		}
	}
	n := copy(p, w.pending)
	w.pending = w.pending[n:]
	return n, nil
}

// next reads a frame and notes it.
func (w *wire) next() (err error) {
	limit, note := MaxFrame, w.received
	if !w.established.Load() {
		limit, note = maxHandshake, w.greeted
	}
	if w.frame, err = readFrame(w.in, w.frame, limit); err != nil {
		return err
	}
	if err := w.link.Ended(); err != nil {
		return err // nobody may get what comes after the end of the session
	}
	if err := note(w.frame, clock.Now()); err != nil {
		return err
	}
	w.pending = w.frame
	return nil
}

// greeted notes the answer to the connect request.
func (w *wire) greeted(frame []byte, _ clock.Instant) error {
	h, err := parseConnectResponse(frame)
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.ttl = time.Duration(h.timeout) * time.Millisecond
	if w.touches.relay == 0 {
		w.touches.relay = defaultRelay(w.ttl)
	}
	sent := w.touches.connect
	w.mu.Unlock()
	if err := w.link.greeted(h, sent); err != nil {
		return err
	}
	if err := w.authenticate(); err != nil {
		return err
	}
	w.link.adopt(h.session)
	w.established.Store(true)
	return w.Conn.SetDeadline(time.Time{})
}

// authenticate shows the credentials, on each connection before the library may send its
// first request. The library could do that itself, but if the credentials are refused, it
// goes on dialing for ever and tells nobody.
func (w *wire) authenticate() error {
	if w.link.auth == nil {
		return nil
	}
	auth, err := w.link.auth()
	if err != nil || auth == nil {
		return err
	}
	if _, err = w.Conn.Write(appendAuth(nil, auth)); err != nil {
		return err
	}
	frame, err := readFrame(w.in, nil, maxHandshake)
	if err != nil {
		return err
	}
	h, _, err := parseReply(frame)
	switch {
	case err != nil:
		return err
	case h.xid != xidAuth:
		return fmt.Errorf("%w: xid %d where the answer to credentials was due", errFrame, h.xid)
	case h.code != 0:
		return w.link.deny(fmt.Errorf("server %s refuses the credentials of digest:%s (code %d): is the scheme digest enabled?",
			w.RemoteAddr(), auth.User, h.code))
	}
	w.shown.Store(auth)
	return nil
}

// received notes an answer or an event.
func (w *wire) received(frame []byte, now clock.Instant) error {
	h, body, err := parseReply(frame)
	if err != nil {
		return err
	}
	if h.code == codeAuthRequired {
		return w.link.deny(fmt.Errorf("server %s demands authentication (enforce.auth.enabled); give user and password-file", w.RemoteAddr()))
	}
	w.link.heardNow(now, h.zxid)
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.awaits()
	switch h.xid {
	case xidEvent:
		kind, path, err := parseEvent(body)
		if err != nil {
			return err
		}
		for _, k := range fires(kind) {
			delete(w.armed, WatchKey{path, k})
		}
	case xidPing:
		if len(w.pings) > 0 {
			w.touches.answered(w.pings[0], now)
			w.pings = append(w.pings[:0], w.pings[1:]...)
		}
	default:
		r, ok := w.requests[h.xid]
		if !ok {
			return nil
		}
		delete(w.requests, h.xid)
		w.useful.Store(true)
		return w.answered(r, h.code, body, now)
	}
	return nil
}

// answered notes the answer to r.
func (w *wire) answered(r sentRequest, code int32, body cursor, now clock.Instant) error {
	if r.op == opMulti && code == 0 {
		code = multiCode(body)
	}
	switch {
	case code == codeSessionExpired:
		return w.link.expired()
	case r.op == opClose && code == 0:
		w.link.over.Store(true)
	case r.watch == WatchData && r.op == opExists && code == codeNoNode:
		w.armed[WatchKey{r.path, WatchExists}] = struct{}{}
	case r.watch != 0 && code == 0:
		w.armed[WatchKey{r.path, r.watch}] = struct{}{}
	}
	if committed(r.op, code) {
		w.link.Lease.ExtendFrom(w.touches.anchor(r.sent), w.ttl, r.sent)
	}
	w.touches.answered(r.sent, now)
	return nil
}

// lost notes that the connection cannot be used any more. Before Read reports that, it
// delivers an event for each watch that is armed.
func (w *wire) lost(err error) {
	w.Conn.Close()
	if !w.established.Load() {
		err = greetingError(err)
	}
	w.broken = fmt.Errorf("connection to %s: %w", w.RemoteAddr(), err)
	w.link.down(w, w.broken)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.frame = w.frame[:0]
	for key := range w.armed {
		w.frame = appendEvent(w.frame, key)
	}
	clear(w.armed)
	w.pending = w.frame
}

// greetingError adds to the error of a handshake the mistakes that a user who does not know
// ZooKeeper may have made.
func greetingError(err error) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("it was accepted, and a ZooKeeper client's greeting got no answer; is this ZooKeeper's clientPort? (%w)", err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return fmt.Errorf("it was closed upon a ZooKeeper client's greeting; the ensemble has no quorum, or the server has as many connections of this host as it takes (maxClientCnxns), or this is no clientPort, or it wants TLS (tls=on) (%w)", err)
	case IsRefusal(err):
		return fmt.Errorf("it breaks TLS off (%s): %w", RefusalHint, err)
	case errors.Is(err, errFrame):
		return fmt.Errorf("what answers there is not ZooKeeper (%w)", err)
	}
	return err
}

// RefusalHint says what may help when a server has refused a client's TLS (IsRefusal).
const RefusalHint = "does it want another certificate of this client, by cert-file and key-file?"

// IsRefusal reports whether err is a TLS alert of the server. From TLS 1.3 on a client
// learns only from its first read, after the handshake, that it was refused.
func IsRefusal(err error) bool {
	e := new(net.OpError)
	return errors.As(err, &e) && e.Op == "remote error"
}

// The wire keeps deadlines of its own for reading, and during the handshake for writing. Those
// that the library sets are far too long, and in the handshake it takes them back before it has
// read the whole answer.

func (w *wire) SetDeadline(time.Time) error     { return nil }
func (w *wire) SetReadDeadline(time.Time) error { return nil }

func (w *wire) SetWriteDeadline(t time.Time) error {
	if !w.established.Load() {
		return nil
	}
	return w.Conn.SetWriteDeadline(t)
}
