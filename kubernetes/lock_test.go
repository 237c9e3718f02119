//go:build linux

package kubernetes_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/kubernetes"
)

// What a candidate of client-go does to the Lease is written here as it writes it. Module adapters/controllerruntime has the test with
// client-go itself, which is seven hundred packages.

// A lease is one as client-go reads and writes it.
type lease struct {
	Metadata struct {
		Name            string            `json:"name"`
		ResourceVersion string            `json:"resourceVersion,omitempty"`
		Annotations     map[string]string `json:"annotations,omitempty"`
	} `json:"metadata"`
	Spec struct {
		HolderIdentity       string `json:"holderIdentity"`
		LeaseDurationSeconds int    `json:"leaseDurationSeconds"`
		AcquireTime          string `json:"acquireTime"`
		RenewTime            string `json:"renewTime"`
		LeaseTransitions     int    `json:"leaseTransitions"`
	} `json:"spec"`
}

// A stranger is a client that reads and writes one Lease, as client-go does.
type stranger struct {
	*testing.T
	k    *coordtest.Kubernetes
	name string
}

func (x *stranger) send(method, path, body string) string {
	x.Helper()
	cfg, err := configOf(x.k, x.k.Addrs()[0], coordtest.KubernetesToken)
	if err != nil {
		x.Fatal(err)
	}
	answer := ""
	if err := do(x.Context(), cfg, method, leases+path, body, &answer); err != nil {
		x.Fatal(err)
	}
	return answer
}

func (x *stranger) read() (l lease) {
	x.Helper()
	if err := json.Unmarshal([]byte(x.send(http.MethodGet, "/"+x.name, "")), &l); err != nil {
		x.Fatal(err)
	}
	return l
}

// write writes the Lease for a holder: taken, renewed, or cleared with an empty one. It does not heed what it has read but for its
// version, as the release of client-go.
func (x *stranger) write(holder string, seconds int, taken bool) {
	x.Helper()
	l := x.read()
	l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = holder, seconds
	l.Spec.RenewTime = time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")
	l.Spec.AcquireTime = l.Spec.RenewTime
	if taken {
		l.Spec.LeaseTransitions++
	}
	body, err := json.Marshal(l)
	if err != nil {
		x.Fatal(err)
	}
	x.send(http.MethodPut, "/"+x.name, string(body))
}

func (x *stranger) create(holder string, seconds int) {
	x.Helper()
	x.send(http.MethodPost, "", `{"metadata":{"name":"`+x.name+`"},"spec":{"leaseDurationSeconds":1}}`)
	x.write(holder, seconds, false)
}

// beside returns a stranger, and a func that opens backends beside it. The Lease is named like the election.
func beside(t *testing.T) (*stranger, func() *client) {
	k := sharedKubernetes(t)
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(coordtest.Name(t)))
	return &stranger{t, k, name}, func() *client {
		return newClient(t, k, kubernetes.Options{As: kubernetes.ClientGo})
	}
}

// through returns a session beside client-go whose requests go through do.
func (x *stranger) through(ttl time.Duration, do func(rt http.RoundTripper, req *http.Request) (*http.Response, error)) (*kubernetes.Backend, backend.Session) {
	x.Helper()
	cfg, err := configOf(x.k, x.k.Addrs()[0], coordtest.KubernetesToken)
	if err != nil {
		x.Fatal(err)
	}
	cfg.WrapTransport = func(rt http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) { return do(rt, req) })
	}
	b, err := kubernetes.New(cfg, &kubernetes.Options{Namespace: "default", As: kubernetes.ClientGo, TTL: ttl, ConnectTimeout: long})
	if err != nil {
		x.Fatal(err)
	}
	x.Cleanup(func() { b.Close() })
	s, err := b.Session(x.Context())
	if err != nil {
		x.Fatal(err)
	}
	return b, s
}

// Who is first in line leads at once if there is no Lease, and otherwise not before its holder has had its time.
func TestBesideWaits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		prepare  func(x *stranger)
		then     func(x *stranger) // when the member has seen that
		not      time.Duration     // it leads not before
		soon     time.Duration     // and then until; 0: not at all
		occupied string            // the holder meanwhile
	}{
		{"none", func(*stranger) {}, nil, 0, time.Second, ""},
		{"held", func(x *stranger) { x.create("pod_1", 5) }, nil, 5250 * time.Millisecond, 6 * time.Second, "pod_1"},
		{"renewed", func(x *stranger) { x.create("pod_1", 5) }, func(x *stranger) {
			x.write("pod_1", 5, false)
		}, 5250 * time.Millisecond, 6 * time.Second, "pod_1"},
		{"cleared", func(x *stranger) { x.create("pod_1", 5) }, func(x *stranger) { x.write("", 1, false) }, time.Second, 2 * time.Second, "pod_1"},
		{"cleared before", func(x *stranger) { x.create("", 1) }, nil, 3 * time.Second, 4 * time.Second, ""},
		{"of another line", func(x *stranger) {
			c := newClient(x.T, x.k, kubernetes.Options{As: kubernetes.ClientGo, Prefix: "pre"})
			s := c.live(x.T)
			first(x.T, s, join(x.T, s, strings.TrimPrefix(x.name, "pre."), "other"))
		}, nil, ttl, 0, "other"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			x, _ := beside(t)
			if tt.name == "of another line" {
				x.name = "pre." + x.name
			}
			tt.prepare(x)
			s := newClient(t, x.k, kubernetes.Options{As: kubernetes.ClientGo, TTL: 5 * time.Second}).live(t)
			m := join(t, s, x.name, "web-1")
			begun := time.Now()
			p, err := s.Ahead(t.Context(), m)
			if err != nil {
				t.Fatal(err)
			}
			if tt.occupied != "" {
				if p.First || !strings.HasPrefix(p.Ahead.Value, tt.occupied) {
					t.Errorf("it stands behind %+v, want %s in front", p.Ahead, tt.occupied)
				}
				l, err := s.Line(t.Context(), x.name)
				if err != nil || len(l.Members) != 2 || !strings.HasPrefix(l.Members[0].Value, tt.occupied) {
					t.Errorf("the line is %+v (%v), want the holder of the Lease in front", l.Members, err)
				}
				h, err := s.Head(t.Context(), x.name)
				if err != nil || len(h.Members) != 1 || !strings.HasPrefix(h.Members[0].Value, tt.occupied) {
					t.Errorf("the head is %+v (%v), want the holder of the Lease", h.Members, err)
				}
			}
			if tt.then != nil {
				time.Sleep(time.Second) // the member has seen it for a part of its time
				begun = time.Now()
				tt.then(x)
			}
			watch := calm.Start(t)
			if tt.soon == 0 { // never
				ctx, cancel := context.WithTimeout(t.Context(), tt.not)
				defer cancel()
				for err == nil && !p.First {
					err = s.WatchPlace(ctx, m, &p)
				}
				if err == nil {
					t.Error("it leads beside the leader of another line that holds the same Lease")
				}
				return
			}
			first(t, s, m)
			took := time.Since(begun)
			if took < tt.not {
				t.Errorf("it leads after %v, and the holder had %v", took, tt.not)
			}
			if took := time.Since(watch.Began()); took > tt.soon && !watch.NotJudged(tt.soon-tt.not, "to lead took %v", took) {
				t.Errorf("to lead took %v, want %v at most", took, tt.soon)
			}
			l := x.read()
			if l.Spec.HolderIdentity != "web-1_"+m.Key || l.Spec.LeaseDurationSeconds < int(s.TTL()/time.Second) {
				t.Errorf("the Lease is %+v, want it to name the leader and its time", l.Spec)
			}
		})
	}
}

// A leader whose Lease is cleared by a candidate of client-go that led before takes it back at once, and leads on.
func TestBesideTakesBack(t *testing.T) {
	t.Parallel()
	x, open := beside(t)
	c := open()
	s := c.live(t)
	m := join(t, s, x.name, "web-1")
	first(t, s, m)
	before := x.read()
	for range 5 { // it does not wait for the next renewal, which may be near
		watch := calm.Start(t)
		x.write("", 1, false)
		for x.read().Spec.HolderIdentity == "" {
		}
		watch.Within(long/15, "to take the Lease back")
	}
	after := x.read()
	if after.Spec.HolderIdentity != before.Spec.HolderIdentity || after.Spec.LeaseTransitions != before.Spec.LeaseTransitions {
		t.Errorf("the Lease is %+v, and was %+v", after.Spec, before.Spec)
	}
	x.send(http.MethodDelete, "/"+x.name, "") // so does one whose Lease an operator deletes
	watch := calm.Start(t)
	first(t, s, m)
	for {
		if answer := x.send(http.MethodGet, "?fieldSelector=metadata.name%3D"+x.name, ""); strings.Contains(answer, before.Spec.HolderIdentity) {
			break
		}
	}
	watch.Within(time.Second, "to create the Lease again")
	first(t, s, m)
}

// A leader whose Lease another one has taken leads no more, also if that one has given it up again. Its session and its other elections
// are as before.
func TestBesideLoses(t *testing.T) {
	t.Parallel()
	for _, given := range []bool{false, true} {
		x, open := beside(t)
		c := open()
		s := c.live(t)
		other := join(t, s, x.name+"-other", "web-1")
		first(t, s, other)
		m := join(t, s, x.name, "web-1")
		first(t, s, m)
		p, err := s.Ahead(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		told := make(chan error, 1)
		go func() {
			var err error
			for now := p; err == nil; {
				err = s.WatchPlace(within(t, time.Minute), m, &now)
			}
			told <- err
		}()
		watch := calm.Start(t)
		if given {
			c.proxy.Cut() // it is told of both at once
		}
		x.write("pod_1", 2, true)
		if given {
			x.write("", 1, false)
			c.proxy.Heal()
		}
		if err := <-told; !errors.Is(err, backend.ErrNotMember) {
			t.Errorf("the leader is told %v, want ErrNotMember", err)
		}
		watch.Within(time.Second, "to be told")
		if _, err := s.Put(t.Context(), x.name, nil, &backend.If{Member: m}); !errors.Is(err, backend.ErrNotMember) {
			t.Errorf("a write that it guards: %v, want ErrNotMember", err)
		}
		if err := s.Leave(t.Context(), m); err != nil {
			t.Error(err)
		}
		if p, err := s.Ahead(t.Context(), other); err != nil || !p.First || time.Until(s.Deadline()) <= 0 {
			t.Errorf("in its other election it stands at %+v (%v), and its deadline is in %v", p, err, time.Until(s.Deadline()))
		}
		for l, err := range lines(t, s, x.name) {
			if err != nil {
				t.Fatal(err)
			}
			if len(l.Members) == 0 || l.Members[0].Value == "pod_1" && len(l.Members) == 1 {
				break
			}
		}
	}
}

// lines yields the line again and again, for a minute at most.
func lines(t *testing.T, s backend.Session, line string) func(func(backend.Line, error) bool) {
	ctx := within(t, time.Minute)
	return func(yield func(backend.Line, error) bool) {
		for {
			l, err := s.Line(ctx, line)
			if !yield(l, err) || err != nil {
				return
			}
		}
	}
}

// Each renewal is another record to those who read times in whole seconds, also if the answer to the one before was lost. They come as often as
// those of the session.
func TestBesideRenews(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]bool{"answered": false, "half of the answers lost": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x, _ := beside(t)
			watch := calm.Start(t)
			var sent, renewals atomic.Int64
			_, s := x.through(ttl, func(rt http.RoundTripper, req *http.Request) (*http.Response, error) {
				sent.Add(1)
				resp, err := rt.RoundTrip(req)
				if err == nil && req.Method == http.MethodPatch && strings.HasSuffix(req.URL.Path, "/"+x.name) && renewals.Add(1)%2 == 1 && lose {
					resp.Body.Close()
					return nil, errors.New("lost by the test")
				}
				return resp, err
			})
			m := join(t, s, x.name, "web-1")
			first(t, s, m)
			p, err := s.Ahead(t.Context(), m)
			if err != nil {
				t.Fatal(err)
			}
			go s.WatchPlace(t.Context(), m, &p)
			history := x.history(within(t, 2*ttl))
			var was lease
			seen := 0
			for now := range history {
				if second(t, was) == second(t, now) {
					t.Errorf("a renewal at %s follows one at %s: client-go takes it for the same", now.Spec.RenewTime, was.Spec.RenewTime)
				}
				was = now
				if seen++; seen == 2 { // the first renewal: it is at rest
					sent.Store(0)
				}
			}
			t.Logf("%d requests in two session times; the Lease was written %d times", sent.Load(), seen)
			if (seen < 7 || !lose && seen > 9) && !watch.NotJudged(ttl/4, "the Lease was written %d times in two session times", seen) {
				t.Errorf("the Lease was written %d times in two session times", seen)
			}
			// Four for the session, as many for the Lease, and now and then one for all sessions.
			if most := int64(2*(4+4+1) + 3); !lose && sent.Load() > most && !watch.NotJudged(ttl/4, "a leader has sent %d requests", sent.Load()) {
				t.Errorf("a leader at rest has sent %d requests in two session times, want %d at most", sent.Load(), most)
			}
		})
	}
}

// second is when the Lease was renewed, as client-go compares it.
func second(t *testing.T, l lease) int64 {
	t.Helper()
	if l.Spec.RenewTime == "" {
		return 0
	}
	at, err := time.Parse(time.RFC3339, l.Spec.RenewTime)
	if err != nil {
		t.Fatal(err)
	}
	return at.Unix()
}

// history yields the Lease as it is, and each version after that, until ctx ends.
func (x *stranger) history(ctx context.Context) func(func(lease) bool) {
	x.Helper()
	cfg, err := configOf(x.k, x.k.Addrs()[0], coordtest.KubernetesToken)
	if err != nil {
		x.Fatal(err)
	}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		x.Fatal(err)
	}
	return func(yield func(lease) bool) {
		defer client.CloseIdleConnections()
		l := x.read()
		if !yield(l) {
			return
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, cfg.Host+leases+"?watch=true&fieldSelector=metadata.name%3D"+x.name+"&resourceVersion="+l.Metadata.ResourceVersion, nil)
		if err != nil {
			x.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			x.Fatal(err)
		}
		defer resp.Body.Close()
		for dec := json.NewDecoder(resp.Body); ; {
			var e struct{ Object lease }
			if dec.Decode(&e) != nil || !yield(e.Object) {
				return
			}
		}
	}
}

// Who watches a line is not woken by renewals of its leader's Lease, and looks at that again only once in one and a half TTL.
func TestBesideWatched(t *testing.T) {
	t.Parallel()
	x, open := beside(t)
	s := open().live(t)
	first(t, s, join(t, s, x.name, "web-1"))
	var looks atomic.Int64
	_, w := x.through(ttl, func(rt http.RoundTripper, req *http.Request) (*http.Response, error) {
		if req.Method == http.MethodGet && strings.HasSuffix(req.URL.Path, "/"+x.name) {
			looks.Add(1)
		}
		return rt.RoundTrip(req)
	})
	l, err := w.Line(t.Context(), x.name)
	if err != nil {
		t.Fatal(err)
	}
	looks.Store(0)
	watch := calm.Start(t)
	ctx := within(t, 2*ttl)
	if now, err := w.WatchLine(ctx, x.name, l); ctx.Err() == nil && !watch.NotJudged(ttl/4, "the line is %+v (%v)", now, err) {
		t.Errorf("the line is %+v (%v), and was %+v", now, err, l)
	}
	got, most := looks.Load(), 1+int64(time.Since(watch.Began())/(ttl*3/2))
	if (got == 0 || got > most) && !watch.NotJudged(ttl/4, "who watches has looked %d times", got) {
		t.Errorf("who watches a line in which nothing happens has looked %d times in two session times, want 1 to %d", got, most)
	}
}

// What candidates of client-go would not wait behind is not possible beside them.
func TestBesideRefuses(t *testing.T) {
	t.Parallel()
	x, open := beside(t)
	s := open().live(t)
	if _, err := s.JoinShared(t.Context(), x.name, "a", ""); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("JoinShared: %v, want ErrUnsupported", err)
	}
	if _, err := s.Claim(t.Context(), x.name, "", "", backend.Member{}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a claim of nothing: %v, want ErrUnsupported", err)
	}
	m := join(t, s, x.name, "a")
	if err := s.Pin(t.Context(), m, backend.Header{}, backend.Absent); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Pin: %v, want ErrUnsupported", err)
	}
	for _, name := range []string{"Reports", "a_b", strings.Repeat("a", 254)} {
		if _, err := s.Join(t.Context(), name, "a", ""); !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("Join of %.10s: %v, want ErrInvalid", name, err)
		}
	}
	own := &stranger{t, x.k, m.Key}
	n := join(t, s, own.read().Metadata.Name, "a")
	if _, err := s.Ahead(t.Context(), n); !errors.Is(err, backend.ErrInvalid) {
		t.Errorf("an election whose Lease is a member of another: %v, want ErrInvalid", err)
	}
	x.create("pod_1", int(long/time.Second)-1)
	n = join(t, s, x.name, "a") // m, in front of it, asks for nothing
	if err := s.Leave(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Ahead(t.Context(), n); !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), "choose a ttl") {
		t.Errorf("beside a shorter LeaseDuration: %v, want ErrInvalid", err)
	}
	if _, err := kubernetes.New(nil, &kubernetes.Options{Namespace: "default", As: "curator"}); !errors.Is(err, backend.ErrInvalid) {
		t.Errorf("an unknown format: %v, want ErrInvalid", err)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// Observers see who leads, also a candidate of client-go.
func TestBesideObserved(t *testing.T) {
	t.Parallel()
	x, open := beside(t)
	x.create("pod_1", int(long/time.Second))
	leaders := make(chan string)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	looks := newClient(t, x.k, kubernetes.Options{As: kubernetes.ClientGo, TTL: ttl}) // it looks once in one and a half of that
	watcher := elect.New(looks, x.name, nil)
	go func() {
		defer close(leaders)
		for s, err := range watcher.Observe(ctx) {
			if err != nil {
				return
			}
			select {
			case leaders <- s.Leader.ID:
			case <-ctx.Done():
			}
		}
	}()
	next := func(want string) {
		t.Helper()
		for {
			select {
			case id := <-leaders:
				if id == want {
					return
				}
				t.Logf("on the way to %q: %q", want, id)
			case <-time.After(time.Minute):
				t.Fatalf("nobody is told that %q leads", want)
			}
		}
	}
	next("pod_1")
	s := open().live(t)
	m := join(t, s, x.name, "web-1")
	x.write("", 1, false)
	first(t, s, m)
	next("web-1")
	x.write("pod_2", int(long/time.Second), true)
	next("pod_2")
	x.write("", 1, false)
	n := join(t, s, x.name, "web-2")
	first(t, s, n)
	next("web-2")
}

// Where a candidate of client-go leads, or one of ours beside them, nobody pauses an election by a URL that does not say so: they would
// not wait. One that has left holds up nothing.
func TestBesidePaused(t *testing.T) {
	t.Parallel()
	x, open := beside(t)
	plain := newClient(t, x.k, kubernetes.Options{})
	s := plain.live(t)
	pause := func() error {
		j, err := s.Join(t.Context(), x.name, "gate", "")
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Get(t.Context(), x.name)
		if err == nil {
			err = s.Pin(t.Context(), j.Member, backend.Header{}, r.Version)
		}
		if err := s.Leave(t.Context(), j.Member); err != nil {
			t.Error(err)
		}
		return err
	}
	x.create("pod_1", 2)
	if err := pause(); !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "pod_1") {
		t.Errorf("while a candidate of client-go leads: %v, want ErrUnsupported", err)
	}
	x.send(http.MethodDelete, "/"+x.name, "")
	c := open()
	a := c.live(t)
	m := join(t, a, x.name, "web-1")
	first(t, a, m)
	if err := pause(); !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "web-1_"+m.Key) {
		t.Errorf("while one of ours leads beside them: %v, want ErrUnsupported", err)
	}
	c.proxy.Cut() // so that it does not clear the Lease when it hears that its session has ended
	if err := c.Expire(t.Context()); err != nil {
		t.Fatal(err)
	}
	if l := x.read(); l.Spec.HolderIdentity == "" {
		t.Errorf("the Lease is %+v", l.Spec)
	}
	if err := pause(); err != nil {
		t.Errorf("when that one has gone: %v", err)
	}
}
