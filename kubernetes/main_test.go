//go:build linux

package kubernetes_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/proxy"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
	"github.com/succession-dev/succession/kubernetes"
)

// ttl is the session time of the rules, and of tests that await the end of a session. An API server needs a processor for some
// milliseconds a request, so a machine that is busy needs a longer one.
var ttl = 3 * time.Second

func init() {
	flag.DurationVar(&ttl, "ttl", ttl, "the session time of tests that await the end of one")
}

// long is the session time of all other tests: nothing that holds up a busy machine lasts as long.
const long = 15 * time.Second

// shared is the Kubernetes of all tests that do it no harm.
var shared struct {
	once       sync.Once
	kubernetes *coordtest.Kubernetes
	err        error
}

func TestMain(m *testing.M) {
	rig.Candidate()
	flag.Parse()
	coordtest.Main(m, 4, func() {
		if shared.kubernetes != nil {
			shared.kubernetes.Stop()
		}
	})
}

func sharedKubernetes(t testing.TB) *coordtest.Kubernetes {
	t.Helper()
	shared.once.Do(func() { shared.kubernetes, shared.err = coordtest.StartKubernetes(context.Background(), nil) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.kubernetes
}

// configOf returns the configuration of a client that reaches a server of k at addr, which may be that of a proxy.
func configOf(k *coordtest.Kubernetes, addr, token string) (*rest.Config, error) {
	ca, err := k.CA()
	if err != nil {
		return nil, err
	}
	return &rest.Config{Host: "https://" + addr, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}, nil
}

// kubeconfig writes a kubeconfig for the first server, and returns its path.
func kubeconfig(t testing.TB, k *coordtest.Kubernetes, token string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	if err := k.WriteConfig(path, k.Addrs()[0], token); err != nil {
		t.Fatal(err)
	}
	return path
}

// A client is a backend that reaches its server through a proxy of its own.
type client struct {
	*kubernetes.Backend
	proxy    *proxy.Proxy
	admin    *rest.Config // of the server, and not of the proxy
	requests atomic.Int64
	lose     atomic.Bool                  // the answer to the next write
	lost     func(req *http.Request) bool // called after each request that is answered; if it reports true, the answer is lost

	mu   sync.Mutex
	hold *hold // nil for none
}

// A hold keeps a write back.
type hold struct {
	skip  int
	sent  func() // sends what was held back, and waits for the answer; nil as long as nothing is
	ended bool
}

// open returns a new client of the server at addr; the caller closes it.
func open(k *coordtest.Kubernetes, addr string, o kubernetes.Options) (*client, error) {
	c := new(client)
	var err error
	if c.admin, err = configOf(k, addr, coordtest.KubernetesToken); err != nil {
		return nil, err
	}
	c.admin.Dial = rig.DialUnlabelled
	if c.proxy, err = coordtest.StartProxy(addr); err != nil {
		return nil, err
	}
	cfg := rest.CopyConfig(c.admin)
	cfg.Host = "https://" + c.proxy.Addr()
	cfg.WrapTransport = func(rt http.RoundTripper) http.RoundTripper { return &observed{rt, c} }
	o.TTL = cmp.Or(o.TTL, ttl)
	o.Namespace = "default"
	if c.Backend, err = kubernetes.New(cfg, &o); err != nil {
		c.proxy.Close()
		return nil, err
	}
	return c, nil
}

// newClient is open for one test: the client is closed when the test ends. Without a TTL in o it is long.
func newClient(t testing.TB, k *coordtest.Kubernetes, o kubernetes.Options) *client {
	t.Helper()
	o.TTL, o.ConnectTimeout = cmp.Or(o.TTL, long), cmp.Or(o.ConnectTimeout, long)
	c, err := open(k, k.Addrs()[0], o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func (c *client) Close() error {
	err := c.Backend.Close()
	c.proxy.Close()
	return err
}

// observed counts requests, and loses the answer to a write.
type observed struct {
	http.RoundTripper
	by *client
}

func (o *observed) RoundTrip(req *http.Request) (*http.Response, error) {
	o.by.requests.Add(1)
	if write(req) && o.by.holds(req) {
		return nil, errors.New("the connection is broken")
	}
	resp, err := o.RoundTripper.RoundTrip(req)
	if err == nil && o.by.lost != nil && o.by.lost(req) {
		err = errors.New("the answer was lost")
		resp.Body.Close()
		return nil, err
	}
	if err != nil || !write(req) || !o.by.lose.CompareAndSwap(true, false) {
		return resp, err
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return nil, errors.New("the answer was lost")
}

// write reports whether a request writes what a caller has asked for: no renewal, and no position.
func write(req *http.Request) bool {
	switch req.Method {
	case http.MethodPost, http.MethodDelete:
		return true
	case http.MethodPatch:
		return strings.Contains(req.URL.Path, "/record-")
	}
	return false
}

// Proxy implements [rig.Client].
func (c *client) Proxy() *proxy.Proxy { return c.proxy }

// Requests implements [rig.Client].
func (c *client) Requests() int64 { return c.requests.Load() }

// LoseAnswer implements [rig.Client].
func (c *client) LoseAnswer() { c.lose.Store(true) }

// HoldBack implements [rig.Client].
func (c *client) HoldBack(skip int) (held func() bool, release func()) {
	h := &hold{skip: skip}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hold = h
	held = func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return h.sent != nil
	}
	return held, func() {
		c.mu.Lock()
		h.ended = true
		send := h.sent
		c.mu.Unlock()
		if send != nil {
			send()
		}
	}
}

// holds holds the request back, if it is the one.
func (c *client) holds(req *http.Request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.hold
	if h == nil || h.ended || h.sent != nil {
		return false
	}
	if h.skip > 0 {
		h.skip--
		return false
	}
	late := req.Clone(context.WithoutCancel(req.Context()))
	if req.GetBody != nil {
		late.Body, _ = req.GetBody()
	}
	late.URL.Host = strings.TrimPrefix(c.admin.Host, "https://") // past the proxy, whatever becomes of it
	h.sent = func() {
		client, err := rest.HTTPClientFor(c.admin)
		if err != nil {
			return
		}
		defer client.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(late.Context(), 10*time.Second)
		defer cancel()
		late.RequestURI = ""
		if resp, err := client.Do(late.WithContext(ctx)); err == nil {
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	}
	return true
}

// Expire implements [rig.Client]: it deletes the session's object.
func (c *client) Expire(ctx context.Context) error {
	name := kubernetes.SessionName(c.Backend)
	if name == "" {
		return rig.ErrNoSession
	}
	return do(ctx, c.admin, http.MethodDelete, leases+"/"+name, "", nil)
}

type rigClient struct{ *client }

func (c rigClient) Close() { c.proxy.Close() }

const leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"

// do sends a request as an operator, and reads the answer.
func do(ctx context.Context, cfg *rest.Config, method, path, body string, answer *string) error {
	b, err := ask(ctx, cfg, method, path, "application/json", body)
	if answer != nil {
		*answer = string(b)
	}
	return err
}

// doAs is do with another kind of body.
func doAs(ctx context.Context, cfg *rest.Config, method, path, kind, body string) error {
	_, err := ask(ctx, cfg, method, path, kind, body)
	return err
}

func ask(ctx context.Context, cfg *rest.Config, method, path, kind, body string) ([]byte, error) {
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, method, cfg.Host+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", kind)
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, b)
	}
	return b, err
}

// live returns the client's session.
func (c *client) live(t testing.TB) backend.Session {
	t.Helper()
	s, err := c.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func join(t testing.TB, s backend.Session, line, value string) backend.Member {
	t.Helper()
	m, err := s.Join(t.Context(), line, value, "")
	if err != nil {
		t.Fatal(err)
	}
	return m.Member
}

// within returns a context that ends after d.
func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// lineNow returns a line with what others have done until now.
func lineNow(ctx context.Context, s backend.Session, line string) (backend.Line, error) {
	if err := s.Refresh(ctx); err != nil {
		return backend.Line{}, err
	}
	return s.Line(ctx, line)
}
