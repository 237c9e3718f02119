package target

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/succession-dev/succession/backend"
)

// An operator does what people do to a coordinator past its elections, with the
// coordinator's own client. Names are those of elections and records.
type operator interface {
	// exists reports whether anything is stored at the name or below it.
	exists(ctx context.Context, name string) (bool, error)
	// clear deletes everything at the name and below it.
	clear(ctx context.Context, name string) error
	// remove deletes a member.
	remove(ctx context.Context, m backend.Member) error
	// drop deletes an election.
	drop(ctx context.Context, line string) error
}

// kinds are the kinds of coordinators, by their scheme.
var kinds = map[string]struct {
	port     string // by default; empty where there are no servers
	slack    func(ttl time.Duration) time.Duration
	operator func(u *backend.URL) (operator, error)
	// unfit says, by rule ID, why the suite cannot tell from here whether a rule is
	// kept.
	unfit map[string]string
}{
	// A server ends sessions at whole ticks, and reports to its leader at half ones; a
	// session is two ticks at the least.
	"zookeeper": {"2181", func(ttl time.Duration) time.Duration { return ttl + ttl/4 }, newZooKeeper, nil},
	// It looks for leases that are over twice a second (etcd, server/lease/lessor.go).
	"etcd": {"2379", func(time.Duration) time.Duration { return time.Second }, newEtcd, nil},
	// It ends a session after twice its time.
	"consul": {"8500", func(ttl time.Duration) time.Duration { return ttl + ttl/4 }, newConsul, map[string]string{
		"G9.campaigns": "it would take a connection that is kept for the next request for a goroutine that was left",
	}},
	"local": {"", func(time.Duration) time.Duration { return 0 }, newLocal, nil},
}

// usesTLS reports whether the URL, or what its driver takes from the environment,
// asks for TLS.
func usesTLS(u *backend.URL) bool {
	for _, p := range []string{"tls", "ca-file", "cert-file", "key-file", "server-name"} {
		if u.Text(p, "") != "" {
			return true
		}
	}
	if u.Scheme == "consul" {
		on, _ := strconv.ParseBool(os.Getenv("CONSUL_HTTP_SSL")) // as Consul's client reads it
		return on
	}
	return false
}

// tlsConfig returns what the URL says about TLS; nil for no TLS.
func tlsConfig(u *backend.URL) (*tls.Config, error) {
	if !usesTLS(u) {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: u.Text("server-name", "")}
	if file := u.Text("ca-file", ""); file != "" {
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s holds no certificate", file)
		}
	}
	if file := u.Text("cert-file", ""); file != "" {
		pair, err := tls.LoadX509KeyPair(file, u.Text("key-file", ""))
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// secret returns what stands in the file or the environment variable that the
// parameters WHAT-file and WHAT-env name.
func secret(u *backend.URL, what string) (string, error) {
	if file := u.Text(what+"-file", ""); file != "" {
		b, err := os.ReadFile(file)
		return strings.TrimSpace(string(b)), err
	}
	if name := u.Text(what+"-env", ""); name != "" {
		return os.Getenv(name), nil
	}
	return "", nil
}

// bounded calls f, a call of a client that heeds no context, and stop when ctx ends
// first, which makes f return.
func bounded(ctx context.Context, stop func(), f func() error) error {
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	err := f()
	if ctx.Err() != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	return err
}

// errPrefix guards against clearing everything.
var errPrefix = errors.New("the name is empty")
