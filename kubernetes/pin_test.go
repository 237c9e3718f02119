//go:build linux

package kubernetes_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/kubernetes"
)

// A pausing transport keeps the next request that matches until it is let go.
type pausing struct {
	http.RoundTripper
	match          func(*http.Request) bool
	armed          atomic.Bool
	reached, letGo chan struct{}
}

func (p *pausing) RoundTrip(req *http.Request) (*http.Response, error) {
	if p.match(req) && p.armed.CompareAndSwap(true, false) {
		close(p.reached)
		<-p.letGo
	}
	return p.RoundTripper.RoundTrip(req)
}

// Who has read the members of a line before one is pinned, and reads the rest when that member has been made an item, sees it stand,
// pinned: also if its session has ended meanwhile.
func TestPinnedBetweenTwoReads(t *testing.T) {
	t.Parallel()
	k := coordtest.NewKubernetes(t, nil)
	for _, tt := range []struct {
		name  string
		match func(*http.Request) bool // what is read after the pin
		ends  bool                     // the session of the member
	}{
		{"the record", func(req *http.Request) bool {
			return req.Method == http.MethodGet && strings.Contains(req.URL.Path, "/record-")
		}, false},
		{"the sessions", func(req *http.Request) bool {
			return req.Method == http.MethodGet && req.URL.Query().Get("watch") == "" && strings.Contains(req.URL.Query().Get("labelSelector"), "/session=")
		}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg, err := configOf(k, k.Addrs()[0], coordtest.KubernetesToken)
			if err != nil {
				t.Fatal(err)
			}
			p := &pausing{match: tt.match, reached: make(chan struct{}), letGo: make(chan struct{})}
			cfg.WrapTransport = func(rt http.RoundTripper) http.RoundTripper { p.RoundTripper = rt; return p }
			reader, err := kubernetes.New(cfg, &kubernetes.Options{Namespace: "default", TTL: long, ConnectTimeout: long})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { reader.Close() })
			owner := newClient(t, k, kubernetes.Options{})
			line := coordtest.Name(t)
			so := owner.live(t)
			sr, err := reader.Session(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			j, err := so.Join(t.Context(), line, "pinned", "")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := so.Put(t.Context(), line, backend.Header{}.Encode(), nil); err != nil { // the line has a record
				t.Fatal(err)
			}
			if err := sr.Refresh(t.Context()); err != nil { // it is to find the member
				t.Fatal(err)
			}
			type answer struct {
				l   backend.Line
				err error
			}
			told := make(chan answer, 1)
			p.armed.Store(true)
			go func() {
				l, err := sr.Line(t.Context(), line)
				told <- answer{l, err}
			}()
			select {
			case <-p.reached:
			case got := <-told:
				t.Fatalf("nothing was held: %v, %v", got.l, got.err)
			}
			r, err := so.Get(t.Context(), line)
			if err == nil {
				err = so.Pin(t.Context(), j.Member, backend.Header{}, r.Version)
			}
			if err != nil {
				t.Fatal(err)
			}
			settled(owner)
			if tt.ends {
				if err := owner.Close(); err != nil {
					t.Fatal(err)
				}
			}
			close(p.letGo)
			got := <-told
			if got.err != nil {
				t.Fatal(got.err)
			}
			if len(got.l.Members) != 1 || !got.l.Members[0].Pinned {
				t.Errorf("the line is %v, want the member, pinned", got.l.Members)
			}
		})
	}
}

// settled waits until a client, which was busy, has sent nothing for a while.
func settled(c *client) {
	for n := int64(-1); n != c.requests.Load(); time.Sleep(ttl / 8) {
		n = c.requests.Load()
	}
}
