package etcd_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/etcd"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// TestOutOfSpace makes etcd change its leader while it is out of space and grants no
// lease. A lease of the term before is not trusted while a server may not know of the new
// term. When all have said that they do, it is, and the next in line leads.
func TestOutOfSpace(t *testing.T) {
	t.Parallel()
	cluster := coordtest.NewEtcd(t, &coordtest.EtcdOptions{Nodes: 3})
	operator, name, watch := admin(t, cluster.Addrs()...), coordtest.Name(t), calm.Start(t)
	var log output
	var wait time.Duration
	begin := func() *etcd.Backend {
		b, err := etcd.New(admin(t, cluster.Addrs()...), &etcd.Options{TTL: ttl, ConnectTimeout: opening, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.Close() })
		wait = etcd.Hurry(b)
		return b
	}
	first := begin()
	term := campaign(t, first, name)
	s, err := first.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	won := behind(t, begin(), name)

	_, err = pb.NewMaintenanceClient(operator.ActiveConnection()).Alarm(t.Context(),
		&pb.AlarmRequest{Action: pb.AlarmRequest_ACTIVATE, Alarm: pb.AlarmType_NOSPACE})
	if err != nil {
		t.Fatal(err)
	}
	former := cluster.Servers()[leader(t, cluster)]
	moveLeader(t, cluster)
	moved := calm.Start(t)
	if err := former.Pause(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { former.Resume() })
	if err := s.Err(); err != nil { // the next in line may have led before
		if !watch.NotJudged(ttl/4, "the session ended with %v", err) {
			t.Fatal(err)
		}
		return
	}
	select {
	case <-s.Done():
	case <-time.After(time.Minute):
		t.Fatal("the leader goes on with a lease of the term before")
	}
	moved.Within(2*ttl, "until the session ended it")
	if err := s.Err(); term.Check() == nil || !strings.Contains(fmt.Sprint(err), "database space exceeded") && !watch.NotJudged(ttl/4, "the session ended with %v", err) {
		t.Errorf("the session ended with %v; want an error that says that etcd is out of space", err)
	}
	select {
	case <-won:
		t.Fatal("the next in line leads while a server may not know of etcd's new leader")
	case <-time.After(time.Until(moved.Began().Add(wait + ttl))):
	}
	if err := former.Resume(); err != nil {
		t.Fatal(err)
	}
	var next *elect.Term
	select {
	case next = <-won:
	case <-time.After(time.Minute):
		if !watch.NotJudged(ttl/4, "its session may have ended, and nobody gets another: the next in line does not lead") {
			t.Fatal("the next in line does not lead")
		}
		return
	}
	time.Sleep(ttl * 3 / 2) // heartbeats are proven
	if err := next.Check(); err != nil && !watch.NotJudged(ttl/4, "the next term has ended: %v", err) {
		t.Errorf("the next term has ended: %v", err)
	}
	if said := log.String(); !strings.Contains(said, "level=WARN") || !strings.Contains(said, "etcdctl alarm disarm") {
		t.Errorf("the log does not warn, and say what to do:\n%s", said)
	}
	resign(t, next)
}

// TestOutOfSpaceDenied does the same with one server that lets only root ask, as some versions of etcd
// do. The error says why nobody leads.
func TestOutOfSpaceDenied(t *testing.T) {
	t.Parallel()
	server := coordtest.NewEtcd(t, nil)
	const long = 3 * ttl // after a restart that takes longer, it would only be that the lease was not confirmed
	c := newClientOf(t, server.Addrs()[0], long)
	c.meter.unlisted.Store(true)
	s := c.session(t)
	lead(t, s, "line")
	_, err := pb.NewMaintenanceClient(admin(t, server.Addrs()[0]).ActiveConnection()).Alarm(t.Context(),
		&pb.AlarmRequest{Action: pb.AlarmRequest_ACTIVATE, Alarm: pb.AlarmType_NOSPACE})
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	watch := calm.Start(t)
	select {
	case <-s.Done():
	case <-time.After(time.Minute):
		t.Fatal("the leader goes on with a lease of the term before")
	}
	watch.Within(2*long, "until the session ended it")
	if err := s.Err(); !strings.Contains(fmt.Sprint(err), "database space exceeded") || errors.Is(err, backend.ErrDenied) || !strings.Contains(err.Error(), "lets only root ask") {
		t.Errorf("the session ended with %v; want an error that says why nobody leads", err)
	}
}

// An output is what was logged.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (r *output) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.b.Write(p)
}

func (r *output) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.b.String()
}
