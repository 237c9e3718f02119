//go:build linux

package kubernetes_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/kubernetes"
)

// A watch that tells of nothing any more, while all others do, keeps nobody waiting: that of a session ought to tell of its renewals.
func TestDeafWatch(t *testing.T) {
	t.Parallel()
	k := sharedKubernetes(t)
	prefix := coordtest.Name(t)
	leader := newClient(t, k, kubernetes.Options{Prefix: prefix})
	a := leader.live(t)
	front := "of%3D" + kubernetes.SessionName(leader.Backend)
	cfg, err := configOf(k, k.Addrs()[0], coordtest.KubernetesToken)
	if err != nil {
		t.Fatal(err)
	}
	deaf := make(chan struct{})
	cfg.WrapTransport = func(rt http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			if q := req.URL.RawQuery; strings.Contains(q, "watch=true") && strings.Contains(q, front) {
				select {
				case <-deaf:
				default:
					close(deaf)
					r, w := io.Pipe() // an open stream on which nothing comes
					context.AfterFunc(req.Context(), func() { w.CloseWithError(context.Cause(req.Context())) })
					return &http.Response{StatusCode: http.StatusOK, Header: make(http.Header), Body: r, Request: req}, nil
				}
			}
			return rt.RoundTrip(req)
		})
	}
	b, err := kubernetes.New(cfg, &kubernetes.Options{Namespace: "default", Prefix: prefix, TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m := join(t, a, "e", "leader")
	n := join(t, s, "e", "heir")
	first(t, a, m)
	led := make(chan error, 1)
	go func() {
		p, err := s.Ahead(t.Context(), n)
		for err == nil && !p.First {
			err = s.WatchPlace(t.Context(), n, &p)
		}
		led <- err
	}()
	<-deaf
	if err := a.Leave(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	watch := calm.Start(t)
	select {
	case err := <-led:
		watch.Within(5*ttl/2, "to find out that the watch is deaf")
		if err != nil {
			t.Error(err)
		}
	case <-time.After(4 * ttl):
		t.Fatal("the next one waits for ever: its watch is deaf, and the session of the one that has left lives on")
	}
}
