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
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/succession-dev/succession/backend/coordinator"
)

// A Kind is what kind of thing was found at an address.
type Kind string

const (
	Coordinator Kind = "coordinator" // a server that the [coordinator.Probe] of a driver knows
	TLS         Kind = "tls"         // speaks TLS; what lies behind is not looked into
	HTTP        Kind = "http"        // an HTTP server that no driver knows
	Other       Kind = "other"       // ends or refuses conversations in all these languages
	Silent      Kind = "silent"      // accepts connections and answers nothing
	Refused     Kind = "refused"     // nothing listens
	Unknown     Kind = "unknown"     // the name has no address
	Unreachable Kind = "unreachable" // no connection comes about
)

// A Finding is what was found at an address.
type Finding struct {
	Kind   Kind
	Driver coordinator.Driver // whose server it is, if Kind is Coordinator
}

// Look finds out what is at addr, a host:port. It takes until ctx ends where
// something does not answer.
func Look(ctx context.Context, addr string) Finding {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return Finding{Kind: whyNot(err)}
	}
	_ = conn.Close() // it has served its purpose
	languages := []language{encrypted, web}
	for _, d := range coordinator.DefaultMux.Drivers() {
		if d.Probe.Ask != "" {
			languages = append(languages, languageOf(d))
		}
	}
	var wg sync.WaitGroup
	found := make([]Finding, len(languages))
	for i, speak := range languages {
		wg.Go(func() { found[i] = converse(ctx, addr, speak) })
	}
	wg.Wait()
	for _, kind := range []Kind{Coordinator, TLS, HTTP, Other} { // in the order of how much it tells
		if i := slices.IndexFunc(found, func(f Finding) bool { return f.Kind == kind }); i >= 0 {
			return found[i]
		}
	}
	return Finding{Kind: Silent}
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

// A language is how to speak to a server. It returns Other where it was not understood.
type language func(ctx context.Context, conn net.Conn) (Finding, error)

func converse(ctx context.Context, addr string, speak language) Finding {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return Finding{Kind: Other}
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })() // ends what blocks
	f, err := speak(ctx, conn)
	if err != nil && ctx.Err() != nil {
		return Finding{Kind: Silent}
	}
	return f
}

// languageOf returns the language of a driver's servers.
func languageOf(d coordinator.Driver) language {
	return func(_ context.Context, conn net.Conn) (Finding, error) {
		answer, err := ask(conn, d.Probe.Ask)
		if slices.ContainsFunc(d.Probe.Answers, func(text string) bool { return strings.Contains(answer, text) }) {
			return Finding{Coordinator, d}, nil
		}
		return Finding{Kind: Other}, err
	}
}

// web is that of HTTP.
func web(_ context.Context, conn net.Conn) (Finding, error) {
	answer, err := ask(conn, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
	switch {
	case !strings.HasPrefix(answer, "HTTP/"):
		return Finding{Kind: Other}, err
	case strings.Contains(answer, "HTTPS server"): // as Go's servers say
		return Finding{Kind: TLS}, nil
	}
	return Finding{Kind: HTTP}, nil
}

// encrypted begins a TLS handshake. A server that refuses it with an alert speaks TLS too.
func encrypted(ctx context.Context, conn net.Conn) (Finding, error) {
	c := tls.Client(conn, &tls.Config{InsecureSkipVerify: true}) // nothing is said, and nothing believed
	err := c.HandshakeContext(ctx)
	var op *net.OpError
	if err == nil || errors.As(err, &op) && op.Op == "remote error" { // package tls calls an alert so
		return Finding{Kind: TLS}, nil
	}
	return Finding{Kind: Other}, err
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
