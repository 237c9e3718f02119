//go:build linux

package kubernetes_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/kubernetes"
)

// How a lock ends: its leader leaves, is closed, or cannot renew it.

// Who leaves gives the Lease to the next one of its line, in whose hands it is never free; the last one clears it.
func TestBesideLeaves(t *testing.T) {
	t.Parallel()
	x, open := beside(t)
	heir := open()
	a, b := open().live(t), heir.live(t)
	m, n := join(t, a, x.name, "web-1"), join(t, b, x.name, "web-2")
	first(t, a, m)
	was := x.read()
	heir.proxy.Cut()
	if err := a.Leave(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if now := x.read(); now.Spec.HolderIdentity != was.Spec.HolderIdentity {
		t.Errorf("while the next one cannot take it the Lease is %+v", now.Spec)
	}
	heir.proxy.Heal()
	first(t, b, n)
	now := x.read()
	if now.Spec.HolderIdentity != "web-2_"+n.Key || now.Spec.LeaseTransitions != was.Spec.LeaseTransitions+1 {
		t.Errorf("after a handover the Lease is %+v, and was %+v", now.Spec, was.Spec)
	}
	if err := b.Leave(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	if now = x.read(); now.Spec.HolderIdentity != "" || now.Spec.LeaseDurationSeconds != 1 {
		t.Errorf("after the last one has left the Lease is %+v", now.Spec)
	}
	watch := calm.Start(t) // what one of ours has cleared is taken at once
	m = join(t, a, x.name, "web-1")
	first(t, a, m)
	watch.Within(time.Second, "to lead again")
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if now = x.read(); now.Spec.HolderIdentity != "" {
		t.Errorf("after the session was closed the Lease is %+v", now.Spec)
	}
}

// A leader that cannot renew the Lease is over when its time has passed, whatever else is answered. Its session and its members in other
// elections stand, and the deadline of their terms has passed: a session has one for all.
func TestBesideUnrenewed(t *testing.T) {
	t.Parallel()
	x, _ := beside(t)
	var refuse atomic.Bool
	_, s := x.through(ttl, func(rt http.RoundTripper, req *http.Request) (*http.Response, error) {
		if refuse.Load() && strings.HasSuffix(req.URL.Path, "/"+x.name) {
			return nil, errors.New("refused by the test")
		}
		return rt.RoundTrip(req)
	})
	m, n := join(t, s, x.name, "web-1"), join(t, s, x.name+"-other", "web-1")
	first(t, s, m)
	first(t, s, n)
	p, err := s.Ahead(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	watch := calm.Start(t)
	refuse.Store(true)
	last := time.Now().Add(ttl)
	for err == nil {
		if d := s.Deadline(); d.After(last) {
			if _, err = s.Ahead(t.Context(), m); err == nil {
				t.Fatalf("the deadline is %v later than that of the Lease, and it leads", d.Sub(last))
			}
			break
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if err = s.WatchPlace(ctx, m, &p); errors.Is(err, context.DeadlineExceeded) {
			err = nil
		}
		cancel()
		if time.Since(last) > time.Minute {
			t.Fatal("it is not over")
		}
	}
	if s.Err() != nil && watch.NotJudged(ttl/4, "the session has ended: %v", s.Err()) {
		return
	}
	if !errors.Is(err, backend.ErrNotMember) {
		t.Errorf("the leader is told %v", err)
	}
	watch.From(last).Within(time.Second, "to be told that the deadline has passed")
	refuse.Store(false)
	for s.Err() == nil && time.Until(s.Deadline()) <= 0 { // its member is removed
		time.Sleep(time.Millisecond)
	}
	if p, err := s.Ahead(t.Context(), n); err != nil || !p.First {
		t.Errorf("the member in the other election stands at %+v, %v, want it to be first as before", p, err)
	}
}

// A Lease that is taken late, as its request has waited for its turn, ends nothing: the session's deadline is that of all its terms.
func TestBesideLate(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		urgent bool // other urgent requests are under way, too
		free   time.Duration
	}{"behind others": {false, ttl + ttl/10}, "behind urgent ones": {true, ttl + ttl/10}, "nearly too late": {true, ttl * 9 / 10}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x, _ := beside(t)
			var b *kubernetes.Backend
			late := x.name + "-late"
			var once sync.Once
			b, s := x.through(ttl, func(rt http.RoundTripper, req *http.Request) (*http.Response, error) {
				if req.Method == http.MethodGet && strings.HasSuffix(req.URL.Path, "/"+late) {
					once.Do(func() { time.AfterFunc(tt.free, kubernetes.Busy(b, tt.urgent)) })
				}
				return rt.RoundTrip(req)
			})
			watch := calm.Start(t)
			if !tt.urgent { // with urgent requests held up its own Lease could not be renewed
				first(t, s, join(t, s, x.name, "web-1"))
			}
			m := join(t, s, late, "web-1")
			ctx := within(t, time.Minute)
			p, err := s.Ahead(ctx, m)
			for err == nil && !p.First {
				err = s.WatchPlace(ctx, m, &p)
			}
			left := time.Until(s.Deadline())
			if s.Err() != nil && watch.NotJudged(ttl/4, "the session has ended: %v", s.Err()) {
				return
			}
			if err != nil || left < ttl/4 {
				t.Errorf("the Lease is taken: %v, the deadline is in %v", err, left)
			}
		})
	}
}

// A member that has lost the Lease, and that the API server does not let go, ends its session: otherwise all would wait behind it for as long
// as that is renewed, and its deadline would be later again.
func TestBesideStuck(t *testing.T) {
	t.Parallel()
	x, _ := beside(t)
	_, s := x.through(long, func(rt http.RoundTripper, req *http.Request) (*http.Response, error) {
		if req.Method == http.MethodDelete && strings.Contains(req.URL.Path, "/member-") {
			body := `{"kind":"Status","code":403,"reason":"Forbidden","message":"refused by the test"}`
			return &http.Response{StatusCode: http.StatusForbidden, Header: make(http.Header), Body: io.NopCloser(strings.NewReader(body)), Request: req}, nil
		}
		return rt.RoundTrip(req)
	})
	m := join(t, s, x.name, "web-1")
	first(t, s, m)
	x.write("pod_1", 15, true)
	select {
	case <-s.Done():
		if err := s.Err(); !errors.Is(err, backend.ErrSessionEnded) || !strings.Contains(err.Error(), m.Key) || !strings.Contains(err.Error(), backend.ErrDenied.Error()) {
			t.Errorf("the session has ended: %v\nwant ErrDenied, and the member", err)
		}
	case <-time.After(time.Minute):
		t.Error("the session goes on, and its member stands")
	}
}

// The deadline of a lock that could not be renewed stays passed, whatever the session's own is, and its member has gone at once, without a
// word of the API server.
func TestBesideLapsed(t *testing.T) {
	t.Parallel()
	for _, before := range []bool{true, false} { // it watches its place before, or only afterwards
		t.Run(fmt.Sprint("watches=", before), func(t *testing.T) {
			t.Parallel()
			lapsed(t, before)
		})
	}
}

func lapsed(t *testing.T, before bool) {
	x, _ := beside(t)
	whole := calm.Start(t)
	var lock, all atomic.Bool // what is refused
	_, s := x.through(ttl, func(rt http.RoundTripper, req *http.Request) (*http.Response, error) {
		if all.Load() || lock.Load() && strings.HasSuffix(req.URL.Path, "/"+x.name) {
			return nil, errors.New("refused by the test")
		}
		return rt.RoundTrip(req)
	})
	m := join(t, s, x.name, "web-1")
	first(t, s, m)
	p, err := s.Ahead(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	lock.Store(true)
	for time.Until(s.Deadline()) > ttl/6 {
		time.Sleep(time.Millisecond)
	}
	all.Store(true)
	last := s.Deadline()
	if left := time.Until(last); (left <= 0 || left > ttl/6) && whole.NotJudged(ttl/4, "the deadline is in %v when all is refused", left) {
		return
	}
	told := make(chan error, 1)
	go func() {
		if !before {
			time.Sleep(time.Until(last) + ttl/10)
		}
		told <- s.WatchPlace(t.Context(), m, &p)
	}()
	time.Sleep(time.Until(last))
	watch := calm.Start(t)
	for passed := false; ; time.Sleep(time.Millisecond) {
		left := time.Until(s.Deadline())
		if passed && left > 0 {
			t.Fatalf("the deadline had passed, and is in %v", left)
		}
		passed = passed || left <= 0
		select {
		case err := <-told:
			if s.Err() != nil && whole.NotJudged(ttl/4, "the session has ended: %v", s.Err()) {
				return
			}
			watch.Within(ttl/4, "to be told")
			if !errors.Is(err, backend.ErrNotMember) || s.Err() != nil || !passed {
				t.Errorf("the leader is told %v, the session says %v; the deadline has passed: %v", err, s.Err(), passed)
			}
			if left := time.Until(s.Deadline()); left > 0 {
				t.Errorf("the deadline is in %v again", left)
			}
			all.Store(false)
			for time.Until(s.Deadline()) <= 0 && s.Err() == nil { // its member is removed
				time.Sleep(time.Millisecond)
			}
			if s.Err() != nil && !whole.NotJudged(ttl/4, "the session has ended: %v", s.Err()) {
				t.Errorf("the session has ended: %v", s.Err())
			}
			return
		default:
		}
	}
}

// A process that leads many elections and is closed clears the Lease of each before Close gives up, also if answers take their time.
func TestBesideClosed(t *testing.T) {
	t.Parallel()
	x, _ := beside(t)
	var slow atomic.Bool
	b, s := x.through(15*time.Second, func(rt http.RoundTripper, req *http.Request) (*http.Response, error) {
		if slow.Load() {
			time.Sleep(200 * time.Millisecond)
		}
		return rt.RoundTrip(req)
	})
	var leases []*stranger
	for i := range 12 {
		name := fmt.Sprint(x.name, "-", i)
		first(t, s, join(t, s, name, "web-1"))
		leases = append(leases, &stranger{t, x.k, name})
	}
	slow.Store(true)
	watch := calm.Start(t)
	if err := b.Close(); err != nil {
		if watch.NotJudged(2*time.Second, "to close: %v", err) {
			return
		}
		t.Error(err)
	}
	watch.Within(2*time.Second, "to close")
	for _, l := range leases {
		if holder := l.read().Spec.HolderIdentity; holder != "" {
			t.Errorf("the Lease %s is still held, by %s", l.name, holder)
		}
	}
}
