package kubernetes

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/client-go/util/connrotation"
)

// newClient returns an HTTP client with the credentials of cfg. What cfg names by file, and what its plugin says, is read again while
// the client is used: certificates and the authority for each connection, tokens about once a minute and when one was refused.
//
// It is not client-go's own client: that one is shared by all of a process that have the same configuration, and limits the rate of
// requests. A session needs a connection that it can give up in time.
func newClient(cfg *rest.Config, o *Options) (*http.Client, *connections, error) {
	d := &dialer{config: cfg, dial: cfg.Dial, most: o.TTL / 2}
	if d.dial == nil {
		d.dial = (&net.Dialer{Timeout: d.most}).DialContext
	}
	conns := connrotation.NewDialer(d.dial)
	d.dial = conns.DialContext
	settings, err := d.tls("")
	if err != nil {
		return nil, nil, err
	}
	proxy := http.ProxyFromEnvironment
	if cfg.Proxy != nil {
		proxy = cfg.Proxy
	}
	inner := &http.Transport{
		Proxy:               proxy,
		DialContext:         d.dial,
		DialTLSContext:      d.dialTLS,
		TLSClientConfig:     settings, // behind a proxy
		TLSHandshakeTimeout: d.most,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 8,
		// A connection that was cut silently is given up within half a session time.
		HTTP2: &http.HTTP2Config{SendPingTimeout: o.TTL / 4, PingTimeout: o.TTL / 4},
	}
	if cfg.BearerTokenFile != "" {
		// By itself client-go reads the file once a minute, also when the token is refused.
		file := cfg.BearerTokenFile
		cfg = rest.CopyConfig(cfg)
		cfg.BearerToken, cfg.BearerTokenFile = "", ""
		cfg.Wrap(transport.ResettableTokenSourceWrapTransport(transport.NewCachedFileTokenSource(file)))
	}
	wrapped, err := rest.HTTPWrappersForConfig(cfg, inner)
	if err != nil {
		return nil, nil, err
	}
	return &http.Client{
		Transport: &closer{wrapped, inner},
		// An API server redirects nobody, and a token is not for others.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, &connections{dialer: conns, certified: settings.GetClientCertificate != nil || len(settings.Certificates) > 0, patience: o.TTL / 8}, nil
}

// The connections are those that a client has. When all are closed, it makes others, which may lead to another API server.
type connections struct {
	dialer    *connrotation.Dialer
	certified bool          // each has a certificate of the client
	patience  time.Duration // for how long an API server may say that it cannot write

	mu     sync.Mutex
	closed time.Time // when all were closed last
	sick   time.Time // since when the API server says that; zero if it does not
}

// replace closes all, unless that was done since then: a certificate is that of its connection.
func (c *connections) replace(since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.certified && c.closed.Before(since) {
		c.close()
	}
}

// renewed notes the status of the answer to a renewal of the session, or to its beginning. An API server that has lost its etcd answers on, and there may be others
// at its address. Other writes may fail for reasons of their own, such as a webhook.
func (c *connections) renewed(status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case status < 500:
		c.sick = time.Time{}
	case c.sick.IsZero():
		c.sick = time.Now()
	case time.Since(c.sick) > c.patience:
		c.close()
	}
}

// unanswered notes that a renewal that was sent then has had no answer in its time. The connection may be well, as the API server answers the pings on
// it while it waits for its etcd.
func (c *connections) unanswered(since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Before(since) {
		c.close()
	}
}

func (c *connections) close() {
	c.closed, c.sick = time.Now(), time.Time{}
	c.dialer.CloseAll()
}

// A closer is a transport in wrappers, which need not pass on that its connections are to be closed.
type closer struct {
	http.RoundTripper
	inner *http.Transport
}

func (c *closer) CloseIdleConnections() { c.inner.CloseIdleConnections() }

// A dialer makes connections.
type dialer struct {
	config *rest.Config
	dial   func(ctx context.Context, network, addr string) (net.Conn, error)
	most   time.Duration // how long making one may take
}

// tls reads the settings for a connection to a host.
func (d *dialer) tls(host string) (*tls.Config, error) {
	settings, err := rest.TLSConfigFor(d.config)
	if err != nil {
		return nil, err
	}
	if settings == nil {
		settings = new(tls.Config)
	}
	settings = settings.Clone()
	if settings.ServerName == "" {
		settings.ServerName = host
	}
	if settings.NextProtos == nil {
		settings.NextProtos = []string{"h2", "http/1.1"}
	}
	return settings, nil
}

// dialTLS bounds itself: a transport goes on with a dial when the request has ended that wanted it, and its TLSHandshakeTimeout is not for
// handshakes that it does not make.
func (d *dialer) dialTLS(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.most)
	defer cancel()
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	settings, err := d.tls(host)
	if err != nil {
		return nil, err
	}
	plain, err := d.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	conn := tls.Client(plain, settings)
	if err := conn.HandshakeContext(ctx); err != nil {
		plain.Close()
		return nil, err
	}
	return conn, nil
}
