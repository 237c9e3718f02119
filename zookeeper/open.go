package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/security"
)

func init() {
	backend.Register("zookeeper", func(ctx context.Context, u *backend.URL) (backend.Backend, error) {
		b, err := Open(ctx, u)
		if err != nil {
			return nil, err
		}
		return b, nil
	})
}

// Open opens the ensemble that u names:
//
//	zookeeper://h1:2181,h2:2181/chroot?session=10s&as=curator-latch
//
// Everything but a host is optional. Parameters are
//
//   - session, connect, relay: see [Options] SessionTimeout, ConnectTimeout, Relay;
//   - as, or prefix: see [Options] As and Prefix;
//   - tls=on: speak TLS, and trust the certificate authorities of this system;
//   - ca-file: speak TLS, and trust the authorities in this PEM file instead;
//   - cert-file, key-file: PEM files of the client's own certificate;
//   - server-name: the name in the servers' certificates, where that is not the host;
//   - user, and password-file or password-env: a user of the scheme "digest", and
//     the file or the environment variable that holds the password;
//   - acl: see [Options] ACL.
//
// Open blocks until a first session is established, ctx ends, the connect timeout
// has passed ([backend.ErrUnavailable]), or the credentials are refused
// ([backend.ErrDenied]).
func Open(ctx context.Context, u *backend.URL) (*Backend, error) {
	o := &Options{
		SessionTimeout: u.Duration("session", 0),
		ConnectTimeout: u.Duration("connect", 0),
		Relay:          u.Duration("relay", 0),
		As:             Format(u.Text("as", "")),
		Prefix:         u.Text("prefix", ""),
		ACL:            ACL(u.Text("acl", "")),
		Chroot:         u.Path,
	}
	tls, login := security.TLSOf(u), security.LoginOf(u)
	err := u.Err()
	if err == nil {
		o.TLS, err = tls.Config()
	}
	if err == nil {
		o.Auth, err = digestOf(login)
	}
	if err != nil {
		return nil, fail("open", "", err)
	}
	if len(u.Hosts) == 0 {
		return nil, fail("open", "", fmt.Errorf("%w URL %s: name the servers, as in zookeeper://h1:2181,h2:2181/app", backend.ErrInvalid, u))
	}
	b, err := New(u.HostPorts("2181"), o)
	if err != nil {
		return nil, err
	}
	if _, err := b.Session(ctx); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// digestOf returns nil where the URL names no user.
func digestOf(l security.Login) (*Digest, error) {
	user, password, err := l.Read()
	if err != nil || user == "" {
		return nil, err
	}
	return &Digest{User: user, Password: password}, nil
}

// Backend is a handle on a ZooKeeper ensemble. It is safe for concurrent use.
type Backend struct {
	servers []string
	options *Options
	zxids   zxids

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	turn   chan struct{}  // held while a session is opened, and for good by Close
	wg     sync.WaitGroup // sessions that are not torn down

	mu      sync.Mutex
	session *session // the newest; may have ended
}

var _ backend.Backend = (*Backend)(nil)

// New returns a backend for the ensemble of these servers, each host or host:port
// with 2181 as the default port. It does not connect; [Backend.Session] does. o
// may be nil. The caller closes the backend.
func New(servers []string, o *Options) (*Backend, error) {
	list, err := serverList(servers)
	if err != nil {
		return nil, fail("new", "", err)
	}
	filled, err := o.filled()
	if err != nil {
		return nil, fail("new", "", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Backend{servers: list, options: filled, ctx: ctx, cancel: cancel, turn: make(chan struct{}, 1)}, nil
}

// Session implements [backend.Backend]. It opens at most one session at a time,
// with one connection of its own.
func (b *Backend) Session(ctx context.Context) (backend.Session, error) {
	s, err := b.live(ctx)
	if err != nil {
		return nil, fail("session", "", err)
	}
	return s, nil
}

func (b *Backend) live(ctx context.Context) (*session, error) {
	select {
	case b.turn <- struct{}{}:
		defer func() { <-b.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-b.ctx.Done():
		return nil, backend.ErrClosed
	}
	if b.ctx.Err() != nil {
		return nil, backend.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if s := b.current(); s != nil && s.ctx.Err() == nil {
		return s, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, b.options.ConnectTimeout, errConnectTimeout)
	defer cancel()
	ctx, stop := bind(ctx, b.ctx, backend.ErrClosed)
	defer stop()
	s, err := b.open(ctx)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	b.session = s
	b.mu.Unlock()
	return s, nil
}

var errConnectTimeout = errors.New("no server answered within the connect timeout")

func (b *Backend) current() *session {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.session
}

// open opens a session and makes sure that it stands on the log that this backend
// has seen.
func (b *Backend) open(ctx context.Context) (*session, error) {
	before := b.zxids.highest.Load()
	s, err := newSession(b)
	if err != nil {
		return nil, err
	}
	err = s.link.await(ctx)
	if err == nil {
		// The first request is a quorum write: its zxid is above that of
		// everything that was committed before, and its answer starts the lease.
		_, err = do(ctx, s, barrier("/"))
	}
	if refusal := s.link.refused(); refusal != nil {
		err = refusal
	}
	if now := s.link.highest(); err == nil && now < before {
		err = fmt.Errorf("%w: its log stands at zxid %#x and stood at %#x before, so it was rebuilt or restored and tokens would fall; "+
			"raise the fence in the election's record above every token given out, then restart this process",
			backend.ErrReset, now, before)
	}
	if err == nil {
		return s, nil
	}
	s.abandon(err)
	switch {
	case errors.Is(err, errConnectTimeout):
		_, problem := s.link.silence()
		err = fmt.Errorf("%w: %w of %v", backend.ErrUnavailable, errConnectTimeout, b.options.ConnectTimeout)
		if problem != nil {
			err = fmt.Errorf("%w; last problem: %w", err, problem)
		}
	case errors.Is(err, backend.ErrSessionEnded):
		// Hidden: it is not the end of a session that the caller has had.
		err = fmt.Errorf("%w: a new session came to nothing: %v", backend.ErrUnavailable, err)
	}
	return nil, err
}

// closeTimeout bounds Close, beside what the library needs to come to rest.
const closeTimeout = 3 * time.Second

// Close implements [backend.Backend]. It takes at most 3 s while the ensemble
// is unreachable.
func (b *Backend) Close() error {
	b.cancel()
	b.turn <- struct{}{} // an opening in progress gives up at once
	defer func() { <-b.turn }()
	var err error
	if s := b.current(); s != nil {
		ctx, cancel := context.WithTimeout(context.Background(), min(closeTimeout, b.options.ConnectTimeout))
		err = s.Close(ctx)
		cancel()
	}
	b.wg.Wait()
	return err
}
