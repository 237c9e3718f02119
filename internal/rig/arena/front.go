//go:build linux

package arena

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/succession-dev/succession/internal/rig/certs"
)

// A front speaks TLS with clients in place of a server, and asks for a certificate. What they say it passes on to the
// server. So certificates can be replaced on any coordinator without a restart of its servers.
type front struct {
	server  string
	l       net.Listener
	running sync.WaitGroup

	mu     sync.Mutex
	config *tls.Config
	conns  map[net.Conn]bool // nil when it is closed
}

func startFront(server string, config *tls.Config) (*front, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	f := &front{server: server, l: l, config: config, conns: make(map[net.Conn]bool)}
	f.running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			f.running.Go(func() { f.pass(conn) })
		}
	})
	return f, nil
}

func (f *front) addr() string { return f.l.Addr().String() }

// pass passes on what comes from a client, and back, until either closes the connection.
func (f *front) pass(in net.Conn) {
	defer in.Close()
	out, err := net.DialTimeout("tcp", f.server, time.Second)
	if err != nil {
		return
	}
	defer out.Close()
	f.mu.Lock()
	if f.conns == nil {
		f.mu.Unlock()
		return
	}
	f.conns[in] = true
	client := tls.Server(in, f.config)
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.conns, in)
	}()
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(client, out) // that it ends is all there is to know
		in.Close()
	})
	_, _ = io.Copy(out, client)
	out.Close()
	in.Close()
	back.Wait()
}

// replace has clients from now on shake hands by another configuration, and breaks all connections.
func (f *front) replace(config *tls.Config) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.config = config
	for conn := range f.conns {
		conn.Close()
	}
}

func (f *front) close() {
	f.l.Close()
	f.mu.Lock()
	for conn := range f.conns {
		conn.Close()
	}
	f.conns = nil
	f.mu.Unlock()
	f.running.Wait()
}

// certificates are what the fronts of a coordinator and its clients show each other, and the files in which clients
// find theirs.
type certificates struct {
	dir          string
	protocols    []string // what the coordinator speaks (ALPN); nil for what has no name
	issued       int      // how many authorities there have been
	front        tls.Certificate
	roots        *x509.CertPool  // of the present authority
	client       tls.Certificate // of the present authority
	ca, crt, key string          // files
}

// frontNames are by what clients know a front.
var frontNames = []string{"127.0.0.1", "*." + Domain}

// Domain is where names of candidates are.
const Domain = "chaos.test"

// issue replaces the authority, and all certificates by such that the new one has issued.
func (c *certificates) issue() error {
	c.issued++
	dir := filepath.Join(c.dir, fmt.Sprint("authority", c.issued))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	authority, err := certs.Make(dir, nil, "authority")
	if err != nil {
		return err
	}
	server, err1 := certs.Make(dir, authority, "server", frontNames...)
	client, err2 := certs.Make(dir, authority, "client")
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	c.ca, c.crt, c.key = filepath.Join(c.dir, "ca.pem"), filepath.Join(c.dir, "client.pem"), filepath.Join(c.dir, "client-key.pem")
	err = errors.Join(certs.Copy(c.ca, authority.File), certs.Copy(c.crt, client.File), certs.Copy(c.key, client.KeyFile))
	if err != nil {
		return err
	}
	pem, err := os.ReadFile(authority.File)
	if err != nil {
		return err
	}
	c.roots = x509.NewCertPool()
	c.roots.AppendCertsFromPEM(pem)
	c.front, err1 = tls.LoadX509KeyPair(server.File, server.KeyFile)
	c.client, err2 = tls.LoadX509KeyPair(client.File, client.KeyFile)
	return errors.Join(err1, err2)
}

// serve returns what a front serves by.
func (c *certificates) serve() *tls.Config {
	return &tls.Config{
		Certificates: []tls.Certificate{c.front}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: c.roots,
		NextProtos: c.protocols,
	}
}

// accepted returns nil if the front at addr is trusted by roots, and takes the certificate.
func accepted(addr string, roots *x509.CertPool, client tls.Certificate) error {
	conn, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{client}})
	if err != nil {
		return err
	}
	defer conn.Close()
	// From TLS 1.3 on a client hears that it was refused only when it reads.
	_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if _, err = conn.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}
