package etcd_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/proxy"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/etcd"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

const (
	// patient is a session time that no test below reaches. So a candidate that takes
	// over within takeover was woken, and has not found out by a probe.
	patient  = time.Minute
	takeover = 5 * time.Second
)

// newCluster returns a backend that talks to all servers of a cluster.
func newCluster(t *testing.T, cluster *coordtest.Etcd, ttl time.Duration) *etcd.Backend {
	t.Helper()
	b, err := etcd.New(admin(t, cluster.Addrs()...), &etcd.Options{TTL: ttl, ConnectTimeout: opening})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// behind starts a candidate on b, which waits behind a leader on another backend. It
// returns when the candidate's watch has begun.
func behind(t *testing.T, b backend.Backend, name string) (won <-chan *elect.Term) {
	t.Helper()
	ctx := t.Context()
	waits, result := make(chan struct{}, 100), make(chan *elect.Term, 1)
	go func() {
		term, err := elect.New(b, name, &elect.Options{Trace: func(ev trace.Event) {
			if ev.Kind == trace.Waiting {
				waits <- struct{}{}
			}
		}}).Campaign(ctx)
		if err != nil && ctx.Err() == nil {
			t.Error(err)
		}
		result <- term
	}()
	<-waits
	return result
}

// campaign leads the election on b.
func campaign(t *testing.T, b backend.Backend, name string) *elect.Term {
	t.Helper()
	term, err := elect.New(b, name, nil).Campaign(within(t, time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	return term
}

// takesOver fails the test unless the candidate leads within the bound from the start of watch on.
func takesOver(t *testing.T, won <-chan *elect.Term, watch *calm.Stopwatch, bound time.Duration) *elect.Term {
	t.Helper()
	select {
	case term := <-won:
		if term == nil {
			t.FailNow()
		}
		watch.Within(bound, "until the next in line led after the departure it")
		return term
	case <-time.After(time.Minute):
		t.Fatal("the next in line does not lead")
		return nil
	}
}

// tooEarly fails the test if the candidate leads already.
func tooEarly(t *testing.T, won <-chan *elect.Term) {
	t.Helper()
	select {
	case <-won:
		t.Fatal("the next in line leads beside the leader")
	default:
	}
}

func resign(t *testing.T, term *elect.Term) {
	t.Helper()
	if err := term.Resign(within(t, time.Minute)); err != nil {
		t.Errorf("Resign: %v", err)
	}
}

// TestTakeoverCompacted compacts the departure that a candidate waits for, and all
// history since its watch began, while the candidate has lost its connection.
func TestTakeoverCompacted(t *testing.T) {
	t.Parallel()
	addr := coordtest.NewEtcd(t, nil).Addrs()[0] // compaction breaks watches of etcd's own Go client
	operator := admin(t, addr)
	name := coordtest.Name(t)
	leader := campaign(t, newClient(t, addr), name)
	c := newClient(t, addr)
	won := behind(t, c, name)

	c.proxy.Refuse()
	c.proxy.Reset()
	resign(t, leader)
	var revision int64
	for range 20 {
		resp, err := operator.Put(t.Context(), name+"-noise", "x")
		if err != nil {
			t.Fatal(err)
		}
		revision = resp.Header.Revision
	}
	if _, err := operator.Compact(t.Context(), revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	tooEarly(t, won)
	watch := calm.Start(t) // before that it could not know
	c.proxy.Heal()
	resign(t, takesOver(t, won, watch, takeover))
}

// TestTakeoverLeaderless has the watch of a candidate on a server that is cut off from
// the others, and that still answers.
func TestTakeoverLeaderless(t *testing.T) {
	t.Parallel()
	cluster := coordtest.NewEtcd(t, &coordtest.EtcdOptions{Nodes: 3})
	name := coordtest.Name(t)
	leader := campaign(t, newClient(t, cluster.Addrs()[1]), name)
	c := newClient(t, cluster.Addrs()[0])
	won := behind(t, c, name)

	for _, s := range cluster.Servers()[1:] {
		s.Kill()
	}
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := c.session(t).Get(short, name); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Get without a quorum: %v; want the context's error", err)
	}
	for _, s := range cluster.Servers()[1:] {
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
	}
	ctx := within(t, time.Minute)
	for _, s := range cluster.Servers() {
		if err := s.Ready(ctx); err != nil {
			t.Fatal(err)
		}
	}
	tooEarly(t, won)
	watch := calm.Start(t)
	resign(t, leader)
	resign(t, takesOver(t, won, watch, takeover))
}

// TestTakeoverToken makes a candidate wait until the tokens have expired with which its
// watch and its heartbeats began.
func TestTakeoverToken(t *testing.T) {
	t.Parallel()
	server := coordtest.NewEtcd(t, &coordtest.EtcdOptions{Args: []string{"--auth-token-ttl=1", "--bcrypt-cost=4"}})
	operator := admin(t, server.Addrs()...)
	check(t)(operator.UserAdd(t.Context(), "root", "secret"))
	check(t)(operator.UserGrantRole(t.Context(), "root", "root"))
	check(t)(operator.AuthEnable(t.Context()))
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	open := func(ttl string) backend.Backend {
		b, err := succession.Connect(t.Context(), "etcd://"+server.Addrs()[0]+"?user=root&password-file="+password+"&ttl="+ttl)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.Close() })
		return b
	}
	name := coordtest.Name(t)
	leader := campaign(t, open("8s"), name) // whose heartbeats outlive their token, too
	won := behind(t, open("1m"), name)
	select {
	case <-leader.Context().Done():
		t.Fatalf("leadership was lost: %v", leader.Check())
	case <-time.After(3 * time.Second): // tokens of a second have expired
	}
	tooEarly(t, won)
	watch := calm.Start(t)
	resign(t, leader)
	resign(t, takesOver(t, won, watch, takeover))
}

// TestServerOut takes one server after the other away from a leader and its heir, for longer
// than a session: it is cut off from them, or stands still. The term outlives that, unless
// the server was etcd's leader and stood still, and the heir takes over meanwhile. Its watch may
// be on that server, which its session leaves as soon as a probe is not answered. Any request
// may go there, too, and then goes to another server.
func TestServerOut(t *testing.T) {
	t.Parallel()
	const ttl = 6 * time.Second // long enough to outlive an election among the servers on a machine that is busy
	const bound = ttl/3 + ttl/4 + ttl/4 + 4*time.Second
	for _, kind := range []string{"cut off", "paused"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			cluster := coordtest.NewEtcd(t, &coordtest.EtcdOptions{Nodes: 3})
			var proxies []*proxy.Proxy
			var addrs []string
			for _, addr := range cluster.Addrs() {
				p, err := coordtest.StartProxy(addr)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(p.Close)
				proxies, addrs = append(proxies, p), append(addrs, p.Addr())
			}
			open := func() backend.Backend {
				b, err := succession.Connect(t.Context(), "etcd://"+strings.Join(addrs, ",")+"?ttl="+ttl.String())
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { b.Close() })
				return b
			}
			a, b := open(), open()
			name := coordtest.Name(t)
			for i, server := range cluster.Servers() {
				leads := leader(t, cluster) == i
				term := campaign(t, a, name)
				won := behind(t, b, name)
				heal, watch := proxies[i].Heal, calm.Start(t)
				if kind == "cut off" {
					proxies[i].Cut()
				} else {
					if err := server.Pause(); err != nil {
						t.Fatal(err)
					}
					heal = func() {
						if err := errors.Join(server.Resume(), server.Ready(within(t, time.Minute))); err != nil {
							t.Fatal(err)
						}
					}
				}
				select {
				case <-term.Context().Done():
					t.Logf("server %d is %s, leads etcd: %v; the term has ended: %v", i, kind, leads, term.Check())
					if (!leads || kind == "cut off") && !watch.NotJudged(ttl/4, "the term has ended: %v", term.Check()) {
						t.Error("the term has not outlived a server that is cut off, or does not lead etcd")
					}
				case <-time.After(ttl * 5 / 4):
					t.Logf("server %d is %s, leads etcd: %v; the term lives", i, kind, leads)
					tooEarly(t, won)
				}
				watch = calm.Start(t)
				resign(t, term)
				next := takesOver(t, won, watch, bound)
				heal()
				resign(t, next)
			}
		})
	}
}

// TestPausedMember pauses one server after the other while a candidate waits. One of them
// has its watch, and one is etcd's leader. The next probe of the stream of watches is not
// answered, and the candidate looks again. Its request may go to the paused server, and goes
// to another after a quarter of a session time.
func TestPausedMember(t *testing.T) {
	t.Parallel()
	cluster := coordtest.NewEtcd(t, &coordtest.EtcdOptions{Nodes: 3})
	// Long enough to outlive an election among the servers on a machine that is busy.
	const ttl = 4 * time.Second
	const bound = ttl/3 + ttl/4 + ttl/4 + 4*time.Second // what one of conformance's Latency is
	a, b := newCluster(t, cluster, ttl), newCluster(t, cluster, ttl)
	for i, server := range cluster.Servers() {
		name := coordtest.Name(t)
		leader := campaign(t, a, name)
		won := behind(t, b, name)
		if err := server.Pause(); err != nil {
			t.Fatal(err)
		}
		t.Logf("server %d is paused", i)
		watch := calm.Start(t)
		resign(t, leader)
		next := takesOver(t, won, watch, bound)
		if err := server.Resume(); err != nil {
			t.Fatal(err)
		}
		if err := server.Ready(within(t, time.Minute)); err != nil {
			t.Fatal(err)
		}
		resign(t, next)
	}
}
