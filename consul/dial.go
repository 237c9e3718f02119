package consul

import (
	"cmp"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/internal/addresses"
)

// A dialer makes the connections of a client.
//
// A transport of the caller keeps its settings. A transport that is made here reads the files for
// TLS again for each connection, because they may be replaced while the process runs. For renewals
// it takes the addresses of a name in turn, because one that accepts connections may be silent. All
// other requests go to the address where a renewal was answered last.
type dialer struct {
	cfg   *api.Config
	o     *Options
	life  context.Context        // no dial outlives it
	tls   bool                   // the caller has a TLS configuration
	names *addresses.Dialer      // nil if the caller has a transport, or there is a unix socket
	good  atomic.Pointer[string] // the address at which a renewal was answered last; nil before the first
}

// newDialer makes the dialer that resolves names. A test may set it.
var newDialer = addresses.New

func dialerOf(life context.Context, cfg *api.Config, o *Options) *dialer {
	d := &dialer{cfg: cfg, o: o, life: life}
	// This is asked now: cloning a transport gives it a TLSClientConfig, for HTTP/2, and
	// the api package takes that for the caller's.
	d.tls = cfg.HttpClient != nil || cfg.Transport != nil && cfg.Transport.TLSClientConfig != nil
	at := cmp.Or(cfg.Address, api.DefaultConfig().Address)
	if cfg.HttpClient == nil && cfg.Transport == nil && !strings.HasPrefix(at, "unix://") {
		d.names = newDialer()
	}
	return d
}

// config copies the configuration, with connections of its own if that is possible. If the caller's
// http.Client has a transport of another kind, that is shared.
func (d *dialer) config() *api.Config {
	cfg, own := d.cfg, *d.cfg
	if cfg.Transport == nil {
		own.Transport = api.DefaultConfig().Transport
	} else if own.Transport = cfg.Transport.Clone(); !d.tls {
		own.Transport.TLSClientConfig = nil
	}
	if cfg.HttpClient != nil {
		h := *cfg.HttpClient
		h.Timeout = 0 // each request has a time of its own, and a query waits longer than most clients allow
		if t, ok := h.Transport.(*http.Transport); ok {
			h.Transport = t.Clone()
		} else if h.Transport == nil {
			h.Transport = own.Transport
		}
		own.HttpClient = &h
	}
	return &own
}

// prepare makes t dial in the dialer's way. own is the final configuration of t's client. If t is not for queries, of which there are
// many, and not the caller's, it speaks HTTP/1: then no request waits behind others on the connection to a server that is sick.
func (d *dialer) prepare(t *http.Transport, own *api.Config, forRenewals, forQueries bool) {
	if d.cfg.HttpClient == nil && d.cfg.Transport == nil && !forQueries {
		t.ForceAttemptHTTP2 = false
	}
	// Each request has a time of its own. A query keeps its connection until it is over, so no other may have to wait for that; see [places].
	t.ResponseHeaderTimeout, t.MaxConnsPerHost = 0, 0
	switch {
	case d.names != nil && forRenewals:
		t.DialContext = d.names.DialContext
	case d.names != nil:
		t.DialContext = d.follow
	case t.DialContext == nil:
		t.DialContext = new(net.Dialer).DialContext
	}
	t.DialContext = d.within(t.DialContext)
	d.noticeSilence(t)
	if !d.tls && t.DialTLSContext == nil {
		t.DialTLSContext = d.dialTLS(t, own.TLSConfig)
	}
}

// within makes dial stop when the client's life ends: otherwise the dial goes on after its
// request was cancelled. It also bounds each dial, which a transport does not do: it takes from
// a request neither the time limit nor the cancellation. The time is divided among the
// addresses of a name. So if one does not accept, the next is tried while the session lives.
//
// The kernel asks a peer that is silent for a third of the TTL whether it is there. A
// connection to a machine that has gone breaks, and the blocking query on it fails, before
// the session would end.
func (d *dialer) within(dial dialFunc) dialFunc {
	ttl := d.o.TTL
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		ctx, cancel := d.bound(ctx)
		defer cancel()
		conn, err := dial(ctx, network, addr)
		if tcp, ok := conn.(*net.TCPConn); ok {
			// It does no harm if this kernel cannot do it.
			_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: max(time.Second, ttl/3), Interval: max(time.Second, ttl/12), Count: 3})
		}
		return conn, err
	}
}

type dialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// bound returns a context for one dial.
func (d *dialer) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, d.o.attempt())
	stop := context.AfterFunc(d.life, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// follow dials the address at which a renewal was answered last. If that does not accept, it
// takes the addresses in turn.
func (d *dialer) follow(ctx context.Context, network, addr string) (net.Conn, error) {
	_, port, _ := net.SplitHostPort(addr)
	good := d.good.Load()
	if good == nil {
		return d.names.DialContext(ctx, network, addr)
	}
	if _, at, _ := net.SplitHostPort(*good); at == port { // otherwise it is the port of a proxy
		short, cancel := context.WithTimeout(ctx, d.o.attempt()/2)
		defer cancel()
		if conn, err := new(net.Dialer).DialContext(short, network, *good); err == nil {
			return conn, nil
		}
	}
	return d.names.DialContext(ctx, network, addr)
}

// noteAddress notes the addresses at which requests are answered; see [dialer.follow].
func (d *dialer) noteAddress(next http.RoundTripper) http.RoundTripper { return noteAddress{next, d} }

type noteAddress struct {
	http.RoundTripper
	d *dialer
}

func (t noteAddress) RoundTrip(req *http.Request) (*http.Response, error) {
	var at string
	ctx := httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		at = info.Conn.RemoteAddr().String()
	}})
	resp, err := t.RoundTripper.RoundTrip(req.WithContext(ctx))
	if err == nil && !isSick(resp) {
		t.d.good.Store(&at)
	}
	return resp, err
}

func (t noteAddress) CloseIdleConnections() { closeIdle(t.RoundTripper) }

// isSick reports whether the answer is that of an agent that cannot do what it is asked, such as one that has lost the servers.
func isSick(resp *http.Response) bool { return resp.StatusCode >= http.StatusInternalServerError }

// leaving closes its connections once an agent has answered that it is sick: there may be another one at the same name, or behind the
// same address. Over HTTP/2 a query shares its connection with others that wait, and that cannot be closed. There the next query is the
// last one, and those after it go over another connection.
type leaving struct {
	http.RoundTripper
	last *atomic.Bool // the next query is the last one on its connection; nil if the requests are no queries
}

func (t leaving) RoundTrip(req *http.Request) (*http.Response, error) {
	if t.last != nil && t.last.Swap(false) {
		req = req.Clone(req.Context())
		req.Close = true
	}
	resp, err := t.RoundTripper.RoundTrip(req)
	if err == nil && isSick(resp) {
		if t.last != nil && resp.ProtoMajor == 2 {
			t.last.Store(true)
		}
		resp.Body = &lastBody{resp.Body, t.CloseIdleConnections}
	}
	return resp, err
}

func (t leaving) CloseIdleConnections() { closeIdle(t.RoundTripper) }

// A lastBody is that of the last answer on its connection, which is idle when the body was closed.
type lastBody struct {
	io.ReadCloser
	leave func()
}

func (b *lastBody) Close() error {
	defer b.leave()
	return b.ReadCloser.Close()
}

// dialTLS returns the DialTLSContext of t: a [tls.Config] that is in use cannot be given other
// authorities.
func (d *dialer) dialTLS(t *http.Transport, files api.TLSConfig) dialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		cfg, err := api.SetupTLSConfig(&files)
		if err != nil {
			return nil, err
		}
		if cfg.ServerName == "" {
			if cfg.ServerName, _, err = net.SplitHostPort(addr); err != nil {
				return nil, err
			}
		}
		if t.ForceAttemptHTTP2 {
			cfg.NextProtos = []string{"h2", "http/1.1"}
		}
		ctx, cancel := d.bound(ctx)
		defer cancel()
		plain, err := t.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		conn := tls.Client(plain, cfg)
		if err := conn.HandshakeContext(ctx); err != nil {
			plain.Close()
			return nil, err
		}
		return conn, nil
	}
}

// noticeSilence makes t close HTTP/2 connections that have fallen silent, soon enough for
// the session. With HTTP/1, the end of a request closes its connection. With HTTP/2 it
// does not, and the next request would wait on the same connection. If another package
// does HTTP/2 for t, the connections are that package's own, and t knows nothing of them.
func (d *dialer) noticeSilence(t *http.Transport) {
	if t.TLSNextProto["h2"] != nil {
		t.TLSNextProto, t.ForceAttemptHTTP2 = nil, true
	}
	var h http.HTTP2Config
	if t.HTTP2 != nil {
		h = *t.HTTP2
	}
	h.SendPingTimeout = cmp.Or(h.SendPingTimeout, d.o.TTL/6)
	h.PingTimeout = cmp.Or(h.PingTimeout, d.o.TTL/6)
	t.HTTP2 = &h
}

// hedged calls f, and after each such time in which no call has returned it calls f once more,
// beside the others: an address of a name may accept connections and be silent. It returns the
// result of the first call that returns.
func hedged[T any](ctx context.Context, each time.Duration, f func(context.Context) (T, error)) (v T, err error) {
	var calls sync.WaitGroup
	defer calls.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var once sync.Once
	first := make(chan struct{})
	for {
		calls.Go(func() {
			value, failed := f(ctx)
			once.Do(func() {
				v, err = value, failed
				close(first)
			})
		})
		select {
		case <-first:
			return v, err
		case <-ctx.Done(): // f then returns too
			<-first
			return v, err
		case <-time.After(each):
		}
	}
}
