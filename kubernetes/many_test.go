//go:build linux

package kubernetes_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/succession-dev/succession/conformance/proxy"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/lane"
	"github.com/succession-dev/succession/kubernetes"
)

// A crowd is one process's candidates of many elections, on one session.
type crowd struct {
	*kubernetes.Backend
	proxy   *proxy.Proxy
	running sync.WaitGroup
	waiting atomic.Int64 // how often a candidate was told that it waits
	lead    atomic.Int64 // candidates that lead
	ended   atomic.Int64 // terms that have ended

	mu    sync.Mutex
	under int // requests under way; a watch is, until it is open
	peak  int // the most since the last count
	sent  int // requests but watches
	asked int // requests for watches
	open  int // watches that are open
}

// newCrowd returns the candidates of a process.
func newCrowd(t *testing.T, k *coordtest.Kubernetes, prefix string, ttl time.Duration) *crowd {
	t.Helper()
	cfg, err := configOf(k, "", coordtest.KubernetesToken)
	if err != nil {
		t.Fatal(err)
	}
	c := new(crowd)
	if c.proxy, err = coordtest.StartProxy(k.Addrs()[0]); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.proxy.Close)
	cfg.Host = "https://" + c.proxy.Addr()
	cfg.WrapTransport = func(rt http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) { return c.send(rt, req) })
	}
	if c.Backend, err = kubernetes.New(cfg, &kubernetes.Options{Namespace: "default", Prefix: prefix, TTL: ttl}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// send sends a request, and counts it.
func (c *crowd) send(rt http.RoundTripper, req *http.Request) (*http.Response, error) {
	watch := req.URL.Query().Has("watch")
	c.mu.Lock()
	if watch {
		c.asked++
	} else {
		c.sent++
	}
	c.under++
	c.peak = max(c.peak, c.under)
	c.mu.Unlock()
	change := func(n *int, by int) {
		c.mu.Lock()
		defer c.mu.Unlock()
		*n += by
	}
	resp, err := rt.RoundTrip(req)
	if err != nil {
		change(&c.under, -1)
		return nil, err
	}
	if watch {
		change(&c.under, -1)
		change(&c.open, 1)
		resp.Body = &closing{resp.Body, sync.OnceFunc(func() { change(&c.open, -1) })}
	} else {
		resp.Body = &closing{resp.Body, sync.OnceFunc(func() { change(&c.under, -1) })}
	}
	return resp, nil
}

// A closing is a body that tells when it is closed.
type closing struct {
	io.ReadCloser
	closed func()
}

func (c *closing) Close() error {
	defer c.closed()
	return c.ReadCloser.Close()
}

// A count is what was sent since the last one.
type count struct{ sent, asked, open, peak int }

func (c *crowd) count() count {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := count{c.sent, c.asked, c.open, c.peak}
	c.sent, c.asked, c.peak = 0, 0, c.under
	return n
}

// watches returns how many watches are open, and how many were asked for since the last count.
func (c *crowd) watches() (open, asked int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open, c.asked
}

// run has the candidates run for n elections at once, until the test ends.
func (c *crowd) run(t *testing.T, n int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	for i := range n {
		e := elect.New(c, fmt.Sprint("e-", i), &elect.Options{Trace: func(e trace.Event) {
			if e.Kind == trace.Waiting {
				c.waiting.Add(1)
			}
		}})
		c.running.Go(func() {
			_ = e.Run(ctx, func(ctx context.Context, _ *elect.Term) error {
				c.lead.Add(1)
				<-ctx.Done()
				c.lead.Add(-1)
				c.ended.Add(1)
				return ctx.Err()
			})
		})
	}
	t.Cleanup(func() {
		cancel()
		c.Close() // the session takes its members with it
		c.running.Wait()
	})
}

// reach waits until cond holds.
func reach(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); !cond(); time.Sleep(20 * time.Millisecond) { // nothing tells of requests
		if time.Now().After(end) {
			t.Fatal("not reached: ", what)
		}
	}
}

// Three hundred elections of two processes have a few watches, and cost no more at rest than one election. However many want something at
// once, a bounded number of requests is under way, and no session is lost. When a connection breaks, or the API server is started anew, the
// watches are opened again, and nobody looks whom it does not concern.
func TestManyElections(t *testing.T) {
	lane.All(t)
	const n, ttl = 300, 15 * time.Second
	k := coordtest.NewKubernetes(t, nil)
	prefix := coordtest.Name(t)
	leader, heir := newCrowd(t, k, prefix, ttl), newCrowd(t, k, prefix, ttl)
	both := map[string]*crowd{"leader": leader, "heir": heir}
	watches := map[string]int{"leader": kubernetes.WatchesOf(n), "heir": 1}
	// settled reports whether all watches are open, those of a process that has asked for as many since the last count.
	settled := func(again bool) func() bool {
		return func() bool {
			for name, c := range both {
				if open, asked := c.watches(); open != watches[name] || again && asked < open {
					return false
				}
			}
			return true
		}
	}
	// bounded fails the test if more was sent than this.
	bounded := func(when string, sent, asked int) {
		t.Helper()
		for name, c := range both {
			was := c.count()
			t.Logf("%s: the %s sends %d requests and %d for watches, with %d under way at most; %d watches are open", when, name, was.sent, was.asked, was.peak, was.open)
			if was.sent > sent || was.asked > asked || was.peak > kubernetes.MaxUnderWay {
				t.Errorf("%s: the %s sends %d requests and %d for watches, want %d and %d at most, with %d under way, want %d at most",
					when, name, was.sent, was.asked, sent, asked, was.peak, kubernetes.MaxUnderWay)
			}
		}
	}

	leader.run(t, n)
	reach(t, "the first process leads all", func() bool { return leader.lead.Load() == n })
	heir.run(t, n)
	reach(t, "the other one waits for all", func() bool { return heir.waiting.Load() >= n })
	reach(t, "the watches are open", settled(false))
	time.Sleep(ttl / 4) // topics that nobody waits for any more go after TTL/8
	bounded("at the start", 12*n, 2*n)

	time.Sleep(ttl)
	// Four or five renewals, now and then a list of all sessions, and one of all members, which has two pages; some more if the machine is busy.
	bounded("at rest, in a session time", 12, 1)

	for _, c := range both {
		c.proxy.Reset()
	}
	reach(t, "the watches are open again", settled(true))
	time.Sleep(ttl / 4)
	bounded("after the connections have broken", 12, 3*watches["leader"])

	// What others write meanwhile makes the versions too old at which the watches would go on.
	admin, err := configOf(k, k.Addrs()[0], coordtest.KubernetesToken)
	if err != nil {
		t.Fatal(err)
	}
	if err := do(t.Context(), admin, http.MethodPost, leases, `{"metadata": {"name": "others"}}`, nil); err != nil {
		t.Fatal(err)
	}
	writes, stop := context.WithCancel(t.Context())
	written := make(chan struct{})
	go func() {
		defer close(written)
		for i := 0; writes.Err() == nil; i++ {
			if doAs(writes, admin, http.MethodPatch, leases+"/others", "application/merge-patch+json",
				fmt.Sprintf(`{"metadata": {"annotations": {"n": "%d"}}}`, i)) != nil {
				return
			}
		}
	}()
	err = k.Restart(t.Context())
	stop()
	<-written
	if err != nil {
		t.Fatal(err)
	}
	reach(t, "the watches are open after a restart", settled(true))
	time.Sleep(ttl / 2)
	reach(t, "they stay open", settled(true))
	bounded("after the API server was started anew", n/4, n/4)
	if leader.ended.Load() > 0 || heir.lead.Load() > 0 {
		t.Fatalf("%d terms have ended, and %d of the others have begun", leader.ended.Load(), heir.lead.Load())
	}

	if err := leader.Close(); err != nil {
		t.Error(err)
	}
	reach(t, "the other process leads all", func() bool { return heir.lead.Load() == n })
	watches["leader"], watches["heir"] = 0, kubernetes.WatchesOf(n)
	time.Sleep(ttl / 4)
	reach(t, "the watches are open after the handover", settled(false))
	bounded("when the process of all leaders closes", 8*n, 2*n)
}
