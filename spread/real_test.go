package spread_test

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/succession-dev/succession"
	_ "github.com/succession-dev/succession/etcd"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/lane"
	"github.com/succession-dev/succession/spread"
	_ "github.com/succession-dev/succession/zookeeper"
)

// TestRealClusters spreads elections over an etcd cluster and a ZooKeeper ensemble. One of each moves to
// the other while it is led. Then one cluster is out, and the elections of the other do not notice. Sessions are short, as
// those on the cluster that is out have to end.
func TestRealClusters(t *testing.T) {
	lane.Real(t)
	const ttl = 5 * time.Second
	etcd, zk := coordtest.NewEtcd(t, nil), coordtest.NewZooKeeper(t, nil)
	clusters := map[string]*coordtest.Cluster{"east": &etcd.Cluster, "west": &zk.Cluster}
	param := func(name, scheme string) string {
		return "to=" + url.QueryEscape(name+"="+scheme+"://"+clusters[name].Addrs()[0]+"/app?ttl="+ttl.String())
	}
	rawURL := "spread:?" + param("east", "etcd") + "&" + param("west", "zookeeper")

	w, end := newWorld(t)
	defer end()
	open := func(name string) *process {
		b, err := succession.Connect(w.ctx, rawURL)
		if err != nil {
			t.Fatal(err)
		}
		return (&process{Backend: b.(*spread.Backend), w: w, name: name}).start()
	}
	var all []string
	for i := range 8 {
		all = append(all, fmt.Sprint("election-", i)) // of which each cluster gets some
	}
	led := func(who ...string) func(name string) {
		return func(name string) {
			t.Helper()
			w.until(fmt.Sprintf("one of %v leads %s", who, name), 90*time.Second, func() bool {
				for _, p := range who {
					if w.leader(name) == p {
						return true
					}
				}
				return false
			})
		}
	}
	each := func(names []string, f func(name string)) {
		for _, name := range names {
			f(name)
		}
	}
	open("p").run(all...)
	each(all, led("p"))
	open("q").run(all...)
	op := open("operator")
	on := make(map[string][]string)
	home := make(map[string]string)
	for _, name := range all {
		h, _, err := op.Where(w.ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		on[h.At], home[name] = append(on[h.At], name), h.At
	}
	if len(on["east"]) < 2 || len(on["west"]) < 2 {
		t.Fatalf("the elections live on %v", on)
	}

	watch := calm.Start(t)
	judged := func(format string, args ...any) { // fails the test, if no session may have ended because the machine is too busy
		t.Helper()
		if !watch.NotJudged(ttl/4, format, args...) {
			t.Errorf(format, args...)
		}
	}
	for from, to := range map[string]string{"east": "west", "west": "east"} {
		name := on[from][0]
		before := w.count(name)
		began := watch.From(time.Now()).Began()
		if err := op.Move(w.ctx, name, to, nil); err != nil {
			t.Fatalf("move %s from %s to %s: %v", name, from, to, err)
		}
		took := time.Since(began)
		w.until("somebody else leads "+name, time.Minute, func() bool { return w.count(name) > before && w.leader(name) != "" })
		terms := w.count(name)
		if leads := w.leader(name); leads != "q" || terms != before+1 {
			judged("the move of %s took %d terms, and %q leads now; want one handover to q", name, terms-before, leads)
		}
		w.finish(op, name)
		if w.leader(name) != "q" || w.count(name) != terms {
			judged("the term of q did not go on when the move of %s ended", name)
		}
		home[name] = to
		t.Logf("the move of %s from %s to %s took %v", name, from, to, took.Round(time.Millisecond))
	}

	for _, out := range []string{"east", "west"} {
		watch.From(time.Now())
		before := make(map[string]int)
		each(all, func(name string) { before[name] = w.count(name) })
		if err := clusters[out].Pause(); err != nil {
			t.Fatal(err)
		}
		each(all, func(name string) {
			if home[name] == out {
				w.until("nobody leads "+name, time.Minute, func() bool { return w.leader(name) == "" })
			}
		})
		time.Sleep(2 * time.Second)
		each(all, func(name string) {
			if home[name] != out && (w.leader(name) == "" || w.count(name) != before[name]) {
				judged("while %s was out, the term of %s on %s ended", out, name, home[name])
			}
		})
		late := open("late-" + out)
		stop := late.run(on[map[string]string{"east": "west", "west": "east"}[out]][1:]...)
		if err := clusters[out].Resume(); err != nil {
			t.Fatal(err)
		}
		each(all, led("p", "q"))
		stop()
	}
}
