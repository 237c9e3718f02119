package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/backoff"
	"github.com/succession-dev/succession/internal/clock"
	"github.com/succession-dev/succession/internal/lease"
)

// A link binds one zk.Conn to one session of the coordinator. All its connections
// go through it. Once the session has ended the link is dead: it dials no more, and
// its last connection carries nothing more.
type link struct {
	dialer Dialer
	auth   *Digest
	budget time.Duration // for a dial and the handshake together
	relay  time.Duration
	lease  lease.Lease
	zxids  *zxids // the backend's

	ctx    context.Context // ends with the link; its cause wraps ErrSessionEnded
	cancel context.CancelCauseFunc
	parked chan struct{} // closed when the dead link's zk.Conn has come to rest

	over atomic.Bool // the coordinator has said that the session is over

	mu       sync.Mutex
	session  int64 // 0 until established
	ttl      time.Duration
	wire     *wire         // the present connection
	ready    bool          // requests can be sent
	up       chan struct{} // closed when ready
	heard    clock.Instant // when a server was last heard from
	zxid     int64         // the highest that this session has seen
	failures int           // connections in a row that came to nothing
	dials    int           // since a server last greeted
	since    clock.Instant // when the present connection was established
	problem  error         // why there is no connection
	refusal  error         // why a server refuses this client, whatever the session
	servers  []string
	next     int
}

func newLink(o *Options, z *zxids) *link {
	ctx, cancel := context.WithCancelCause(context.Background())
	return &link{
		dialer: o.dial,
		auth:   o.Auth,
		// Half of the connect timeout leaves time for a second server.
		budget: min(o.TTL/3, o.ConnectTimeout/2),
		relay:  o.Relay,
		zxids:  z,
		ctx:    ctx,
		cancel: cancel,
		parked: make(chan struct{}),
		up:     make(chan struct{}),
		heard:  clock.Now(),
	}
}

// ended returns why the session has ended, or nil while it lives.
func (l *link) ended() error { return context.Cause(l.ctx) }

// kill ends the session on this side, for good. From its return on nothing more is
// sent and nothing more is taken.
func (l *link) kill(why error) {
	l.mu.Lock()
	l.cancel(fmt.Errorf("%w: %w", backend.ErrSessionEnded, why))
	l.lease.End()
	w := l.wire
	l.ready = false
	l.mu.Unlock()
	if w != nil {
		w.Conn.Close()
	}
}

// expired is kill on the coordinator's word.
func (l *link) expired() error {
	l.over.Store(true)
	err := errors.New("the coordinator has ended it")
	l.kill(err)
	return err
}

// deny is kill on the word of a server that wants other credentials.
func (l *link) deny(why error) error {
	err := fmt.Errorf("%w: %w", backend.ErrDenied, why)
	l.mu.Lock()
	l.refusal = err
	l.mu.Unlock()
	l.kill(err)
	return err
}

// refused returns why a server refuses this client, or nil.
func (l *link) refused() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refusal
}

// await blocks until requests can be sent.
func (l *link) await(ctx context.Context) error {
	for {
		l.mu.Lock()
		ready, up := l.ready, l.up
		l.mu.Unlock()
		if err := l.ended(); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if ready {
			return nil
		}
		select {
		case <-up:
		case <-ctx.Done():
		case <-l.ctx.Done():
		}
	}
}

// isReady reports whether requests can be sent.
func (l *link) isReady() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ready
}

// state returns what a session shows of its link.
func (l *link) state() (session int64, ttl time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session, l.ttl
}

// silence returns how long no server has been heard from, and why.
func (l *link) silence() (time.Duration, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return clock.Since(l.heard), l.problem
}

// highest returns the highest zxid that this session has seen.
func (l *link) highest() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.zxid
}

// opening is called before a connect request for the session is sent.
func (l *link) opening(session int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session != session {
		return fmt.Errorf("client asks for session %#x on the connection of %#x", session, l.session)
	}
	return nil
}

// greeted is called with the answer to a connect request that was sent at sent.
func (l *link) greeted(h handshake, sent clock.Instant) error {
	l.mu.Lock()
	known := l.session
	l.mu.Unlock()
	switch {
	case h.session == 0 && known == 0:
		return errors.New("server refuses to open a session")
	case known != 0 && h.session != known:
		// Session 0 is how a server says that there is no such session any more.
		return l.expired()
	case h.timeout <= 0:
		return fmt.Errorf("%w: session timeout %d ms", errFrame, h.timeout)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ttl = time.Duration(h.timeout) * time.Millisecond
	l.heard = clock.Now()
	l.since = l.heard
	l.dials = 0
	l.lease.Cap(sent, l.ttl)
	return nil
}

// adopt makes session the link's, just before the library is told of it: one that the
// library never heard of, since the connection broke before, it will not ask for again.
func (l *link) adopt(session int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.session = session
}

// heardNow notes that a server was heard from, and the zxid that it has reached.
func (l *link) heardNow(now clock.Instant, zxid int64) {
	l.mu.Lock()
	l.heard = now
	l.zxid = max(l.zxid, zxid)
	l.mu.Unlock()
	l.zxids.saw(zxid)
}

// down is called when the connection w has broken.
func (l *link) down(w *wire, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wire != w {
		return
	}
	if l.ended() == nil { // else it is but the end of the session
		l.problem = why
	}
	l.wire = nil
	if l.ready {
		l.ready, l.up = false, make(chan struct{})
	}
	// A server that greets and hangs up, again and again, is no better than one
	// that does not answer.
	switch {
	case w.established.Load() && clock.Since(l.since) > l.budget:
		l.failures = 0
	case w.useful.Load():
		l.failures = min(l.failures, len(l.servers))
	}
}

// event is the library's callback. It must not block.
func (l *link) event(ev zk.Event) {
	if ev.Type != zk.EventSession {
		return
	}
	switch ev.State {
	case zk.StateHasSession:
		l.mu.Lock()
		defer l.mu.Unlock()
		if !l.ready && l.wire != nil && l.ended() == nil {
			l.ready = true
			close(l.up)
		}
	case zk.StateDisconnected:
		// On a dead link this comes just before the library answers what is
		// queued, and Conn.Close may be about to queue its close request. An
		// answer saves it a wait of one second.
		if l.ended() != nil {
			time.Sleep(5 * time.Millisecond)
		}
	}
}

// dial is the library's dialer.
func (l *link) dial(network, addr string, _ time.Duration) (net.Conn, error) {
	if err := l.backoff(); err != nil {
		return nil, err
	}
	budget := l.patience()
	ctx, cancel := context.WithTimeout(l.ctx, budget)
	defer cancel()
	deadline := time.Now().Add(budget)
	conn, err := l.dialer(ctx, network, addr)
	if err == nil {
		err = conn.SetDeadline(deadline)
	}
	if err != nil {
		if conn != nil {
			conn.Close()
		}
		l.mu.Lock()
		if l.ended() == nil {
			l.problem = err
		}
		l.mu.Unlock()
		return nil, err
	}
	w := newWire(l, conn)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.ended(); err != nil {
		conn.Close()
		return nil, err
	}
	l.wire = w
	return w, nil
}

// backoff waits before a dial: not at all until every server has failed once in a
// row, and then longer and longer.
func (l *link) backoff() error {
	if err := l.ended(); err != nil {
		return err
	}
	l.mu.Lock()
	passes := l.failures / max(1, len(l.servers))
	l.failures++
	l.mu.Unlock()
	if passes == 0 {
		return nil
	}
	wait := min(10*time.Millisecond<<min(passes, 10), l.budget/4, 500*time.Millisecond)
	pause := backoff.Backoff{Min: wait, Max: wait}
	return pause.Sleep(l.ctx)
}

// patience returns how long a dial may take, with its handshake. Each server has but a
// sixth of the session time at first when a session has lost its connection: a leader has
// less than a third left until its term ends, of which a silent server may not take all.
func (l *link) patience() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dials++
	if l.session == 0 || l.dials > len(l.servers) {
		return l.budget
	}
	return min(l.budget, l.ttl/6)
}

// The link is the library's zk.HostProvider: it goes round the servers, whose
// names are resolved anew at each dial.

func (l *link) Init(servers []string) error {
	l.servers = servers
	return nil
}

func (l *link) Len() int { return len(l.servers) }

// Next returns the next server. retryStart makes the library wait for Conn.Close
// or a second, whichever is first: the right place for a dead link, and nowhere
// else, as dial has a backoff of its own.
func (l *link) Next() (server string, retryStart bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	server = l.servers[l.next%len(l.servers)]
	l.next++
	if l.ended() == nil {
		return server, false
	}
	select {
	case <-l.parked:
	default:
		close(l.parked)
	}
	return server, true
}

func (l *link) Connected() {}

// zxids is the highest zxid that a backend has seen in its life.
type zxids struct{ highest atomic.Int64 }

func (z *zxids) saw(zxid int64) {
	for {
		h := z.highest.Load()
		if zxid <= h || z.highest.CompareAndSwap(h, zxid) {
			return
		}
	}
}
