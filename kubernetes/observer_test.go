//go:build linux

package kubernetes_test

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// Of two sessions that watch over all, each deletes what ended sessions have left. It does not suspect a member of a session that was
// opened while it looked.
func TestOrphans(t *testing.T) {
	t.Parallel()
	k := sharedKubernetes(t)
	prefix := coordtest.Name(t)
	isMember := func(req *http.Request) bool { return strings.Contains(req.URL.Path, "/leases/member-") }

	left := transported(t, k, prefix, ttl, func(rt http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			if req.Method == http.MethodDelete && isMember(req) {
				return nil, errors.New("the process is killed")
			}
			return rt.RoundTrip(req)
		})
	})
	s, err := left.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	join(t, s, "e", "left")
	if err := left.Close(); err != nil {
		t.Fatal(err)
	}

	var asked, deleted, looks atomic.Int32 // looks counts those after the members were listed
	done := make(chan struct{})
	wrapped(t, k, prefix, func(req *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
		switch q := req.URL.Query().Get("labelSelector"); {
		case strings.HasPrefix(q, "succession-dev.github.io/member="):
			if looks.CompareAndSwap(0, 1) {
				other, err := transported(t, k, prefix, ttl, func(rt http.RoundTripper) http.RoundTripper { return rt }).Session(t.Context())
				if err != nil {
					return nil, err
				}
				if _, err := other.Join(t.Context(), "e", "new", ""); err != nil {
					return nil, err
				}
			}
		case strings.HasPrefix(q, "succession-dev.github.io/session=") && looks.Load() > 0:
			if looks.Add(1) == 3 {
				close(done)
			}
		case req.Method == http.MethodGet && strings.Contains(req.URL.Path, "/leases/session-"):
			asked.Add(1)
		case req.Method == http.MethodDelete && isMember(req):
			deleted.Add(1)
		}
		return send()
	})
	select {
	case <-done:
	case <-time.After(10 * ttl):
		t.Fatal("the members were not listed, and the sessions twice")
	}
	if n := deleted.Load(); n != 1 {
		t.Errorf("%d members were deleted, and one was left behind", n)
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("%d sessions were asked for, and a member of one was left behind", n)
	}
}
