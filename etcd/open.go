package etcd

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	grpcbackoff "google.golang.org/grpc/backoff"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/internal/security"
)

const (
	// pingTime is how long a connection is silent before it is probed: the shortest that gRPC
	// allows (grpc, internal.KeepaliveMinPingTime). A server refuses clients that probe more
	// often than every 5 s (etcd, --grpc-keepalive-min-time).
	pingTime = 10 * time.Second

	// pingTimeout is the longest time that a probe waits for its answer. It is also how long
	// data may stay unacknowledged before the kernel gives up the connection (tcp(7),
	// TCP_USER_TIMEOUT, which gRPC sets): so a connection whose packets are lost is left
	// after that time, and one to a process that stands still after both.
	pingTimeout = 3 * time.Second

	// maxReconnect is the longest pause between two attempts to connect to a server.
	// gRPC's own default is two minutes. It is also the longest attempt.
	maxReconnect = 3 * time.Second

	// maxAnswer is the longest answer that is read. The bound of etcd's client is 2 GiB, that of
	// gRPC 4 MiB. A line of ten thousand members with the longest values takes a third of it.
	maxAnswer = 128 << 20
)

// Open opens a backend from a URL such as
//
//	etcd://h1:2379,h2:2379/app?ttl=10s&connect=5s
//
// The port is 2379 by default. The path becomes the prefix of all keys, without its first
// slash and with one at its end: the election "leader" is then the one that
// "etcdctl elect app/leader" joins. Write etcd://h1//app for keys that begin with a slash.
// Parameters are
//
//   - ttl, connect and margin: see [Options] TTL, ConnectTimeout and Margin;
//   - tls=on: speak TLS, and trust the certificate authorities of this system;
//   - ca-file: speak TLS, and trust the authorities in this PEM file instead;
//   - cert-file, key-file: PEM files of the client's own certificate;
//   - server-name: the name in the servers' certificates, where that is not the host;
//   - user, and password-file or password-env: the file or the environment variable
//     that holds the password.
//
// Open reads the files that the URL names. It does not connect; [Backend.Session] does. The caller
// closes the backend.
func Open(u *coordinator.URL) (*Backend, error) {
	b, err := open(u)
	return b, driver.Wrap("open", "", err)
}

// optionsOf returns the options that a URL names, and where what is secret is. It reads no files.
func optionsOf(u *coordinator.URL) (*Options, security.TLS, security.Login, error) {
	o := &Options{
		TTL:            u.Duration("ttl", 0),
		ConnectTimeout: u.Duration("connect", 0),
		Margin:         u.Duration("margin", 0),
		Prefix:         prefixOf(u.Path),
	}
	tls, login := security.TLSOf(u), security.LoginOf(u)
	return o, tls, login, u.Err()
}

func open(u *coordinator.URL) (*Backend, error) {
	o, tls, login, err := optionsOf(u)
	if err != nil {
		return nil, err
	}
	f, err := o.filled()
	if err != nil {
		return nil, err
	}
	if len(u.Hosts) == 0 {
		return nil, fmt.Errorf("%w URL %s: it names no host; write etcd://host:2379", backend.ErrInvalid, u)
	}
	hosts := u.HostPorts(defaultPort)
	proxy, err := proxyFor(hosts[0])
	if err != nil {
		return nil, err
	}
	endpoints := slices.Clone(hosts)
	for i, h := range endpoints {
		endpoints[i] = strings.Replace(h, "%", "%25", 1) // gRPC reads them as URLs: a zone must be escaped
	}
	cfg := clientv3.Config{
		Endpoints:            endpoints,
		DialTimeout:          f.ConnectTimeout, // of the exchange of a password for a token
		DialKeepAliveTime:    pingTime,
		DialKeepAliveTimeout: min(pingTimeout, max(f.TTL/4, time.Second)),
		Logger:               zap.NewNop(), // what goes wrong comes back as errors
		MaxCallRecvMsgSize:   maxAnswer,
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: grpcbackoff.Config{
				BaseDelay:  100 * time.Millisecond,
				Multiplier: 1.6,
				Jitter:     0.2,
				MaxDelay:   maxReconnect,
			},
			MinConnectTimeout: min(max(f.TTL/8, minAttempt), maxReconnect),
		})},
	}
	var conns *connections
	if proxy == "" {
		conns = newConnections(f.TTL / 4)
		cfg.DialOptions = append(cfg.DialOptions, grpc.WithContextDialer(conns.dial))
	}
	if err := secure(&cfg, tls, login); err != nil {
		return nil, err
	}
	b := newBackend(f)
	b.hosts, b.proxy, b.conns = endpoints, proxy, conns
	b.dial = func(ctx context.Context) (*clientv3.Client, error) {
		cfg := cfg
		var cancel context.CancelFunc
		cfg.Context, cancel = context.WithCancel(context.Background()) // of the client, for as long as it lives
		made := context.AfterFunc(ctx, cancel)
		if deadline, ok := ctx.Deadline(); ok {
			cfg.DialTimeout = min(cfg.DialTimeout, max(time.Until(deadline), time.Millisecond))
		}
		var err error
		if cfg.Username, cfg.Password, err = login.Read(); err != nil { // it may have been replaced since
			return nil, err
		}
		client, err := clientv3.New(cfg)
		if err != nil {
			cancel()
			return nil, err
		}
		if !made() {
			closeClient(client)
			return nil, context.Cause(ctx)
		}
		if login.User != "" {
			login.Password.Accept(cfg.Password) // clientv3.New has exchanged it for the first token
			client.Auth = newAuthenticator(client.Ctx(), client.Auth, login.Password)
		}
		return client, nil
	}
	return b, nil
}

// proxyFor returns the proxy through which gRPC connects to the server, or nothing. gRPC does so,
// with TLS and without, if the environment has HTTPS_PROXY, and NO_PROXY does not name the host.
// It decides by the first server for all. What it reports of a connection that fails may be about
// the proxy, and does not say so.
func proxyFor(server string) (string, error) {
	u, err := http.ProxyFromEnvironment(&http.Request{URL: &url.URL{Scheme: "https", Host: server}})
	switch {
	case err != nil:
		return "", fmt.Errorf("%w environment variable HTTPS_PROXY: %w", backend.ErrInvalid, err)
	case u == nil:
		return "", nil
	}
	return u.Redacted(), nil
}

// servers returns how an error calls the servers.
func servers(hosts []string, proxy string) string {
	s := strings.Join(hosts, ", ")
	if proxy != "" {
		s += " by way of the proxy " + proxy + ", which HTTPS_PROXY names and NO_PROXY does not exclude"
	}
	return s
}

// A Backend is a long-lived handle on one etcd cluster. It is safe for concurrent
// use.
type Backend struct {
	dial  func(ctx context.Context) (*clientv3.Client, error) // nil if the client was given to New, which Close leaves open
	conns *connections                                        // of that client; nil if it connects in another way
	hosts []string                                            // for messages
	proxy string                                              // of the environment, that the client connects through; empty for none

	// The client and what is made of it are nil until the first session is opened.
	client  *clientv3.Client
	kv      clientv3.KV
	txns    kvClient
	leases  pb.LeaseClient
	watches pb.WatchClient
	cluster pb.ClusterClient

	closeClient sync.Once

	o Options

	queueing time.Duration // the constant of that name, except in tests
	strict   releases      // the variable of that name, except in tests

	log      history
	unlisted atomic.Bool   // etcd denies the list of its members
	aged     atomic.Bool   // it has been looked how old the servers are
	turns    chan struct{} // has a value for each request about keys that is on its way
	sessions *kit.Sessions

	mu     sync.Mutex
	flat   map[string]bool          // lines that have been checked for nesting
	asking map[string]chan struct{} // those that are being checked; closed when that is done
}

var _ backend.Backend = (*Backend)(nil)

// New returns a backend that uses client. The caller still owns client, and closes it
// after the backend. New does not block and does not talk to etcd. It fails with
// [backend.ErrInvalid] if the client or an option cannot be used.
//
// The client should have DialKeepAliveTime set, to 10 s for example. Without it, only requests that
// get no answer show that a connection's server has vanished.
//
// New refuses a client without a connection, such as one that is embedded in a server. It
// also refuses a client to which package namespace was applied: that client would see other keys
// than the session's own streams. Use [Options] Prefix.
func New(client *clientv3.Client, o *Options) (*Backend, error) {
	f, err := o.filled()
	if err != nil {
		return nil, driver.Wrap("new", "", err)
	}
	if client == nil || client.ActiveConnection() == nil {
		return nil, driver.Wrap("new", "", fmt.Errorf("%w: the client has no connection; make it with clientv3.New", backend.ErrInvalid))
	}
	if reflect.TypeOf(client.Watcher) != reflect.TypeOf(clientv3.NewWatcher(client)) || reflect.TypeOf(client.KV) != reflect.TypeOf(clientv3.NewKV(client)) {
		return nil, driver.Wrap("new", "", fmt.Errorf("%w: the client's KV or Watcher was replaced; use Options.Prefix in place of package namespace", backend.ErrInvalid))
	}
	b := newBackend(f)
	b.hosts = client.Endpoints()
	b.use(client)
	return b, nil
}

// newBackend returns a backend without a client.
func newBackend(f Options) *Backend {
	b := &Backend{
		o:        f,
		queueing: queueing,
		strict:   strict,
		turns:    make(chan struct{}, maxTurns),
		flat:     make(map[string]bool),
		asking:   make(map[string]chan struct{}),
	}
	b.sessions = kit.NewSessions(kit.Config{Scheme: driver, Open: b.open, Connect: f.ConnectTimeout, Attempt: max(f.ConnectTimeout/4, minAttempt), Passing: func(err error, _ time.Duration) bool { return isLost(err) }, Patience: closeBound})
	return b
}

// use makes client the one that the backend uses.
func (b *Backend) use(client *clientv3.Client) {
	c := client.ActiveConnection()
	b.client = client
	b.txns = kvClient{pb.NewKVClient(c)}
	b.kv = clientv3.NewKVFromKVClient(b.txns, client)
	b.leases = pb.NewLeaseClient(c)
	b.watches = pb.NewWatchClient(c)
	b.cluster = pb.NewClusterClient(c)
}

// Session returns the live session, and opens one if there is none; see
// [backend.Backend]. It blocks until etcd has granted a lease, ctx ends, or [Options]
// ConnectTimeout has passed ([backend.ErrUnavailable]).
func (b *Backend) Session(ctx context.Context) (backend.Session, error) {
	return b.sessions.Session(ctx)
}

// open opens a session. Before the first it makes the client. That sends nothing, unless a password has to be
// exchanged for a token.
func (b *Backend) open(ctx context.Context) (kit.Session, error) {
	if b.client == nil {
		client, err := b.dial(ctx)
		if err != nil {
			return nil, fmt.Errorf("connect to %s: %w", servers(b.hosts, b.proxy), classify(err))
		}
		b.use(client)
	}
	begun := time.Now()
	s, err := b.begin(ctx)
	b.conns.answered(begun, err)
	if err == nil {
		return s, nil
	}
	if isLost(err) {
		means := ""
		if b.proxy == "" {
			means = hint(err)
		}
		err = fmt.Errorf("no lease was granted by %s: %s%w", servers(b.hosts, b.proxy), means, err)
	}
	return nil, err
}

// begin opens a session with a lease that it asks for once. If the answer is lost, etcd
// may have granted a lease that we do not know of; it holds no key, and expires. A server that has lost its leader refuses at once.
func (b *Backend) begin(ctx context.Context) (*session, error) {
	ctx = clientv3.WithRequireLeader(ctx)
	term, err := b.term(ctx)
	if err != nil {
		return nil, err
	}
	g, err := b.grant(ctx, newLeaseID(), b.o.seconds())
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
		s.End(err)
		return nil, err
	}
	s.lease.Extend(g.sent, s.ttl-s.margin)
	s.proof.extend(g.sent, s.ttl-s.margin)
	if !s.lease.Hold(true) {
		err := &lostError{errors.New("the lease was granted too late")}
		s.End(err)
		return nil, err
	}
	b.o.Logger.Debug("session opened", "lease", fmt.Sprintf("%x", g.lease), "ttl", s.ttl)
	s.Start(s.keepAlive, s.watcher.run, s.ghosts.run, s.heedVersion)
	return s, nil
}

// Close ends the session, if there is one. It waits for etcd for two seconds at most,
// also on behalf of sessions that ended before. If etcd has not answered by then, the
// error says that the members stand until etcd ends the session. A client that was given
// to [New] stays open. Closing twice is not an error.
func (b *Backend) Close() error {
	err := b.sessions.Close()
	if b.dial != nil && b.client != nil {
		b.closeClient.Do(func() {
			err = errors.Join(err, driver.Wrap("close", "", closeClient(b.client)))
		})
	}
	return err
}

// closeClient closes a client that the backend has made. No goroutine of it is left.
func closeClient(c *clientv3.Client) error {
	err := c.Close()
	if a, ok := c.Auth.(*authenticator); ok {
		a.end()
	}
	if errors.Is(err, context.Canceled) { // it has ended the client's context, and may say so
		return nil
	}
	return err
}
