//go:build linux

package controllerruntime_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/succession-dev/succession/conformance/proxy"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/lane"
	"github.com/succession-dev/succession/kubernetes"
)

// Here candidates of client-go and of this project compete for one Lease of a real API server, each with a connection of its own that
// can be cut. All are in one process, and so have one monotonic clock: each notes when it acted, about every millisecond, as long as its library
// lets it. The Lease is watched as well. Where two acted at the same time, what was written into the Lease before says whose doing that was:
//
//   - Ours took the lock although its holder had not had its time, or client-go took it from ours by the clock while ours still acted: that is ours, and fails.
//   - Ours acted on for longer than its watch needs to tell it that another one holds the lock: that is ours, and fails on a machine that is calm.
//   - A candidate of client-go acts on beyond what its record says, or has cleared the lock of another: that is client-go's, and is counted.
//
// It is in this module as it is the only one that links both.

var rounds = flag.Int("rounds", 3, "how often TestBeside does each thing")

const (
	besideTTL   = 3 * time.Second // and LeaseDuration
	besideRenew = 2 * time.Second
	besideRetry = 400 * time.Millisecond
	leasesPath  = "/apis/coordination.k8s.io/v1/namespaces/default/leases"

	// For how long a leader of ours may act on when another one has been written into the lock: until its watch has told it.
	toldWithin = 300 * time.Millisecond

	// By when somebody leads whatever has happened: a watchdog, and no measure.
	besideAgain = 30 * time.Second
)

// A span is a time in which a candidate acted as the leader.
type span struct {
	by       *contender
	from, to time.Time
}

// A contender is a candidate, of client-go or of ours.
type contender struct {
	name  string
	ours  bool
	proxy *proxy.Proxy
	stop  context.CancelFunc
	ended chan struct{}
	dead  atomic.Bool // crashed: nothing of it acts any more

	mu    sync.Mutex
	spans []span
	leads bool
}

// act notes that it acts until leads says no.
func (c *contender) act(leads func() bool) {
	begun := false
	for {
		now := time.Now() // before it asks: it may be stopped for long after the answer
		if !leads() || c.dead.Load() {
			break
		}
		c.mu.Lock()
		if !begun {
			c.spans = append(c.spans, span{c, now, now})
			begun = true
		}
		c.spans[len(c.spans)-1].to = now
		c.leads = true
		c.mu.Unlock()
		time.Sleep(time.Millisecond)
	}
	c.mu.Lock()
	c.leads = false
	c.mu.Unlock()
}

func (c *contender) leading() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leads
}

// A version is what the watch has told of the lock.
type version struct {
	at          time.Time
	number      string
	holder      string
	seconds     int
	transitions int
}

func (v version) ours() bool { return strings.Contains(v.holder, "_member-") }

// A contest is all candidates of one Lease.
type contest struct {
	*testing.T
	k    *coordtest.Kubernetes
	name string
	calm *calm.Monitor
	mu   sync.Mutex
	all  []*contender
	seen []version
}

func newContest(t *testing.T, k *coordtest.Kubernetes, name string) *contest {
	c := &contest{T: t, k: k, name: name, calm: calm.Watch(calm.Limit(toldWithin), nil)}
	t.Cleanup(c.calm.Close)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.watch(ctx)
	}()
	t.Cleanup(func() {
		for _, x := range c.all {
			x.proxy.Heal()
			x.stop()
		}
		for _, x := range c.all {
			<-x.ended
			x.proxy.Close()
		}
		cancel()
		<-ended
	})
	return c
}

func (c *contest) config(addr string) *rest.Config {
	ca, err := c.k.CA()
	if err != nil {
		c.Fatal(err)
	}
	return &rest.Config{Host: "https://" + addr, BearerToken: coordtest.KubernetesToken, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
}

// watch notes each version of the Lease.
func (c *contest) watch(ctx context.Context) {
	client, err := rest.HTTPClientFor(c.config(c.k.Addrs()[0]))
	if err != nil {
		c.Error(err)
		return
	}
	defer client.CloseIdleConnections()
	for last := "0"; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+c.k.Addrs()[0]+leasesPath+"?watch=true&fieldSelector=metadata.name%3D"+c.name+"&resourceVersion="+last, nil)
		if err != nil {
			c.Error(err)
			return
		}
		req.Header.Set("Authorization", "Bearer "+coordtest.KubernetesToken)
		resp, err := client.Do(req)
		if err != nil {
			continue
		}
		for dec := json.NewDecoder(resp.Body); ; {
			var e struct {
				Object struct {
					Metadata metav1.ObjectMeta `json:"metadata"`
					Spec     struct {
						HolderIdentity       string `json:"holderIdentity"`
						LeaseDurationSeconds int    `json:"leaseDurationSeconds"`
						LeaseTransitions     int    `json:"leaseTransitions"`
					} `json:"spec"`
				} `json:"object"`
			}
			if dec.Decode(&e) != nil {
				break
			}
			last = e.Object.Metadata.ResourceVersion
			c.mu.Lock()
			c.seen = append(c.seen, version{time.Now(), last, e.Object.Spec.HolderIdentity, e.Object.Spec.LeaseDurationSeconds, e.Object.Spec.LeaseTransitions})
			c.mu.Unlock()
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
}

func (c *contest) add(ours bool, run func(ctx context.Context, x *contender, config *rest.Config)) *contender {
	c.Helper()
	p, err := coordtest.StartProxy(c.k.Addrs()[0])
	if err != nil {
		c.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	x := &contender{ours: ours, proxy: p, stop: cancel, ended: make(chan struct{})}
	c.mu.Lock()
	x.name = fmt.Sprintf("theirs-%d", len(c.all))
	if ours {
		x.name = fmt.Sprintf("ours-%d", len(c.all))
	}
	c.all = append(c.all, x)
	c.mu.Unlock()
	go func() {
		defer close(x.ended)
		run(ctx, x, c.config(p.Addr()))
	}()
	return x
}

// theirs adds a candidate of client-go. As a service does, it begins anew when it has lost, until it is stopped.
func (c *contest) theirs(release bool) *contender {
	return c.add(false, func(ctx context.Context, x *contender, config *rest.Config) {
		client, err := coordinationv1.NewForConfig(config)
		if err != nil {
			c.Error(err)
			return
		}
		for ctx.Err() == nil {
			elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
				Lock: &resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Namespace: "default", Name: c.name}, Client: client,
					LockConfig: resourcelock.ResourceLockConfig{Identity: x.name}},
				LeaseDuration: besideTTL, RenewDeadline: besideRenew, RetryPeriod: besideRetry, ReleaseOnCancel: release,
				Callbacks: leaderelection.LeaderCallbacks{
					OnStartedLeading: func(leading context.Context) {
						x.act(func() bool { return leading.Err() == nil && ctx.Err() == nil }) // work ends before the context is cancelled, as client-go asks for
					},
					OnStoppedLeading: func() {},
				},
			})
			if err != nil {
				c.Error(err)
				return
			}
			elector.Run(ctx)
		}
	})
}

// ours adds a candidate of this project.
func (c *contest) ours() *contender {
	return c.add(true, func(ctx context.Context, x *contender, config *rest.Config) {
		b, err := kubernetes.New(config, &kubernetes.Options{Namespace: "default", As: kubernetes.ClientGo, TTL: besideTTL})
		if err != nil {
			c.Error(err)
			return
		}
		defer b.Close()
		err = elect.New(b, c.name, &elect.Options{ID: x.name}).Run(ctx, func(ctx context.Context, t *elect.Term) error {
			x.act(func() bool { return ctx.Err() == nil && t.Check() == nil })
			<-ctx.Done()
			return nil
		})
		if ctx.Err() == nil {
			c.Error(err)
		}
	})
}

// leader waits until somebody leads that is not one of those, and returns it.
func (c *contest) leader(within time.Duration, not ...*contender) *contender {
	c.Helper()
	for begun := time.Now(); time.Since(begun) < within; time.Sleep(time.Millisecond) {
		c.mu.Lock()
		all := slices.Clone(c.all)
		c.mu.Unlock()
		for _, x := range all {
			if x.leading() && !slices.Contains(not, x) {
				return x
			}
		}
	}
	c.Fatalf("nobody leads within %v", within)
	return nil
}

// end stops a candidate as a Pod is stopped.
func (c *contest) end(x *contender) {
	x.stop()
	<-x.ended
}

// crash ends what a candidate does at once, and its connections.
func (c *contest) crash(x *contender) {
	x.dead.Store(true)
	x.proxy.Kill()
	x.stop()
}

// A verdict is what a contest has come to.
type verdict struct {
	theirs  time.Duration // in which two acted, by client-go's doing
	longest time.Duration
	times   int
	terms   int
}

// judge says whose doing it was that two acted at the same time.
func (c *contest) judge() (v verdict) {
	c.Helper()
	time.Sleep(50 * time.Millisecond) // the watch tells of the last write
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []span
	for _, x := range c.all {
		x.mu.Lock()
		all = append(all, x.spans...)
		x.mu.Unlock()
	}
	slices.SortFunc(all, func(a, b span) int { return a.from.Compare(b.from) })
	v.terms = len(all)
	for i, a := range all {
		for _, b := range all[i+1:] {
			if a.by == b.by || !b.from.Before(a.to) {
				continue
			}
			both := min(a.to.Sub(b.from), b.to.Sub(b.from))
			if a.by.ours && b.by.ours {
				c.Errorf("%s and %s, both ours, acted for %v at the same time", a.by.name, b.by.name, both)
				continue
			}
			v.times, v.theirs, v.longest = v.times+1, v.theirs+both, max(v.longest, both)
			if why := c.ourDoing(a, b); why != "" {
				c.Errorf("%s and %s acted for %v at the same time: %s", a.by.name, b.by.name, both, why)
			} else {
				c.Logf("%s and %s acted for %v at the same time, by client-go's doing: %s", a.by.name, b.by.name, both, c.around(b.from))
			}
		}
	}
	for _, a := range all {
		if a.by.ours && !a.by.dead.Load() {
			c.actsOn(a)
		}
	}
	// Also where nobody was hurt: how ours took the lock.
	for i := 1; i < len(c.seen); i++ {
		if was, now := c.seen[i-1], c.seen[i]; now.ours() && !was.ours() && was.holder != "" {
			if had := now.at.Sub(was.at); had < time.Duration(was.seconds)*time.Second-100*time.Millisecond {
				c.timed(was.at.Add(-early), now.at, "ours took the lock from %s after %v of %d s", was.holder, had, was.seconds)
			}
		} else if i > 1 && now.ours() && was.holder == "" && c.seen[i-2].holder != "" && !c.seen[i-2].ours() {
			if had := now.at.Sub(was.at); had < besideTTL/5-100*time.Millisecond {
				c.timed(was.at.Add(-early), now.at, "ours took the lock that %s had, %v after it was cleared", c.seen[i-2].holder, had)
			}
		}
	}
	return v
}

// actsOn fails if a leader of ours acted on although another one holds the lock. The caller holds the lock of the contest.
func (c *contest) actsOn(a span) {
	c.Helper()
	for _, v := range c.seen {
		on := a.to.Sub(v.at)
		if v.at.Before(a.from) || on <= toldWithin || v.holder == "" || strings.HasPrefix(v.holder, a.by.name+"_") {
			continue
		}
		c.timed(v.at, time.Now(), "%s acted on for %v after %q was written into the lock, want %v at most", a.by.name, on, v.holder, toldWithin)
		return
	}
}

// early is how much earlier than the watch told of it something may have been written, on a machine that is busy.
const early = time.Second

// timed fails the test, if the machine was calm from one instant to another.
func (c *contest) timed(from, to time.Time, format string, args ...any) {
	c.Helper()
	if r := c.calm.Between(from, to); r.Disturbed() {
		c.Logf("calm: not judged: %s: %v", fmt.Sprintf(format, args...), r)
	} else {
		c.Errorf(format, args...)
	}
}

// ourDoing says why the second of two has led too early, if that was our doing. The caller holds the lock.
func (c *contest) ourDoing(first, second span) string {
	// The version by which the second has become the holder: the nearest one.
	at, nearest := -1, time.Duration(1<<63-1)
	for i, x := range c.seen {
		took := strings.HasPrefix(x.holder, second.by.name) && (i == 0 || !strings.HasPrefix(c.seen[i-1].holder, second.by.name))
		if d := x.at.Sub(second.from).Abs(); took && d < nearest {
			at, nearest = i, d
		}
	}
	if at <= 0 {
		return "the lock does not say how"
	}
	was, now := c.seen[at-1], c.seen[at]
	switch {
	case first.by.ours && was.ours():
		return fmt.Sprintf("%s took the lock from ours, %v after it was renewed, and ours acted on", now.holder, now.at.Sub(was.at))
	case second.by.ours && was.holder != "" && now.at.Sub(was.at) < time.Duration(was.seconds)*time.Second-100*time.Millisecond &&
		!c.calm.Between(was.at.Add(-early), now.at).Disturbed(): // else judge says of the lock alone that it is not judged
		return fmt.Sprintf("ours took the lock from %s after %v", was.holder, now.at.Sub(was.at))
	}
	return ""
}

// around tells what was written into the lock about then.
func (c *contest) around(t time.Time) string {
	var l []string
	last := ""
	for _, v := range c.seen {
		if d := v.at.Sub(t); v.holder != last && d > -2*besideTTL && d < besideTTL {
			l = append(l, fmt.Sprintf("%v %q", d.Round(time.Millisecond), v.holder))
		}
		last = v.holder
	}
	return strings.Join(l, ", ")
}

func besideServer(t *testing.T) *coordtest.Kubernetes { return coordtest.NewKubernetes(t, nil) }

// A service goes from client-go to this project and back by rolling updates, and meanwhile leaders are ended, crash, and are cut off.
func TestBeside(t *testing.T) {
	lane.All(t)
	k := besideServer(t)
	for round := range *rounds {
		for _, fault := range []string{"none", "crash", "cut"} {
			t.Run(fmt.Sprint(fault, "-", round), func(t *testing.T) {
				c := newContest(t, k, fmt.Sprint("rolling-", fault, "-", round))
				var fleet []*contender
				for range 3 {
					fleet = append(fleet, c.theirs(true))
				}
				c.leader(besideAgain)
				for _, toOurs := range []bool{true, false} {
					for i, old := range fleet {
						if toOurs { // as a Deployment with maxSurge
							fleet[i] = c.ours()
						} else {
							fleet[i] = c.theirs(true)
						}
						time.Sleep(time.Duration(rand.IntN(1000)) * time.Millisecond)
						leads := c.leader(besideAgain)
						switch fault {
						case "none":
							if !toOurs && i == 0 { // one of client-go has waited for longer than it waits for a leader that is silent
								from := time.Now()
								time.Sleep(3 * besideTTL)
								if !leads.leading() {
									c.timed(from, time.Now(), "%s leads no more, and nothing has happened", leads.name)
								}
							}
						case "crash":
							if j := slices.Index(fleet, leads); j >= 0 && leads != fleet[i] {
								c.crash(leads)
								fleet[j] = map[bool]func() *contender{true: c.ours, false: func() *contender { return c.theirs(true) }}[leads.ours]()
								c.leader(besideAgain, leads)
							}
						case "cut":
							leads.proxy.Cut()
							c.leader(besideAgain, leads)
							time.Sleep(time.Duration(rand.IntN(1000)) * time.Millisecond)
							leads.proxy.Heal()
						}
						c.end(old)
						c.leader(besideAgain, old)
					}
				}
				v := c.judge()
				t.Logf("%d terms; two acted %d times, for %v in all and %v at most, each time by client-go's doing", v.terms, v.times, v.theirs, v.longest)
			})
		}
	}
}

// A leader of client-go that was cut off, and is healed while it releases what it does not have any more, clears the lock of the new one. What comes of
// that among candidates of client-go alone, and when the new one is ours.
func TestBesideCleared(t *testing.T) {
	lane.All(t)
	k := besideServer(t)
	for _, ours := range []bool{false, true} {
		var times, longest = 0, time.Duration(0)
		cleared := 0
		for round := range 2 * *rounds {
			t.Run(fmt.Sprint("ours=", ours, "-", round), func(t *testing.T) {
				c := newContest(t, k, fmt.Sprint("cleared-", ours, "-", round))
				old := c.theirs(true)
				c.leader(besideAgain)
				next := c.theirs
				if ours {
					next = func(bool) *contender { return c.ours() }
				}
				next(true)
				next(true)
				old.proxy.Cut()
				now := c.leader(besideAgain, old)
				c.theirs(true) // one more that looks for a lock that nobody holds
				time.Sleep(100 * time.Millisecond)
				old.proxy.Heal()
				time.Sleep(2 * besideTTL)
				c.leader(besideAgain)
				v := c.judge()
				times, longest = times+v.times, max(longest, v.longest)
				for i := 1; i < len(c.seen); i++ {
					if c.seen[i].holder == "" && strings.HasPrefix(c.seen[i-1].holder, now.name) {
						cleared++
					}
				}
			})
		}
		t.Logf("ours among them: %v. In %d rounds the lock of the new leader was cleared %d times; two acted %d times, %v at most", ours, 2**rounds, cleared, times, longest)
	}
}
