package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/internal/security"
	"github.com/succession-dev/succession/zookeeper/internal/wire"
)

// Open opens the ensemble that u names:
//
//	zookeeper://h1:2181,h2:2181/prefix?ttl=10s&as=curator-latch
//
// Only a host is required. The path is [Options] Prefix. Parameters are
//
//   - ttl, connect, relay: see [Options] TTL, ConnectTimeout, Relay;
//   - as, or name-prefix: see [Options] As and NamePrefix;
//   - tls=on: speak TLS, and trust the certificate authorities of this system;
//   - ca-file: speak TLS, and trust the authorities in this PEM file instead;
//   - cert-file, key-file: PEM files of the client's own certificate;
//   - server-name: the name in the servers' certificates, if it is not the host;
//   - user, and password-file or password-env: a user of the scheme "digest", and
//     the file or the environment variable that holds the password;
//   - acl: see [Options] ACL.
//
// Open reads the files that the URL names. It does not connect; [Backend.Session] does. The
// caller closes the backend.
func Open(u *coordinator.URL) (*Backend, error) {
	o, err := optionsOf(u)
	if err == nil {
		o.TLS, err = o.files.tls.Config()
	}
	if err == nil {
		o.Auth, err = o.files.digest()
	}
	if err != nil {
		return nil, driver.Wrap("open", "", err)
	}
	if len(u.Hosts) == 0 {
		return nil, driver.Wrap("open", "", fmt.Errorf("%w URL %s: name the servers, as in zookeeper://h1:2181,h2:2181/app", backend.ErrInvalid, u))
	}
	return New(u.HostPorts(defaultPort), o)
}

// optionsOf returns the options that a URL names. It reads no files.
func optionsOf(u *coordinator.URL) (*Options, error) {
	o := &Options{
		TTL:            u.Duration("ttl", 0),
		ConnectTimeout: u.Duration("connect", 0),
		Relay:          u.Duration("relay", 0),
		As:             Format(u.Text("as", "")),
		NamePrefix:     u.Text("name-prefix", ""),
		ACL:            ACL(u.Text("acl", "")),
		Prefix:         u.Path,
	}
	o.files = &files{security.TLSOf(u), security.LoginOf(u)}
	return o, u.Err()
}

// Backend is a handle on a ZooKeeper ensemble. It is safe for concurrent use.
type Backend struct {
	servers  []string
	options  *Options
	zxids    wire.Zxids
	sessions *kit.Sessions
}

var _ backend.Backend = (*Backend)(nil)

// New returns a backend for the ensemble of these servers, each host or host:port; the
// default port is 2181. It does not connect; [Backend.Session] does. o may be nil. The
// caller closes the backend.
func New(servers []string, o *Options) (*Backend, error) {
	list, err := serverList(servers)
	if err != nil {
		return nil, driver.Wrap("new", "", err)
	}
	filled, err := o.filled()
	if err != nil {
		return nil, driver.Wrap("new", "", err)
	}
	b := &Backend{servers: list, options: filled}
	b.sessions = kit.NewSessions(kit.Config{
		Scheme:   driver,
		Open:     b.open,
		Connect:  filled.ConnectTimeout,
		Patience: min(closeTimeout, filled.ConnectTimeout),
	})
	return b, nil
}

// Session implements [backend.Backend]. Each session has a connection of its own.
func (b *Backend) Session(ctx context.Context) (backend.Session, error) {
	return b.sessions.Session(ctx)
}

// open opens a session, and checks that the coordinator's log has come as far as this
// backend has seen it.
func (b *Backend) open(ctx context.Context) (kit.Session, error) {
	before := b.zxids.Highest()
	s, err := newSession(b)
	if err != nil {
		return nil, err
	}
	err = s.link.Await(ctx)
	if err == nil {
		// The first request is a quorum write: its zxid is above that of everything
		// that was committed before, and its answer gives the session a deadline.
		_, err = retry(ctx, s, barrier("/"))
	}
	if refusal := s.link.Refused(); refusal != nil {
		err = refusal
	}
	if now := s.link.Highest(); err == nil && now < before {
		err = fmt.Errorf("%w: its log stands at zxid %#x and stood at %#x before, so it was rebuilt or restored and tokens would fall; "+
			"raise the fence in the election's record above every token given out, then restart this process",
			backend.ErrReset, now, before)
	}
	if err == nil {
		s.Start(append(slices.Repeat([]func(){s.runCalls}, maxCallers), s.keep, s.sweep)...)
		return s, nil
	}
	s.abandon(err)
	switch {
	case ctx.Err() != nil:
		_, problem := s.link.Silence()
		err = fmt.Errorf("%w: no server answered within the connect timeout of %v", backend.ErrUnavailable, b.options.ConnectTimeout)
		if problem != nil {
			err = fmt.Errorf("%w; last problem: %w", err, problem)
		}
	case errors.Is(err, backend.ErrSessionEnded):
		// Not wrapped: it is not the end of a session that the caller has had.
		err = fmt.Errorf("%w: a new session came to nothing: %v", backend.ErrUnavailable, err)
	}
	return nil, err
}

// closeTimeout bounds Close, apart from the second for which the library waits for an answer when it stops.
const closeTimeout = 2 * time.Second

// Close implements [backend.Backend]. It takes at most 3 s if the ensemble cannot be
// reached.
func (b *Backend) Close() error { return b.sessions.Close() }
