package etcd_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/etcd"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// silent starts three servers, opens a session with the TTL, and makes a server that does not lead stand still.
// The func that it returns lets it go on, and waits until it has done what it was asked for meanwhile.
func silent(t *testing.T, ttl string) (s backend.Session, m backend.Member, goOn func()) {
	cluster := coordtest.NewEtcd(t, &coordtest.EtcdOptions{Nodes: 3})
	s = openURL(t, "etcd://"+strings.Join(cluster.Addrs(), ",")+"?ttl="+ttl)
	m = lead(t, s, "line")
	if _, err := s.Put(t.Context(), "record", []byte("x"), nil); err != nil {
		t.Fatal(err)
	}
	follower := cluster.Servers()[(leader(t, cluster)+1)%3]
	if err := follower.Pause(); err != nil {
		t.Fatal(err)
	}
	return s, m, func() {
		t.Helper()
		if err := follower.Resume(); err != nil {
			t.Fatal(err)
		}
		if err := follower.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second) // nothing tells that it has done all
	}
}

// TestGuardedWriteSilentServer writes while one of three servers stands still. A write at a version
// goes to another server, and takes effect once, also when the server goes on.
func TestGuardedWriteSilentServer(t *testing.T) {
	t.Parallel()
	const bound = 6 * time.Second
	s, m, goOn := silent(t, "20s")
	r, err := s.Get(t.Context(), "record")
	if err != nil {
		t.Fatal(err)
	}
	at := r.Version
	gone := join(t, s, "other", "")
	if err := s.Leave(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	for range 6 { // some of them go to the one that stands still
		watch := calm.Start(t)
		v, err := s.Put(t.Context(), "record", []byte("x"), &backend.If{Version: at, Member: m})
		if err != nil {
			t.Fatalf("a guarded write: %v", err)
		}
		watch.Within(bound, "a guarded write")
		at = v
		watch = calm.Start(t)
		_, err = s.Put(t.Context(), "record", []byte("y"), &backend.If{Version: at, Member: gone})
		if !errors.Is(err, backend.ErrNotMember) {
			t.Fatalf("a write of a member that has left: %v; want ErrNotMember", err)
		}
		watch.Within(bound, "a write of a member that has left")
	}
	goOn()
	if r, err := s.Get(t.Context(), "record"); err != nil || r.Version != at {
		t.Errorf("the record has version %d, %v; want %d", r.Version, err, at)
	}
	standsFirst(t, s, m)
}

// TestLateCopy makes records and items while one of three servers stands still, and removes them. What that
// server does when it goes on brings none of them back.
func TestLateCopy(t *testing.T) {
	t.Parallel()
	s, m, goOn := silent(t, "10s")
	removed := make(map[string]bool) // by name of the record, or value of the item
	for i := range 6 {               // some of them go to the one that stands still
		record, value := fmt.Sprint("record", i), fmt.Sprint("item", i)
		v, err := s.Put(t.Context(), record, []byte("x"), &backend.If{Version: backend.Absent, Member: m})
		if err == nil {
			removed[record] = true
			err = s.Delete(t.Context(), record, &backend.If{Version: v, Member: m})
		}
		if err != nil && (removed[record] || !errors.Is(err, backend.ErrUnavailable)) {
			t.Fatal(err)
		}
		item, err := s.Append(t.Context(), "items", value)
		if err == nil {
			removed[value] = true
			err = s.Remove(t.Context(), item, m)
		}
		if err != nil && (removed[value] || !errors.Is(err, backend.ErrUnavailable)) {
			t.Fatal(err)
		}
	}
	goOn()
	l, err := s.Line(t.Context(), "items")
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range l.Members {
		if removed[item.Value] {
			t.Errorf("%s was removed, and is there again", item.Value)
		}
	}
	for name := range removed {
		if !strings.HasPrefix(name, "record") {
			continue
		}
		if r, err := s.Get(t.Context(), name); err != nil || r.Version != backend.Absent {
			t.Errorf("%s was deleted, and has version %d, %v", name, r.Version, err)
		}
	}
	standsFirst(t, s, m)
}

// TestGuardedWriteSlowAnswer holds back the answer to a write until the copy of it was refused, since
// it has taken effect. There is one server, which gets one copy. The write has succeeded.
func TestGuardedWriteSlowAnswer(t *testing.T) {
	t.Parallel()
	c := newClient(t, sharedEtcd(t).Addrs()[0])
	s := c.session(t)
	record := coordtest.Name(t) + "-record"
	m := lead(t, s, coordtest.Name(t))
	at, err := s.Put(t.Context(), record, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
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
		if refused.Add(1) == 1 {
			close(all)
		}
		return err
	})
	v, err := s.Put(t.Context(), record, []byte("x"), &backend.If{Version: at, Member: m})
	c.meter.steps(nil)
	if err != nil || v == 0 {
		t.Fatalf("version %d, %v", v, err)
	}
	if n := refused.Load(); n != 1 {
		t.Errorf("%d copies were refused, want 1", n)
	}
}

// TestGuardedWriteLostConnection loses the connection over which a write goes before it is done. Another server is
// asked at once.
func TestGuardedWriteLostConnection(t *testing.T) {
	t.Parallel()
	c := newClient(t, sharedEtcd(t).Addrs()[0])
	s := c.session(t)
	record := coordtest.Name(t) + "-record"
	m := lead(t, s, coordtest.Name(t))
	at, err := s.Put(t.Context(), record, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var sent atomic.Int32
	c.meter.steps(func(r *pb.TxnRequest, send func() error) error {
		if len(r.Success) == 1 && r.Success[0].GetRequestPut() != nil && sent.Add(1) == 1 {
			return status.Error(codes.Unavailable, "the connection was lost")
		}
		return send()
	})
	_, err = s.Put(t.Context(), record, []byte("x"), &backend.If{Version: at, Member: m})
	c.meter.steps(nil)
	if err != nil {
		t.Error(err)
	}
}

// TestGuardedWriteInTurn writes while as many other requests wait for answers as may be on their way. How long the
// write waits for its turn says nothing of a server, so no copy of it is sent.
func TestGuardedWriteInTurn(t *testing.T) {
	t.Parallel()
	c := newClient(t, sharedEtcd(t).Addrs()[0])
	s := c.session(t)
	name := coordtest.Name(t)
	m := lead(t, s, name)
	at, err := s.Put(t.Context(), name+"-record", []byte("x"), nil)
	if err != nil {
		t.Fatal(err)
	}
	held, goOn := make(chan struct{}, etcd.MaxTurns), make(chan struct{})
	var copies atomic.Int32
	c.meter.steps(func(r *pb.TxnRequest, send func() error) error {
		switch {
		case len(r.Success) != 1:
		case strings.HasSuffix(string(r.Success[0].GetRequestRange().GetKey()), "-held"):
			select {
			case held <- struct{}{}:
			default:
			}
			<-goOn
		case r.Success[0].GetRequestPut() != nil:
			copies.Add(1)
		}
		return send()
	})
	var all sync.WaitGroup
	for range etcd.MaxTurns {
		all.Go(func() {
			if _, err := s.Get(t.Context(), name+"-held"); err != nil {
				t.Error(err)
			}
		})
	}
	for range etcd.MaxTurns {
		<-held
	}
	all.Go(func() {
		if _, err := s.Put(t.Context(), name+"-record", []byte("y"), &backend.If{Version: at, Member: m}); err != nil {
			t.Error(err)
		}
	})
	time.Sleep(2500 * time.Millisecond) // longer than a request waits before copies of it are sent
	watch := calm.Start(t)
	close(goOn)
	all.Wait()
	c.meter.steps(nil)
	if n := copies.Load(); n != 1 && !watch.NotJudged(2*time.Second, "%d copies were sent", n) {
		t.Errorf("%d copies were sent", n)
	}
}

// TestSlowServer reads from a server that needs longer for an answer than a first request waits. The only server gets one
// copy of the first read, and from the second read on none. Of several servers one may stand still, so each read goes to
// two of them again.
func TestSlowServer(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ servers, first, second int32 }{"alone": {1, 2, 1}, "of several": {2, 3, 3}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClientOf(t, sharedEtcd(t).Addrs()[0], 8*time.Second)
			s := c.session(t)
			if addr := c.rig.Client.Endpoints()[0]; test.servers > 1 {
				c.rig.Client.SetEndpoints(addr, strings.Replace(addr, "127.0.0.1", "localhost", 1))
			}
			record := coordtest.Name(t)
			var sent atomic.Int32
			c.meter.steps(func(r *pb.TxnRequest, send func() error) error {
				if len(r.Success) == 1 && strings.HasSuffix(string(r.Success[0].GetRequestRange().GetKey()), record) {
					sent.Add(1)
					time.Sleep(2500 * time.Millisecond) // the server
				}
				return send()
			})
			defer c.meter.steps(nil)
			watch := calm.Start(t)
			for i, want := range []int32{test.first, test.second} {
				if _, err := s.Get(t.Context(), record); err != nil {
					t.Fatal(err)
				}
				if n := sent.Swap(0); n != want && !watch.NotJudged(2*time.Second, "read %d took %d requests", i+1, n) {
					t.Errorf("read %d took %d requests, want %d", i+1, n, want)
				}
			}
		})
	}
}
