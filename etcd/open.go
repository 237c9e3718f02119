package etcd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	grpcbackoff "google.golang.org/grpc/backoff"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/security"
)

const (
	// pingTime is how often an idle connection is probed; a server refuses clients
	// that probe more often than every 5 s (etcd, --grpc-keepalive-min-time).
	pingTime    = 10 * time.Second
	pingTimeout = 3 * time.Second

	// maxReconnect is the longest pause between two attempts to connect to a server.
	// gRPC's own default is two minutes.
	maxReconnect = 3 * time.Second
)

func init() {
	backend.Register(scheme, func(ctx context.Context, u *backend.URL) (backend.Backend, error) {
		b, err := Open(ctx, u)
		if err != nil {
			return nil, err
		}
		return b, nil
	})
}

// Open opens a backend from a URL such as
//
//	etcd://h1:2379,h2:2379/app?ttl=10s&connect=5s
//
// The port is 2379 by default. The path becomes the prefix of all keys, without the
// slash that it begins with and with one at its end: the election "leader" is then
// the one that "etcdctl elect app/leader" joins. Write etcd://h1//app for keys that
// begin with a slash. Parameters are
//
//   - ttl, connect and margin: see [Options] TTL, ConnectTimeout and Margin;
//   - tls=on: speak TLS, and trust the certificate authorities of this system;
//   - ca-file: speak TLS, and trust the authorities in this PEM file instead;
//   - cert-file, key-file: PEM files of the client's own certificate;
//   - server-name: the name in the servers' certificates, where that is not the host;
//   - user, and password-file or password-env: the file or the environment variable
//     that holds the password.
//
// Open connects and opens the session. It blocks until etcd has granted its lease,
// and fails with [backend.ErrUnavailable] where no server does within the connect
// timeout, with [backend.ErrDenied] where the credentials are refused. The caller
// closes the backend.
func Open(ctx context.Context, u *backend.URL) (*Backend, error) {
	b, err := open(ctx, u)
	if err != nil {
		return nil, wrap("open", "", err)
	}
	if _, err := b.live(ctx); err != nil {
		_ = b.Close() // there is no session that could be left behind
		return nil, wrap("open", "", err)
	}
	return b, nil
}

func open(ctx context.Context, u *backend.URL) (*Backend, error) {
	o := &Options{
		TTL:            u.Duration("ttl", 0),
		ConnectTimeout: u.Duration("connect", 0),
		Margin:         u.Duration("margin", 0),
		Prefix:         prefixOf(u.Path),
	}
	tls, login := security.TLSOf(u), security.LoginOf(u)
	if err := u.Err(); err != nil {
		return nil, err
	}
	f, err := o.filled()
	if err != nil {
		return nil, err
	}
	if len(u.Hosts) == 0 {
		return nil, fmt.Errorf("%w URL %s: it names no host; write etcd://host:2379", backend.ErrInvalid, u)
	}
	cfg := clientv3.Config{
		Endpoints:            u.HostPorts("2379"),
		DialTimeout:          f.ConnectTimeout, // of the exchange of a password for a token
		DialKeepAliveTime:    pingTime,
		DialKeepAliveTimeout: pingTimeout,
		Logger:               zap.NewNop(), // what goes wrong comes back as errors
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: grpcbackoff.Config{
				BaseDelay:  100 * time.Millisecond,
				Multiplier: 1.6,
				Jitter:     0.2,
				MaxDelay:   maxReconnect,
			},
			MinConnectTimeout: maxReconnect,
		})},
	}
	if deadline, ok := ctx.Deadline(); ok {
		cfg.DialTimeout = min(cfg.DialTimeout, max(time.Until(deadline), time.Millisecond))
	}
	if err := secure(&cfg, tls, login); err != nil {
		return nil, err
	}
	client, err := clientv3.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", strings.Join(cfg.Endpoints, ", "), classify(err))
	}
	b, err := New(client, o)
	if err != nil {
		_ = client.Close() // it holds nothing yet
		return nil, err
	}
	b.owned = true
	return b, nil
}

// A Backend is a long-lived handle on one etcd cluster. It is safe for concurrent
// use.
type Backend struct {
	client  *clientv3.Client
	kv      clientv3.KV
	leases  pb.LeaseClient
	watches pb.WatchClient
	cluster pb.ClusterClient
	owned   bool // Close closes client
	o       Options

	queueing time.Duration // the constant of that name, but for tests

	log history

	ctx    context.Context // ends when everything must be given up
	cancel context.CancelFunc
	wg     sync.WaitGroup // everything that runs for the backend

	mu      sync.Mutex
	closed  bool
	session *session // the live one, or nil
	opening *opening // while one is being opened
	flat    map[string]bool

	sessions map[*session]bool // those whose leases may stand
}

var _ backend.Backend = (*Backend)(nil)

// An opening is a session on its way, shared by all who wait for it.
type opening struct {
	done    chan struct{} // closed when session or err is set
	session *session
	err     error
}

// New returns a backend that uses client, which its owner goes on owning and closes
// after the backend. It does not block and does not talk to etcd. It fails with
// [backend.ErrInvalid] where an option is not possible.
//
// The client should have DialKeepAliveTime set, to 10 s for example: without it, a
// connection whose server has vanished is noticed only by requests that get no
// answer. A client without a connection, as one that is embedded in a server, is
// refused, and so is one to which package namespace was applied: it would see other
// keys than the streams that a session opens for itself. Use [Options] Prefix.
func New(client *clientv3.Client, o *Options) (*Backend, error) {
	f, err := o.filled()
	if err != nil {
		return nil, wrap("new", "", err)
	}
	if client == nil || client.ActiveConnection() == nil {
		return nil, wrap("new", "", fmt.Errorf("%w: the client has no connection; make it with clientv3.New", backend.ErrInvalid))
	}
	if reflect.TypeOf(client.Watcher) != reflect.TypeOf(clientv3.NewWatcher(client)) || reflect.TypeOf(client.KV) != reflect.TypeOf(clientv3.NewKV(client)) {
		return nil, wrap("new", "", fmt.Errorf("%w: the client's KV or Watcher was replaced; use Options.Prefix in place of package namespace", backend.ErrInvalid))
	}
	c := conn{client.ActiveConnection()}
	b := &Backend{
		client:   client,
		kv:       clientv3.NewKVFromKVClient(pb.NewKVClient(c), client),
		leases:   pb.NewLeaseClient(c),
		watches:  pb.NewWatchClient(c),
		cluster:  pb.NewClusterClient(c),
		o:        f,
		queueing: queueing,
		flat:     make(map[string]bool),
		sessions: make(map[*session]bool),
	}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	return b, nil
}

// Session returns the live session and opens one where there is none; see
// [backend.Backend]. It blocks until etcd has granted a lease, ctx ends, or
// [Options] ConnectTimeout has passed ([backend.ErrUnavailable]).
func (b *Backend) Session(ctx context.Context) (backend.Session, error) {
	s, err := b.live(ctx)
	if err != nil {
		return nil, wrap("session", "", err)
	}
	return s, nil
}

func (b *Backend) live(ctx context.Context) (*session, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	b.mu.Lock()
	s := b.session
	b.mu.Unlock()
	if s != nil && s.alive() == nil { // alive may end it, which takes the lock
		return s, nil
	}
	b.mu.Lock()
	switch {
	case b.closed:
		b.mu.Unlock()
		return nil, backend.ErrClosed
	case b.session != nil:
		defer b.mu.Unlock()
		return b.session, nil // somebody else was faster
	case b.opening == nil:
		o := &opening{done: make(chan struct{})}
		b.opening = o
		b.wg.Go(func() { b.fulfil(o) })
	}
	o := b.opening
	b.mu.Unlock()
	select {
	case <-o.done:
		return o.session, o.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// fulfil opens a session for all who wait for o.
func (b *Backend) fulfil(o *opening) {
	s, err := b.open()
	b.mu.Lock()
	if err == nil && b.closed {
		err = backend.ErrClosed
	}
	b.opening = nil
	o.err = err
	if err == nil {
		b.session, o.session = s, s
	}
	b.mu.Unlock()
	close(o.done)
	switch {
	case s == nil:
	case err != nil:
		s.end(err)
	default:
		s.start()
	}
}

// open has etcd grant a lease, within the connect timeout.
func (b *Backend) open() (*session, error) {
	ctx, cancel := context.WithTimeout(b.ctx, b.o.ConnectTimeout)
	defer cancel()
	pause := newBackoff()
	for attempt := max(b.o.ConnectTimeout/4, minAttempt); ; attempt *= 2 {
		s, err := b.begin(ctx, attempt)
		if err == nil || !isLost(err) {
			return s, err
		}
		if pause.Sleep(ctx) != nil {
			if b.ctx.Err() != nil {
				return nil, backend.ErrClosed
			}
			return nil, fmt.Errorf("no lease was granted within %v by %s: %s%w",
				b.o.ConnectTimeout, strings.Join(b.client.Endpoints(), ", "), hint(err), err)
		}
	}
}

// begin opens a session by a lease that is asked for once. What etcd granted without
// our hearing of it holds no key, and expires.
func (b *Backend) begin(ctx context.Context, attempt time.Duration) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	term, err := b.term(ctx)
	if err != nil {
		return nil, err
	}
	g, err := b.grant(ctx, b.o.seconds())
	if err != nil {
		return nil, err
	}
	t := tenancy{lease: g.lease}
	if g.term == term {
		t.term = term
	}
	s := newSession(b, t, g.ttl)
	if s.margin > s.ttl/2 {
		err := fmt.Errorf("%w: margin %v is more than half of the TTL that etcd granted, %v", backend.ErrInvalid, s.margin, s.ttl)
		s.end(err)
		return nil, err
	}
	s.lease.Extend(g.sent, s.ttl-s.margin)
	s.proof.extend(g.sent, s.ttl-s.margin)
	if !s.lease.Hold(true) {
		err := &lostError{errors.New("the lease was granted too late")}
		s.end(err)
		return nil, err
	}
	b.o.Logger.Debug("session opened", "lease", fmt.Sprintf("%x", g.lease), "ttl", s.ttl)
	return s, nil
}

// forget makes s no longer the live session.
func (b *Backend) forget(s *session) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.session == s {
		b.session = nil
	}
}

// released notes that the lease of s is gone, or has been given up.
func (b *Backend) released(s *session) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.sessions, s)
	close(s.released)
}

// Close ends the session, if there is one. It waits for etcd for two seconds at
// most, also on behalf of sessions that ended before; where that has not answered by then, the error says that the members stand
// until etcd ends the session. A client that was given to [New] stays open. Closing
// twice is not an error.
func (b *Backend) Close() error {
	b.mu.Lock()
	first := !b.closed
	b.closed = true
	o := b.opening
	b.mu.Unlock()

	ctx, cancel := context.WithTimeout(context.Background(), closeBound)
	defer cancel()
	if o != nil {
		select {
		case <-o.done:
		case <-ctx.Done():
		}
	}
	b.mu.Lock()
	sessions := slices.Collect(maps.Keys(b.sessions))
	b.mu.Unlock()
	for _, s := range sessions {
		s.end(errClosed) // so that all are given up at once
	}
	var err error
	for _, s := range sessions {
		err = errors.Join(err, s.Close(ctx))
	}
	b.cancel()
	b.wg.Wait()
	if first && b.owned {
		err = errors.Join(err, wrap("close", "", ignoreCanceled(b.client.Close())))
	}
	return err
}

// ignoreCanceled passes over what the client's Close says of its own context.
func ignoreCanceled(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
