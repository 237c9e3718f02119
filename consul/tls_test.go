package consul_test

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/proxy"
	"github.com/succession-dev/succession/consul"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/certs"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// certificate makes a self-signed certificate of 127.0.0.1, for a server and for a
// client.
func certificate(t *testing.T) (certFile, keyFile string) {
	t.Helper()
	c := certs.New(t, "test", "127.0.0.1")
	return c.File, c.KeyFile
}

// Both sides show a certificate. Over TLS the client speaks HTTP/2, and all queries of
// a kind share one connection.
func TestTLS(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	c := coordtest.NewConsul(t, &coordtest.ConsulOptions{CertFile: cert, KeyFile: key, ClientCAFile: cert})
	p := coordtest.NewProxy(t, c.Addrs()[0])
	url := "consul://" + p.Addr() + "/app?ttl=15s"
	b, err := succession.Connect(t.Context(), url+"&connect=1m&ca-file="+cert+"&cert-file="+cert+"&key-file="+key)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	s := sessionOf(t, b)
	name := coordtest.Name(t)
	gone := make(chan error, 10)
	for range cap(gone) {
		m := join(t, s, name, "")
		go func() { gone <- s.Gone(t.Context(), m) }()
		defer func() {
			if err := s.Leave(t.Context(), m); err != nil {
				t.Error(err)
			}
			if err := <-gone; err != nil {
				t.Error(err)
			}
		}()
	}
	renewed(t, s)
	if n := p.Stats().Open; n >= cap(gone) {
		t.Errorf("%d connections are open for %d queries, which should share one", n, cap(gone))
	}

	for _, query := range []string{
		"&tls=on",            // the server's certificate is not trusted
		"&ca-file=" + cert,   // the client shows none
		"&server-name=other", // the name is not that of the certificate
	} {
		b, err := succession.Connect(t.Context(), url+"&connect=2s"+query)
		if err == nil {
			b.Close()
		}
		if !errors.Is(err, backend.ErrUnavailable) {
			t.Errorf("%s: Open returned %v, want ErrUnavailable", query, err)
		}
	}
}

// The authority of the servers' certificates is replaced, and the certificate of the client, while a
// process runs. It connects again, in time for its session.
func TestAuthorityReplaced(t *testing.T) {
	t.Parallel()
	old, next := certs.New(t, "old"), certs.New(t, "new")
	dir := t.TempDir()
	file := func(name, by string) string {
		path := filepath.Join(dir, name)
		certs.Replace(t, path, by)
		return path
	}
	node, app := old.Sign(t, "node", "127.0.0.1"), old.Sign(t, "app")
	ca, cert, key := file("ca", old.File), file("cert", app.File), file("key", app.KeyFile)
	c := coordtest.NewConsul(t, &coordtest.ConsulOptions{
		Durable: true, CertFile: file("node", node.File), KeyFile: file("node-key", node.KeyFile), ClientCAFile: file("trusted", old.File),
	})
	front := coordtest.NewProxy(t, c.Addrs()[0])
	url := "consul://" + front.Addr() + "?ttl=30s&connect=1m&ca-file=" + ca + "&cert-file=" + cert + "&key-file=" + key
	b, err := succession.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	s := sessionOf(t, b)
	m := join(t, s, "line", "")

	node, app = next.Sign(t, "node", "127.0.0.1"), next.Sign(t, "app")
	file("ca", next.File)
	file("trusted", next.File)
	file("cert", app.File)
	file("key", app.KeyFile)
	file("node", node.File)
	file("node-key", node.KeyFile)
	c.Servers()[0].Kill()
	if err := c.Servers()[0].Start(); err != nil {
		t.Fatal(err)
	}
	front.Reset()
	if p, err := s.Ahead(within(t, time.Minute), m); err != nil || !p.First {
		t.Fatalf("%+v, %v; want first", p, err)
	}
	if err := consul.Renew(s); err != nil {
		t.Error(err)
	}
}

// Connections fall silent for good when something on the way has forgotten them, and new
// ones work. Over HTTP/2 one connection carries all requests of a kind, and the end of a
// request does not close it.
func TestFrozenConnections(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	addr := coordtest.NewConsul(t, &coordtest.ConsulOptions{CertFile: cert, KeyFile: key}).Addrs()[0]
	trust := api.TLSConfig{CAFile: cert}
	own, err := api.SetupTLSConfig(&trust)
	if err != nil {
		t.Fatal(err)
	}
	// with returns a caller's transport, which speaks HTTP/2 if it is told to.
	with := func(set func(t *http.Transport)) *http.Transport {
		t := &http.Transport{TLSClientConfig: own.Clone()}
		set(t)
		return t
	}
	http2 := func(t *http.Transport) { t.ForceAttemptHTTP2 = true }
	for name, cfg := range map[string]api.Config{
		"own transport":      {TLSConfig: trust},
		"caller's transport": {Transport: with(http2)},
		"caller's client":    {HttpClient: &http.Client{Transport: with(http2)}},
		"caller's, HTTP/1":   {Transport: with(func(*http.Transport) {})},
		"caller's, HTTP/2 of its own": {Transport: with(func(tr *http.Transport) {
			tr.TLSNextProto, tr.TLSClientConfig.NextProtos = foreignHTTP2(t), []string{"h2"}
		})},
		"caller's, a ping that stays": {Transport: with(func(t *http.Transport) {
			http2(t)
			t.HTTP2 = &http.HTTP2Config{PingTimeout: time.Second}
		})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const ttl = 6 * time.Second // two renewals may each wait for the caller's ping, which takes a second
			forgetful := coordtest.NewProxy(t, addr)
			var way atomic.Value
			way.Store(forgetful.Addr())
			front, err := proxy.Start(addr, &proxy.Options{Dial: func(_ string, timeout time.Duration) (net.Conn, error) {
				return net.DialTimeout("tcp", way.Load().(string), timeout)
			}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(front.Close)
			cfg.Address, cfg.Scheme = front.Addr(), "https"
			b := openWith(t, &cfg, &consul.Options{TTL: ttl})
			line := coordtest.Name(t)
			term, err := elect.New(b, line, nil).Campaign(within(t, time.Minute))
			if err != nil {
				t.Fatal(err)
			}
			s := sessionOf(t, b)
			waits := join(t, s, line, "")

			way.Store(addr)
			forgetful.Cut()
			watch := calm.Start(t)
			frozen := watch.Began()
			for !s.Deadline().After(frozen.Add(ttl)) { // a renewal was sent since
				select {
				case <-time.After(ttl / 50):
				case <-s.Done(): // which is right where no renewal came through in time
					watch.Within(0, "a renewal in time (%v)", s.Err())
					return
				}
			}
			t.Logf("renewed %v after the connections fell silent", time.Since(frozen).Round(time.Millisecond))
			if p, err := s.Ahead(within(t, time.Minute), waits); err != nil || p.Ahead.Key != term.Member().Key {
				t.Errorf("Ahead returned %+v, %v, want the leader", p, err)
			}
			if err := term.Check(); err != nil {
				if !watch.NotJudged(ttl/3, "the term has ended: %v", err) {
					t.Errorf("the term has ended: %v", err)
				}
				return
			}
			if err := term.Resign(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// foreignHTTP2 is what another package sets that speaks HTTP/2 over connections of its
// own. A copy of the transport would share those.
func foreignHTTP2(t *testing.T) map[string]func(string, *tls.Conn) http.RoundTripper {
	return map[string]func(string, *tls.Conn) http.RoundTripper{"h2": func(string, *tls.Conn) http.RoundTripper {
		t.Error("a connection has gone to the caller's own HTTP/2")
		return http.DefaultTransport
	}}
}
