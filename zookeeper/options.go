package zookeeper

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/internal/addresses"
	"github.com/succession-dev/succession/internal/logs"
)

// A Dialer opens a connection to a server. It must honour ctx.
type Dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// Options are the settings of a [Backend]. nil and the zero value are the defaults.
type Options struct {
	// TTL is the time after which the servers end a session that they have not heard
	// from. They may grant another (minSessionTimeout and maxSessionTimeout of
	// zoo.cfg). 0 is 10 s.
	TTL time.Duration

	// ConnectTimeout bounds the opening of a session. One server gets half of it at most. 0 is 4 s,
	// so that the caller gets an error within five seconds.
	ConnectTimeout time.Duration

	// Prefix is the znode under which all lines and records are kept, such as /app. It
	// is created if it does not exist. Empty is the root.
	Prefix string

	// As says how members are named, so that candidates of another library can stand in the same
	// lines. Empty is [ElectionSupport].
	As Format

	// NamePrefix begins the names of members, before the number that ZooKeeper appends. It is for
	// names that no Format has, so As and NamePrefix cannot both be given. It ends with '_', or
	// with one '-' behind a letter, a digit or '.', so that it cannot be taken for the sign of a
	// number.
	NamePrefix string

	// Relay is the longest time that a server takes to report to the ensemble's
	// leader which sessions it has heard from: half a tickTime, or a whole one
	// behind an observer master. A session's deadline counts from a request that
	// was answered at least Relay before the newest acknowledged write was sent. It can be at most
	// half the TTL that the servers grant. 0 is 0.3 of that TTL, which is enough unless their
	// minSessionTimeout is set below its default of two ticks.
	Relay time.Duration

	// Auth is the user to authenticate as. If it is nil, only the certificate in TLS, if there is
	// one, says who this client is.
	Auth *Digest

	// ACL says who may change what this backend creates. What exists already keeps its
	// ACL. Empty is [CreatorACL] with Auth, and [OpenACL] without. If TLS has a client
	// certificate and there is no Auth, ACL must be given.
	ACL ACL

	// TLS is the configuration of connections to secureClientPort. Its ServerName
	// is the name in the servers' certificates; empty is the host of each server. nil
	// is no TLS.
	TLS *tls.Config

	// Dialer opens the connections that TLS, if it is used, then runs on. nil tries the addresses
	// of a server's name in turn, and begins each connection with the address after the last one.
	// So an address that accepts connections and stays silent does not hide the others.
	Dialer Dialer

	// Logger gets the messages of the client library, at the level Debug. nil discards
	// them.
	Logger *slog.Logger

	// What a URL names is read again for each connection, in place of TLS and Auth.
	files *files
}

const (
	minTTL = 100 * time.Millisecond
	maxTTL = 24 * 24 * time.Hour // the protocol has a session's time as an int32 of milliseconds, up to 24.8 days
)

// filled returns a copy of o with the defaults filled in, or says what is wrong with o.
func (o *Options) filled() (*Options, error) {
	var f Options
	if o != nil {
		f = *o
	}
	f.TTL = cmp.Or(f.TTL, 10*time.Second)
	f.ConnectTimeout = cmp.Or(f.ConnectTimeout, 4*time.Second)
	if f.Dialer == nil {
		f.Dialer = addresses.New().DialContext
	}
	f.Logger = logs.Or(f.Logger)
	f.Prefix = strings.Trim(f.Prefix, "/")
	switch {
	case f.TTL < minTTL || f.TTL > maxTTL:
		return nil, fmt.Errorf("%w: TTL %v is not between %v and %v", backend.ErrInvalid, f.TTL, minTTL, maxTTL)
	case f.ConnectTimeout < 0:
		return nil, fmt.Errorf("%w: connect timeout %v is negative", backend.ErrInvalid, f.ConnectTimeout)
	case f.Relay < 0 || f.Relay > f.TTL/2:
		return nil, fmt.Errorf("%w: relay time %v is not between 0 and half the TTL %v",
			backend.ErrInvalid, f.Relay, f.TTL)
	}
	if f.Prefix != "" {
		if err := backend.CheckName(f.Prefix); err != nil {
			return nil, fmt.Errorf("prefix: %w", err)
		}
		f.Prefix = "/" + f.Prefix
	}
	if f.Auth != nil && (f.Auth.User == "" || strings.Contains(f.Auth.User, ":")) {
		return nil, fmt.Errorf("%w user %q: it must not be empty nor have a colon", backend.ErrInvalid, f.Auth.User)
	}
	if err := errors.Join(f.checkNames(), f.checkACL()); err != nil {
		return nil, err
	}
	return &f, nil
}

// serverList returns the servers as host:port.
func serverList(servers []string) ([]string, error) {
	if len(servers) == 0 {
		return nil, fmt.Errorf("%w: no ZooKeeper server is named", backend.ErrInvalid)
	}
	u, err := coordinator.ParseURL("zookeeper://" + strings.Join(servers, ","))
	if err != nil || u.Path != "" {
		return nil, fmt.Errorf("%w: servers %q: each must be host or host:port", backend.ErrInvalid, servers)
	}
	return u.HostPorts(defaultPort), nil
}
