package consul_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// An ingress stands in front of a server of Consul. For a while it has no route to it.
type ingress struct {
	*httptest.Server
	instead atomic.Pointer[answer] // what it says; nil is what Consul says

	mu    sync.Mutex
	said  map[string]int // how often, by kind of request
	grown chan struct{}
}

type answer struct {
	status int
	header http.Header
	body   string
}

func newIngress(t *testing.T, addr string) *ingress {
	t.Helper()
	in := &ingress{said: make(map[string]int), grown: make(chan struct{}, 1)}
	consul := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: addr})
	consul.Transport = newTransport(t)
	in.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		a := in.instead.Load()
		if a == nil {
			consul.ServeHTTP(w, req)
			return
		}
		for k, v := range a.header {
			w.Header()[k] = v
		}
		w.WriteHeader(a.status)
		w.Write([]byte(a.body))
		in.mu.Lock()
		defer in.mu.Unlock()
		in.said[kindOf(req)]++
		select {
		case in.grown <- struct{}{}:
		default:
		}
	}))
	t.Cleanup(in.Close)
	return in
}

func (in *ingress) addr() string { return strings.TrimPrefix(in.URL, "http://") }

// shut makes the ingress answer a to everything, also to queries that are under way:
// their connections end. It returns once the ingress has answered n times to each kind of
// request.
func (in *ingress) shut(t *testing.T, a answer, n int, kinds ...string) {
	t.Helper()
	in.mu.Lock()
	clear(in.said)
	in.mu.Unlock()
	in.instead.Store(&a)
	in.CloseClientConnections()
	end := within(t, time.Minute)
	for _, kind := range kinds {
		for {
			in.mu.Lock()
			enough := in.said[kind] >= n
			in.mu.Unlock()
			if enough {
				break
			}
			select {
			case <-in.grown:
			case <-end.Done():
				t.Fatalf("the ingress was not asked for a %s: %v", kind, in.said)
			}
		}
	}
}

// An ingress that has lost its way to Consul answers in Consul's place. Nothing may be
// concluded from that: neither that a session has ended, nor that a key is absent.
func TestSomethingBetweenAnswers(t *testing.T) {
	t.Parallel()
	jsonType := http.Header{"Content-Type": {"application/json"}}
	for name, a := range map[string]answer{
		"bare 404":         {status: http.StatusNotFound, body: "404 page not found"},
		"404 with an echo": {status: http.StatusNotFound, body: "The requested URL was not found: session id"},
		"empty list":       {status: http.StatusOK, header: jsonType, body: "[]"},
		"empty object":     {status: http.StatusOK, header: jsonType, body: "{}"},
		"null":             {status: http.StatusOK, header: jsonType, body: "null"},
		"conflict":         {status: http.StatusConflict, header: jsonType, body: "{}"},
		"page":             {status: http.StatusOK, body: "<html>welcome</html>"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in, name := newIngress(t, server(t)), coordtest.Name(t)
			leader, waiter := open(t, in.addr(), nil), open(t, in.addr(), nil)
			term, err := elect.New(leader, name, nil).Campaign(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			s := sessionOf(t, waiter)
			record := name + "-record"
			v, err := s.Put(t.Context(), record, []byte("x"), nil)
			if err != nil {
				t.Fatal(err)
			}
			m := join(t, s, name, "")
			gone, watched := make(chan error, 1), make(chan error, 1)
			go func() { gone <- s.Gone(t.Context(), term.Member()) }()
			go func() {
				_, err := s.Watch(t.Context(), record, v)
				watched <- err
			}()

			watch := calm.Start(t)
			in.shut(t, a, 2, "renewal", "read")
			for what, ask := range map[string]func(ctx context.Context) error{
				"Get":   func(ctx context.Context) error { _, err := s.Get(ctx, record); return err },
				"Line":  func(ctx context.Context) error { _, err := s.Line(ctx, name); return err },
				"List":  func(ctx context.Context) error { _, err := s.List(ctx, name); return err },
				"Ahead": func(ctx context.Context) error { _, err := s.Ahead(ctx, m); return err },
				"Leave": func(ctx context.Context) error { return s.Leave(ctx, m) },
			} {
				ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errEnough)
				if err := ask(ctx); !errors.Is(err, errEnough) {
					t.Errorf("%s returned %v, want the cause of its context", what, err)
				}
				cancel()
			}
			if _, err := s.Put(t.Context(), record, []byte("y"), &backend.If{Member: m}); !errors.Is(err, backend.ErrUnavailable) {
				t.Errorf("Put returned %v, want ErrUnavailable", err)
			}
			in.instead.Store(nil)

			select {
			case err := <-gone:
				t.Errorf("Gone of the leader, who stands, returned %v", err)
			case err := <-watched:
				t.Errorf("Watch of a record that is as it was returned %v", err)
			default:
			}
			if err := errors.Join(s.Err(), term.Check()); err != nil {
				if !watch.NotJudged(long/3, "a session has ended: %v", err) {
					t.Errorf("a session has ended: %v", err)
				}
				return
			}
			if p, err := s.Ahead(t.Context(), m); err != nil || p.Ahead.Key != term.Member().Key {
				t.Errorf("Ahead returned %+v, %v, want the leader", p, err)
			}
			if err := term.Resign(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := <-gone; err != nil {
				t.Errorf("Gone after the resignation: %v", err)
			}

			in.instead.Store(&a)
			_, err = succession.Connect(t.Context(), "consul://"+in.addr())
			if says := a.status != http.StatusConflict; !errors.Is(err, backend.ErrUnavailable) || says && !strings.Contains(err.Error(), "in its place") {
				t.Errorf("Open returned %v, want ErrUnavailable that says that something answers in Consul's place", err)
			}
			in.instead.Store(nil)
		})
	}
}
