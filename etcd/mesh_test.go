package etcd_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/etcd"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig/etcdrig"
)

// A mesh is a proxy that speaks HTTP/2, like those of service meshes. When it gives up on
// a server, it answers in the server's place, although the server may have done what it
// was asked for.
type mesh struct {
	addr string
	lose atomic.Pointer[loss]
}

// A loss makes the mesh answer one request with a code, in place of the server's answer.
type loss struct {
	method string
	holds  string // the request, somewhere
	code   codes.Code
}

func newMesh(t *testing.T, target string) *mesh {
	t.Helper()
	var h2c http.Protocols
	h2c.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: &h2c}
	m := new(mesh)
	forward := &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1,
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: target}) },
		// It is no error of the test that a client hangs up.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m.addr = l.Addr().String()
	server := &http.Server{Protocols: &h2c, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now := m.lose.Load()
		if now == nil || !strings.HasSuffix(r.URL.Path, "/"+now.method) {
			forward.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if !bytes.Contains(body, []byte(now.holds)) || !m.lose.CompareAndSwap(now, nil) {
			forward.ServeHTTP(w, r)
			return
		}
		out := r.Clone(context.WithoutCancel(r.Context())) // a client that gives up first changes nothing
		out.RequestURI, out.URL.Scheme, out.URL.Host = "", "http", target
		resp, err := transport.RoundTrip(out)
		if err != nil {
			t.Error(err)
			return
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.Trailer.Get("Grpc-Status") != "0" {
			t.Errorf("the server was to do what it is asked for: %v, %v", resp.Trailer, err)
		}
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Grpc-Status", strconv.Itoa(int(now.code)))
		w.Header().Set("Grpc-Message", "upstream request timeout")
	})}
	served := make(chan struct{})
	go func() {
		defer close(served)
		server.Serve(l)
	}()
	t.Cleanup(func() {
		server.Close()
		transport.CloseIdleConnections()
		<-served
	})
	return m
}

// TestMesh has a proxy give up on requests that etcd has done. etcd's client takes the
// proxy's code for the end of its own context, and would by itself send a write again.
func TestMesh(t *testing.T) {
	t.Parallel()
	addr := sharedEtcd(t).Addrs()[0]
	operator := admin(t, addr)
	for _, code := range []codes.Code{codes.Canceled, codes.DeadlineExceeded, codes.Unimplemented} { // the last is how a client of gRPC reads 404
		start := func(t *testing.T) (*mesh, *etcd.Backend) {
			proxy := newMesh(t, addr)
			c, err := etcdrig.Dial([]string{proxy.addr})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			b, err := etcd.New(c, &etcd.Options{TTL: patient, ConnectTimeout: opening})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { b.Close() })
			return proxy, b
		}
		session := func(t *testing.T, b *etcd.Backend) backend.Session {
			s, err := b.Session(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return s
		}

		t.Run("session "+code.String(), func(t *testing.T) {
			proxy, b := start(t)
			proxy.lose.Store(&loss{"LeaseGrant", "", code})
			session(t, b)
		})

		t.Run("join "+code.String(), func(t *testing.T) {
			proxy, b := start(t)
			s, name := session(t, b), coordtest.Name(t)
			proxy.lose.Store(&loss{"Txn", "lost-value", code})
			m := join(t, s, name, "lost-value")
			if got := keys(t, operator, name+"/"); len(got) != 1 || got[0] != name+"/"+m.Key {
				t.Errorf("the line holds %q; want %s alone", got, m.Key)
			}
			if err := s.Leave(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			lateRequest(t, operator, s, name, m.Key)
		})

		t.Run("write "+code.String(), func(t *testing.T) {
			proxy, b := start(t)
			s, name := session(t, b), coordtest.Name(t)
			proxy.lose.Store(&loss{"Txn", name, code})
			if v, err := s.Put(t.Context(), name, []byte("x"), nil); !errors.Is(err, backend.ErrUnavailable) {
				t.Errorf("Put: %d, %v; want ErrUnavailable", v, err)
			}
			if resp, err := operator.Get(t.Context(), name); err != nil || len(resp.Kvs) != 1 || resp.Kvs[0].Version != 1 {
				t.Errorf("the record is %+v, %v; want one that was written once", resp.Kvs, err)
			}
			proxy.lose.Store(&loss{"Txn", name, code})
			if err := s.Delete(t.Context(), name, nil); !errors.Is(err, backend.ErrUnavailable) {
				t.Errorf("Delete: %v; want ErrUnavailable", err)
			}
		})
	}
}
