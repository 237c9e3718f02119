package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/backend/kit/clock"
	"github.com/succession-dev/succession/backend/kit/lease"
)

// A Link binds one zk.Conn to one session of the coordinator. The zk.Conn makes all its
// connections through the link. Once the session has ended, the link is dead: it dials no
// more, and its last connection carries nothing more.
type Link struct {
	dialer  func(ctx context.Context, network, addr string) (net.Conn, error)
	auth    func() (*Auth, error)
	connect time.Duration // in which a session is to be opened
	relay   time.Duration
	Lease   lease.Lease
	zxids   *Zxids // the backend's

	ctx    context.Context // ends with the link; its cause wraps ErrSessionEnded
	cancel context.CancelCauseFunc
	parked chan struct{} // see Parked

	over atomic.Bool // the coordinator has said that the session is over

	mu       sync.Mutex
	session  int64         // 0 until established
	ttl      time.Duration // that is asked for, and then that the servers have granted
	wire     *wire         // the present connection
	ready    bool          // requests can be sent
	up       chan struct{} // closed when ready
	heard    clock.Instant // when a server was last heard from
	zxid     int64         // the highest that this session has seen
	failures int           // connections in a row that failed
	dials    int           // since a server last greeted
	since    clock.Instant // when the present connection was established
	breaks   int           // connections that have broken
	problem  error         // why there is no connection
	refusal  error         // see Refused
	servers  []string
	next     int
}

// Config says how a link connects.
type Config struct {
	Dial    func(ctx context.Context, network, addr string) (net.Conn, error)
	Auth    func() (*Auth, error) // asked for each connection; nil, as what it returns, for none
	TTL     time.Duration         // that will be asked for
	Connect time.Duration         // in which a session is to be opened
	Relay   time.Duration         // 0 for what is enough for the TTL that is granted
}

// Auth is a user of the authentication scheme digest.
type Auth struct{ User, Password string }

// New returns the link of a session that is about to be opened. The caller must end it with
// Kill.
func New(c Config, z *Zxids) *Link {
	ctx, cancel := context.WithCancelCause(context.Background())
	return &Link{
		dialer:  c.Dial,
		auth:    c.Auth,
		connect: c.Connect,
		relay:   c.Relay,
		ttl:     c.TTL,
		zxids:   z,
		ctx:     ctx,
		cancel:  cancel,
		parked:  make(chan struct{}),
		up:      make(chan struct{}),
		heard:   clock.Now(),
	}
}

// Context returns a context that ends with the link. Its cause is Ended.
func (l *Link) Context() context.Context { return l.ctx }

// Parked is closed when the link is dead and its zk.Conn asks for another server: all that
// is left to do is to close the zk.Conn.
func (l *Link) Parked() <-chan struct{} { return l.parked }

// Over reports whether the coordinator has said that the session is over.
func (l *Link) Over() bool { return l.over.Load() }

// Relay returns the longest time that a server takes to report to the ensemble's leader
// which sessions it has heard from.
func (l *Link) Relay() time.Duration {
	if l.relay != 0 {
		return l.relay
	}
	_, ttl := l.State()
	return defaultRelay(ttl)
}

// Ended returns why the session has ended, or nil while it lives.
func (l *Link) Ended() error { return context.Cause(l.ctx) }

// Kill ends the session on this side, for good. Once it has returned, nothing more is sent
// or received.
func (l *Link) Kill(why error) {
	l.mu.Lock()
	l.cancel(kit.SessionEnded(why))
	l.Lease.End()
	w := l.wire
	l.ready = false
	l.mu.Unlock()
	if w != nil {
		w.Conn.Close()
	}
}

// expired is Kill because the coordinator has ended the session.
func (l *Link) expired() error {
	l.over.Store(true)
	err := errors.New("the coordinator has ended it")
	l.Kill(err)
	return err
}

// refuse is Kill because no session can be had with the settings of this client.
func (l *Link) refuse(why error) error {
	l.mu.Lock()
	l.refusal = why
	l.mu.Unlock()
	l.Kill(why)
	return why
}

// deny is refuse because a server wants other credentials.
func (l *Link) deny(why error) error { return l.refuse(fmt.Errorf("%w: %w", backend.ErrDenied, why)) }

// Shown returns the credentials that the present connection has shown, or nil.
func (l *Link) Shown() *Auth {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wire == nil {
		return nil
	}
	return l.wire.shown.Load()
}

// Renew reports whether there are other credentials by now than these, which a connection has
// shown. If that is the present connection, Renew breaks it: the next one shows the new ones.
func (l *Link) Renew(shown *Auth) bool {
	if shown == nil {
		return false
	}
	now, err := l.auth()
	if err != nil || now == nil || *now == *shown {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if w := l.wire; w != nil && w.shown.Load() == shown {
		w.Conn.Close()
		l.notReady()
	}
	return true
}

// notReady notes that no request can be sent, until the library has another connection. The
// caller holds mu.
func (l *Link) notReady() {
	if l.ready {
		l.ready, l.up = false, make(chan struct{})
	}
}

// Refused returns why no session can be had with the settings of this client, or nil.
func (l *Link) Refused() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refusal
}

// Await blocks until requests can be sent.
func (l *Link) Await(ctx context.Context) error {
	for {
		l.mu.Lock()
		ready, up := l.ready, l.up
		l.mu.Unlock()
		if err := l.Ended(); err != nil {
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

// IsReady reports whether requests can be sent.
func (l *Link) IsReady() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ready
}

// State returns the session's number, 0 until it is established, and the time that the
// servers have granted it; until then the time that is asked for.
func (l *Link) State() (session int64, ttl time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session, l.ttl
}

// Breaks returns how many connections have broken. When one does, it is counted before the
// watches of the session fire.
func (l *Link) Breaks() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.breaks
}

// Silence returns for how long no server has been heard from, and why there is no
// connection.
func (l *Link) Silence() (time.Duration, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return clock.Since(l.heard), l.problem
}

// Highest returns the highest zxid that this session has seen.
func (l *Link) Highest() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.zxid
}

// opening is called before a connect request for the session is sent.
func (l *Link) opening(session int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session != session {
		return fmt.Errorf("client asks for session %#x on the connection of %#x", session, l.session)
	}
	return nil
}

// greeted is called with the answer to a connect request that was sent at sent.
func (l *Link) greeted(h handshake, sent clock.Instant) error {
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
	ttl := time.Duration(h.timeout) * time.Millisecond
	if l.relay > ttl/2 {
		// A leader's deadline would pass between two heartbeats.
		return l.refuse(fmt.Errorf("%w: relay time %v does not fit the session of %v that the servers grant: at most %v does",
			backend.ErrInvalid, l.relay, ttl, ttl/2))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ttl = ttl
	l.heard = clock.Now()
	l.since = l.heard
	l.dials = 0
	l.Lease.Cap(sent, l.ttl)
	return nil
}

// adopt makes session the link's, just before the library is told of it. Not earlier: if the
// connection breaks before that, the library never hears of the session, and will not ask
// for it again.
func (l *Link) adopt(session int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.session = session
}

// heardNow notes that a server was heard from, and the zxid that it has reached.
func (l *Link) heardNow(now clock.Instant, zxid int64) {
	l.mu.Lock()
	l.heard = now
	l.zxid = max(l.zxid, zxid)
	l.mu.Unlock()
	l.zxids.saw(zxid)
}

// down is called when the connection w has broken.
func (l *Link) down(w *wire, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wire != w {
		return
	}
	if l.Ended() == nil { // otherwise the end of the session has closed it
		l.problem = why
	}
	l.wire = nil
	l.breaks++
	l.notReady()
	// A server that accepts the session and then closes the connection, again and again,
	// counts as one that does not answer.
	switch {
	case w.established.Load() && clock.Since(l.since) > l.budget():
		l.failures = 0
	case w.useful.Load():
		l.failures = min(l.failures, len(l.servers))
	}
}

// Event is the library's callback. It must not block.
func (l *Link) Event(ev zk.Event) {
	if ev.Type != zk.EventSession {
		return
	}
	switch ev.State {
	case zk.StateHasSession:
		l.mu.Lock()
		defer l.mu.Unlock()
		if !l.ready && l.wire != nil && l.Ended() == nil {
			l.ready = true
			close(l.up)
		}
	case zk.StateDisconnected:
		// On a dead link this comes just before the library answers what is queued. If
		// Conn.Close is about to queue its close request, that is then answered too, and
		// does not wait for one second.
		if l.Ended() != nil {
			time.Sleep(5 * time.Millisecond)
		}
	}
}

// Dial opens a connection, for the library.
func (l *Link) Dial(network, addr string, _ time.Duration) (net.Conn, error) {
	if err := l.backoff(); err != nil {
		return nil, err
	}
	budget := l.patience()
	ctx, cancel := context.WithTimeout(l.ctx, budget)
	defer cancel()
	deadline := time.Now().Add(budget)
	conn, err := l.dialer(ctx, network, addr)
	if e := new(net.OpError); errors.As(err, &e) && e.Op == "dial" && (errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)) {
		err = greetingError(err) // it was accepted, and closed at once
	}
	if err == nil {
		err = conn.SetDeadline(deadline)
	}
	if err != nil {
		if conn != nil {
			conn.Close()
		}
		l.mu.Lock()
		if l.Ended() == nil {
			l.problem = err
		}
		l.mu.Unlock()
		return nil, err
	}
	w := newWire(l, conn)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.Ended(); err != nil {
		conn.Close()
		return nil, err
	}
	l.wire = w
	return w, nil
}

// backoff waits before a dial. Until every server has failed once in a row it does not wait,
// and then longer and longer.
func (l *Link) backoff() error {
	if err := l.Ended(); err != nil {
		return err
	}
	l.mu.Lock()
	passes := l.failures / max(1, len(l.servers))
	l.failures++
	longest := l.budget() / 4
	l.mu.Unlock()
	if passes == 0 {
		return nil
	}
	wait := min(10*time.Millisecond<<min(passes, 10), longest, 500*time.Millisecond)
	pause := backoff.Backoff{Min: wait, Max: wait}
	return pause.Sleep(l.ctx)
}

// patience returns how long a dial may take, with its handshake. When a session has lost its
// connection, each server at first has only an eighth of the session time: a leader has little
// more left until its term ends if the connection had fallen silent, and one more silent server
// must not take all of that. When a session is opened, each server at first has a third of the time that
// is asked for. The servers may grant more, so each has longer in the next round. With half of the connect timeout there is
// time for a second server.
func (l *Link) patience() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dials++
	first, later := min(l.budget(), l.ttl/8), l.budget()
	if l.session == 0 {
		first, later = l.budget(), l.connect/2
	}
	if l.dials <= len(l.servers) {
		return first
	}
	return later
}

// budget is how long a server may take at most, if others may be there. The caller holds mu.
func (l *Link) budget() time.Duration { return min(l.ttl/3, l.connect/2) }

// The link is the library's zk.HostProvider. It names the servers in turn, and their names
// are resolved anew at each dial.

func (l *Link) Init(servers []string) error {
	l.servers = servers
	return nil
}

func (l *Link) Len() int { return len(l.servers) }

// Next returns the next server. retryStart makes the library wait for Conn.Close or for a
// second, whichever is first. That is right for a dead link, and only there, because Dial
// has a backoff of its own.
func (l *Link) Next() (server string, retryStart bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	server = l.servers[l.next%len(l.servers)]
	l.next++
	if l.Ended() == nil {
		return server, false
	}
	select {
	case <-l.parked:
	default:
		close(l.parked)
	}
	return server, true
}

func (l *Link) Connected() {}

// Zxids keeps the highest zxid that a backend has seen in its life.
type Zxids struct{ highest atomic.Int64 }

// Highest returns the highest zxid that the backend has seen.
func (z *Zxids) Highest() int64 { return z.highest.Load() }

func (z *Zxids) saw(zxid int64) {
	for {
		h := z.highest.Load()
		if zxid <= h || z.highest.CompareAndSwap(h, zxid) {
			return
		}
	}
}
