// Package probe finds out what is wrong with the address of a coordinator that
// could not be reached: whether nothing listens there, nobody answers, or something
// else than was expected does. It looks from outside and sends no credentials.
package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
)

// A Kind is what was found at an address.
type Kind string

// The kinds. The first three are named by the scheme of their URLs.
const (
	ZooKeeper   Kind = "zookeeper"
	Etcd        Kind = "etcd"
	Consul      Kind = "consul"
	HTTP        Kind = "http"        // an HTTP server that is neither etcd nor Consul
	TLS         Kind = "tls"         // speaks TLS; what lies behind is not looked into
	Other       Kind = "other"       // ends or refuses conversations in all these languages
	Silent      Kind = "silent"      // accepts connections and answers nothing
	Refused     Kind = "refused"     // nothing listens
	Unknown     Kind = "unknown"     // the name has no address
	Unreachable Kind = "unreachable" // no connection comes about
)

// Look finds out what is at addr, a host:port. It takes until ctx ends where
// something does not answer.
func Look(ctx context.Context, addr string) Kind {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return whyNot(err)
	}
	_ = conn.Close() // it has served its purpose
	var wg sync.WaitGroup
	found := make([]Kind, len(languages))
	for i, speak := range languages {
		wg.Go(func() { found[i] = converse(ctx, addr, speak) })
	}
	wg.Wait()
	silent := true
	for _, k := range found {
		if k != Silent && k != Other {
			return k
		}
		silent = silent && k == Silent
	}
	if silent {
		return Silent
	}
	return Other
}

func whyNot(err error) Kind {
	var dns *net.DNSError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return Refused
	case errors.As(err, &dns) && dns.IsNotFound:
		return Unknown
	}
	return Unreachable
}

// languages are how to speak to a server, in the order of how much an answer tells.
// Each returns Other where it was not understood.
var languages = []func(ctx context.Context, conn net.Conn) (Kind, error){zooKeeper, etcd, consul, encrypted}

func converse(ctx context.Context, addr string, speak func(context.Context, net.Conn) (Kind, error)) Kind {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return Other
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })() // ends what blocks
	k, err := speak(ctx, conn)
	if err != nil && ctx.Err() != nil {
		return Silent
	}
	return k
}

// zooKeeper sends the four-letter command "srvr", which servers answer even if only
// to say that they may not.
func zooKeeper(_ context.Context, conn net.Conn) (Kind, error) {
	answer, err := ask(conn, "srvr")
	if strings.Contains(answer, "ZooKeeper") || strings.Contains(answer, "Zookeeper") || strings.HasPrefix(answer, "srvr is not executed") {
		return ZooKeeper, nil
	}
	return Other, err
}

func etcd(_ context.Context, conn net.Conn) (Kind, error) {
	answer, err := get(conn, "/version")
	switch {
	case !strings.HasPrefix(answer, "HTTP/"):
		return Other, err
	case strings.Contains(answer, "HTTPS server"): // as Go's servers say
		return TLS, nil
	case strings.Contains(answer, `"etcdserver"`):
		return Etcd, nil
	}
	return Other, err
}

func consul(_ context.Context, conn net.Conn) (Kind, error) {
	answer, err := get(conn, "/v1/status/leader")
	switch {
	case !strings.HasPrefix(answer, "HTTP/"):
		return Other, err
	case strings.Contains(answer, "X-Consul-") || strings.Contains(answer, "Access-Control-Expose-Headers: x-consul-"),
		strings.Contains(answer, crowded):
		return Consul, nil
	}
	return HTTP, nil
}

// crowded is what an agent of Consul answers, instead of all else, to an address that has too many connections
// (hashicorp/go-connlimit, HTTPConnStateFuncWithDefault429Handler).
const crowded = "Your IP is issuing too many concurrent connections"

// encrypted begins a TLS handshake. A server that refuses it with an alert speaks TLS too.
func encrypted(ctx context.Context, conn net.Conn) (Kind, error) {
	c := tls.Client(conn, &tls.Config{InsecureSkipVerify: true}) // nothing is said, and nothing believed
	err := c.HandshakeContext(ctx)
	var op *net.OpError
	if err == nil || errors.As(err, &op) && op.Op == "remote error" { // package tls calls an alert so
		return TLS, nil
	}
	return Other, err
}

func get(conn net.Conn, path string) (string, error) {
	return ask(conn, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
}

// ask sends a question and returns the answer's beginning, as much as comes before
// the server ends the connection.
func ask(conn net.Conn, question string) (string, error) {
	if _, err := io.WriteString(conn, question); err != nil {
		return "", err
	}
	b, err := io.ReadAll(io.LimitReader(conn, 16<<10))
	return string(b), err
}
