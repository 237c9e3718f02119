//go:build linux

package kubernetes_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
	"github.com/succession-dev/succession/kubernetes"
)

// A watch that tells of nothing any more keeps nobody waiting: each ought to tell of the renewals of its own session.
func TestDeafWatch(t *testing.T) {
	t.Parallel()
	k := sharedKubernetes(t)
	prefix := coordtest.Name(t)
	leader := newClient(t, k, kubernetes.Options{Prefix: prefix})
	a := leader.live(t)
	b, deaf := withDeaf(t, k, prefix, kubernetes.SessionName(leader.Backend))
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
		if err != nil && !watch.NotJudged(ttl/4, "the next one is told %v", err) {
			t.Error(err)
		}
		watch.Within(3*ttl/2, "to find out that the watch is deaf")
	case <-time.After(time.Minute):
		t.Fatal("the next one waits for ever: its watch is deaf, and the session of the one that has left lives on")
	}
}

// Where watches cannot be opened, or end whenever they were, those who wait still find out: the next one that the leader has left, and a leader
// that somebody has removed its member.
func TestWatchRefused(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]struct {
		status int
		body   string
	}{
		"refused":       {http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no watch here"}`},
		"ended at once": {http.StatusOK, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			watchAnswered(t, answer.status, answer.body)
		})
	}
}

// watchAnswered has all watches of a candidate answered so.
func watchAnswered(t *testing.T, status int, body string) {
	k := sharedKubernetes(t)
	prefix := coordtest.Name(t)
	refuses := func() backend.Session {
		return wrapped(t, k, prefix, func(req *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
			if strings.Contains(req.URL.RawQuery, "watch=true") {
				return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: req}, nil
			}
			return send()
		})
	}
	a, b := newClient(t, k, kubernetes.Options{Prefix: prefix}).live(t), refuses()
	m, n := join(t, a, "e", "leader"), join(t, b, "e", "heir")
	first(t, a, m)
	p, err := b.Ahead(t.Context(), n)
	if err != nil || p.First {
		t.Fatal(p, err)
	}
	// Something else renews the session all the time.
	refreshing, stop := context.WithCancel(t.Context())
	var refreshes sync.WaitGroup
	defer refreshes.Wait()
	defer stop()
	refreshes.Go(func() {
		for refreshing.Err() == nil {
			_ = b.Refresh(refreshing)
			select {
			case <-time.After(ttl / 10):
			case <-refreshing.Done():
			}
		}
	})
	watches := func(what string, over func(error) bool) {
		watch, ctx := calm.Start(t), within(t, time.Minute)
		for {
			err := b.WatchPlace(ctx, n, &p)
			if over(err) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
		}
		watch.Within(2*ttl, "%s", what)
	}
	if err := a.Leave(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	watches("that the leader has left", func(error) bool { return p.First })
	if err := rig.OperatorOf(t, urlOf(t, k, prefix)).Remove(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	watches("that its member was removed", func(err error) bool { return errors.Is(err, backend.ErrNotMember) })
}

// The API server answers neither a watch nor a list any more, and everything else. A leader hears that its member was removed.
func TestListsFail(t *testing.T) {
	t.Parallel()
	k := sharedKubernetes(t)
	prefix := coordtest.Name(t)
	var fails atomic.Bool
	var looks atomic.Int64
	s := wrapped(t, k, prefix, func(req *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
		watch := strings.Contains(req.URL.RawQuery, "watch=true")
		if watch || fails.Load() && req.Method == http.MethodGet && req.URL.Query().Has("labelSelector") {
			return &http.Response{StatusCode: http.StatusInternalServerError, Header: http.Header{"Content-Type": {"application/json"}},
				Body: io.NopCloser(strings.NewReader(`{"kind":"Status","code":500,"message":"not now"}`)), Request: req}, nil
		}
		resp, err := send()
		if req.Method == http.MethodGet {
			looks.Add(1)
		}
		return resp, err
	})
	m := join(t, s, "e", "leader")
	first(t, s, m)
	fails.Store(true)
	told, ctx := make(chan error, 1), within(t, time.Minute)
	before := looks.Load()
	go func() {
		p, err := backend.Place{First: true}, error(nil)
		for err == nil {
			err = s.WatchPlace(ctx, m, &p)
		}
		told <- err
	}()
	for looks.Load() == before && ctx.Err() == nil { // it has looked, and waits
		time.Sleep(time.Millisecond)
	}
	if err := rig.OperatorOf(t, urlOf(t, k, prefix)).Remove(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	watch := calm.Start(t)
	if err := <-told; !errors.Is(err, backend.ErrNotMember) {
		t.Fatal(err)
	}
	watch.Within(2*ttl, "that its member was removed")
}

// An API server whose memory is far behind another one's waits for it for three seconds, which is longer than a request takes elsewhere, and
// then says so: the newest is asked for without a version. The next in line leads all the same.
func TestServerIsBehind(t *testing.T) {
	t.Parallel()
	k := sharedKubernetes(t)
	prefix := coordtest.Name(t)
	s := wrapped(t, k, prefix, func(req *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
		if req.URL.Query().Get("resourceVersionMatch") == "NotOlderThan" {
			select {
			case <-time.After(3 * time.Second):
			case <-req.Context().Done():
				return nil, req.Context().Err()
			}
			return &http.Response{StatusCode: http.StatusGatewayTimeout, Header: http.Header{"Content-Type": {"application/json"}},
				Body: io.NopCloser(strings.NewReader(`{"kind":"Status","code":504,"reason":"Timeout","message":"Timeout: Too large resource version: 9, current: 8"}`)), Request: req}, nil
		}
		return send()
	})
	first(t, s, join(t, s, "e", "x"))
}

// withDeaf returns a backend whose first watch of what the name begins with tells of nothing. deaf is closed when it is open.
func withDeaf(t *testing.T, k *coordtest.Kubernetes, prefix, name string) (b *kubernetes.Backend, deaf chan struct{}) {
	t.Helper()
	deaf = make(chan struct{})
	return transported(t, k, prefix, ttl, func(rt http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			if q := req.URL.RawQuery; strings.Contains(q, "watch=true") && strings.Contains(q, name) {
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
	}), deaf
}

// So does one that is to tell of the record, which says that the leader is to resign.
func TestDeafRecord(t *testing.T) {
	t.Parallel()
	k := sharedKubernetes(t)
	prefix := coordtest.Name(t)
	b, deaf := withDeaf(t, k, prefix, "record-")
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m := join(t, s, "e", "leader")
	p, err := s.Ahead(t.Context(), m)
	if err != nil || !p.First {
		t.Fatal(p, err)
	}
	told := make(chan error, 1)
	go func() { told <- s.WatchPlace(t.Context(), m, &p) }()
	<-deaf
	other := newClient(t, k, kubernetes.Options{Prefix: prefix}).live(t)
	if _, err := other.Put(t.Context(), "e", backend.Header{Fence: 7}.Encode(), nil); err != nil {
		t.Fatal(err)
	}
	watch := calm.Start(t)
	select {
	case err := <-told:
		if (err != nil || p.Header.Fence != 7) && !watch.NotJudged(ttl/4, "the leader is told %+v, %v", p, err) {
			t.Errorf("the leader is told %+v, %v", p, err)
		}
		watch.Within(3*ttl/2, "to find out that the watch is deaf")
	case <-time.After(time.Minute):
		t.Fatal("the leader is never told what its header says: the watch is deaf")
	}
}
