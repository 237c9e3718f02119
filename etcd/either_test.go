package etcd_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// TestGuardedWriteSilentServer writes while one of three servers stands still. A write at a version
// goes to another server, and takes effect once, also when the server goes on.
func TestGuardedWriteSilentServer(t *testing.T) {
	t.Parallel()
	const ttl = 8 * time.Second
	cluster := coordtest.NewEtcd(t, &coordtest.EtcdOptions{Nodes: 3})
	s := openURL(t, "etcd://"+strings.Join(cluster.Addrs(), ",")+"?ttl=8s")
	m := lead(t, s, "line")
	leader, err := cluster.Leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	follower := cluster.Servers()[0]
	if follower == leader {
		follower = cluster.Servers()[1]
	}
	if err := follower.Pause(); err != nil {
		t.Fatal(err)
	}
	at := backend.Absent
	for range 6 { // some of them go to the one that stands still
		began := time.Now()
		v, err := s.Put(t.Context(), "record", []byte("x"), &backend.If{Version: at, Member: m})
		if d := time.Since(began); err != nil || d > ttl*3/4 {
			t.Fatalf("a guarded write took %v: %v", d, err)
		}
		at = v
	}
	item, err := s.(backend.Items).Append(t.Context(), "items", "x")
	if err != nil {
		t.Errorf("Append: %v", err)
	}
	if err := s.(backend.Items).Remove(t.Context(), item, m); err != nil {
		t.Errorf("Remove: %v", err)
	}
	if err := follower.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := follower.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Get(t.Context(), "record"); err != nil || r.Version != at {
		t.Errorf("the record has version %d, %v; want %d", r.Version, err, at)
	}
	standsFirst(t, s, m)
}

// TestGuardedWriteSlowAnswer holds back the answer to a write until copies of it were refused, since
// it has taken effect. The write has succeeded.
func TestGuardedWriteSlowAnswer(t *testing.T) {
	t.Parallel()
	c := newClient(t, sharedEtcd(t).Addrs()[0])
	s := c.session(t)
	m := lead(t, s, coordtest.Name(t))
	var sent, refused atomic.Int32
	all := make(chan struct{})
	c.meter.steps(func(r *pb.TxnRequest, send func() error) error {
		if len(r.Success) != 1 || r.Success[0].GetRequestPut() == nil {
			return send()
		}
		if sent.Add(1) == 1 {
			err := send()
			<-all
			return err
		}
		err := send()
		if refused.Add(1) == 2 {
			close(all)
		}
		return err
	})
	v, err := s.Put(t.Context(), coordtest.Name(t)+"-record", []byte("x"), &backend.If{Version: backend.Absent, Member: m})
	c.meter.steps(nil)
	if err != nil || v == 0 {
		t.Fatalf("version %d, %v", v, err)
	}
	if n := refused.Load(); n != 2 {
		t.Errorf("%d copies were refused, want 2", n)
	}
}
