package zookeeper_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance"
	"github.com/succession-dev/succession/conformance/proxy"
	"github.com/succession-dev/succession/internal/coordtest"
	"github.com/succession-dev/succession/internal/coordtest/rig"
	"github.com/succession-dev/succession/zookeeper"
)

// A client is a backend with a proxy of its own before the server.
type client struct {
	*zookeeper.Backend
	proxy    *proxy.Proxy
	server   string // behind the proxy
	requests atomic.Int64

	mu       sync.Mutex
	greeting []byte // the newest answer to a connect request
}

func (c *client) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &observed{Conn: conn, by: c}, nil
}

// observed counts requests: the client writes one frame at a time.
type observed struct {
	net.Conn
	by   *client
	read bool
}

func (o *observed) Write(b []byte) (int, error) {
	o.by.requests.Add(1)
	return o.Conn.Write(b)
}

func (o *observed) Read(b []byte) (int, error) {
	n, err := o.Conn.Read(b)
	if !o.read && n >= 40 {
		o.read = true
		o.by.mu.Lock()
		o.by.greeting = append([]byte(nil), b[:n]...)
		o.by.mu.Unlock()
	}
	return n, err
}

func (c *client) Close() error {
	err := c.Backend.Close()
	c.proxy.Close()
	return err
}

// expire ends the session on the server: it takes it over, and closes it.
func (c *client) expire(ctx context.Context) error {
	c.mu.Lock()
	greeting := c.greeting
	c.mu.Unlock()
	if len(greeting) < 40 {
		return errors.New("no session was seen")
	}
	b := binary.BigEndian.AppendUint32(nil, 44)
	b = binary.BigEndian.AppendUint32(b, 0)
	b = binary.BigEndian.AppendUint64(b, 0)
	b = append(b, greeting[8:40]...) // timeout, session, password
	b = binary.BigEndian.AppendUint32(b, 8)
	b = binary.BigEndian.AppendUint32(b, 1)
	b = binary.BigEndian.AppendUint32(b, ^uint32(10)) // close: -11
	c.proxy.Refuse()                                  // the client, whose connection the server closes, would take it back
	defer c.proxy.Heal()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", c.server)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.Write(b); err != nil {
		return err
	}
	conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	for seen := 0; seen < 60; {
		n, err := conn.Read(make([]byte, 100))
		if err != nil {
			return err
		}
		seen += n
	}
	return nil
}

// changes reports whether b is a request for a write that is no heartbeat.
func changes(b []byte) bool {
	if len(b) < 16 {
		return false
	}
	switch binary.BigEndian.Uint32(b[8:]) {
	case opCreate, opDelete:
		return true
	case opMulti:
		const check = 13
		return binary.BigEndian.Uint32(b[12:]) != check
	}
	return false
}

// tick is the servers' tick: coordtest's default.
const tick = 200 * time.Millisecond

// One server: the whole suite.
func TestConformance(t *testing.T) {
	t.Parallel() // with the other of the two: both wait most of the time
	z := servers(t, 1)
	h := harness(t, z, conformance.Harness{
		Name:  "zookeeper",
		TTL:   time.Second,
		Slack: 5 * tick / 2,
	})
	h.Faults.Restart = z.Restart
	h.Faults.Rewind = func(context.Context) (func(context.Context) error, error) { return z.Backup() }
	h.Lacks[conformance.Cluster] = "there is one server"
	h.Lacks[conformance.Isolate] = "there is one server"
	conformance.Run(t, h)
}

// Three servers, with the clients spread over them: what one has written, another
// reads elsewhere. A restart is that of the ensemble's leader, and makes another
// server the leader.
func TestConformanceThree(t *testing.T) {
	t.Parallel()
	z := servers(t, 3)
	h := harness(t, z, conformance.Harness{
		Name: "zookeeper-ensemble",
		TTL:  1500 * time.Millisecond,
		// Besides, half a second without a leader.
		Slack: 5*tick/2 + 500*time.Millisecond,
	})
	h.Faults.Restart = func(ctx context.Context) error {
		leader, err := z.Leader(ctx)
		if err != nil {
			return err
		}
		return leader.Restart(ctx)
	}
	h.Faults.Pause = func(ctx context.Context) (func(), error) { return pauseEnsemble(ctx, t, z) }
	h.Lacks[conformance.Rewind] = "the log index goes on over the restoration of an ensemble: each start of it begins a new epoch, which is the upper half of the index"
	h.Faults.Cluster = rig.Cluster(&z.Cluster, func(b backend.Backend) string { return b.(*client).server })
	h.Only = rig.Three()
	conformance.Run(t, h)
}

// pauseEnsemble pauses all servers. The one that leads goes on last, when the others have
// another leader: one that went on with its old followers could commit nothing any more;
// see "a standstill of the ensemble's own" in docs/zookeeper.md.
func pauseEnsemble(ctx context.Context, t *testing.T, z *coordtest.ZooKeeper) (resume func(), err error) {
	leader, err := z.Leader(ctx)
	if err != nil {
		return nil, err
	}
	return func() {
		var errs []error
		for _, s := range z.Servers() {
			if s != leader {
				errs = append(errs, s.Resume())
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		_, err := z.LeaderAfter(ctx, leader)
		if err := errors.Join(append(errs, err, leader.Resume())...); err != nil {
			t.Error(err)
		}
	}, z.Pause()
}

// servers starts a ZooKeeper with all that the suite does to one.
func servers(t *testing.T, n int) *coordtest.ZooKeeper {
	t.Helper()
	return coordtest.NewZooKeeper(t, &coordtest.ZooKeeperOptions{
		Nodes: n, Links: n > 1, Tick: tick, NoSync: true, Clock: true,
	})
}

// harness fills in h what is the same for one server and for three.
func harness(t *testing.T, z *coordtest.ZooKeeper, h conformance.Harness) conformance.Harness {
	const root = "/suite"
	addrs := z.Addrs()
	var opened atomic.Int64
	of := func(b backend.Backend) *client { return b.(*client) }
	h.Open = func(context.Context) (backend.Backend, error) {
		addr := addrs[int(opened.Add(1))%len(addrs)]
		p, err := coordtest.StartProxy(addr)
		if err != nil {
			return nil, err
		}
		c := &client{proxy: p, server: addr}
		c.Backend, err = zookeeper.New([]string{p.Addr()}, &zookeeper.Options{SessionTimeout: h.TTL, Chroot: root, Dialer: c.dial})
		return c, err
	}
	h.Faults = conformance.Faults{
		Expire: func(ctx context.Context, b backend.Backend) error { return of(b).expire(ctx) },
		LoseAnswer: func(b backend.Backend) {
			p := of(b).proxy
			delivered := p.LoseAnswers(changes)
			go func() {
				select {
				case <-delivered:
					time.Sleep(50 * time.Millisecond) // for the server to act
					p.Reset()
				case <-t.Context().Done():
				}
			}()
		},
		Process: rig.Process(fmt.Sprintf("zookeeper://%s%s?session=%v", strings.Join(addrs, ","), root, h.TTL)),
		Pause: func(context.Context) (func(), error) {
			return func() { z.Resume() }, z.Pause()
		},
		Reset: z.Wipe,
		Clock: func(ctx context.Context, shift time.Duration) (func(), error) {
			restore := func() {
				if err := z.SetClock(0); err != nil {
					t.Error(err)
				}
			}
			if err := z.SetClock(shift); err != nil {
				return nil, err
			}
			err := reads(addrs, time.Now().Add(shift))
			if err != nil {
				restore()
			}
			return restore, err
		},
		Remove: func(_ context.Context, m backend.Member) error {
			return operate(addrs, func(op *zk.Conn) error { return op.Delete(path.Join(root, m.Line, m.Key), -1) })
		},
		Drop: func(_ context.Context, line string) error {
			return operate(addrs, func(op *zk.Conn) error { return drop(op, path.Join(root, line)) })
		},
		Requests: func(b backend.Backend) int64 { return of(b).requests.Load() },
	}
	h.Faults.Network(func(b backend.Backend) []*proxy.Proxy { return []*proxy.Proxy{of(b).proxy} })
	h.Complete = true
	h.Lacks = map[conformance.Fault]string{
		conformance.Compact: "ZooKeeper keeps no history for those who watch: a watch tells of the next change, and is set by a read",
	}
	return h
}

// reads checks that the servers' wall clock shows the time, by what they write down
// as a node's time of creation.
func reads(addrs []string, want time.Time) error {
	return operate(addrs, func(op *zk.Conn) error {
		at, err := op.Create("/clock", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
		if err != nil {
			return err
		}
		_, stat, err := op.Exists(at)
		if err != nil {
			return err
		}
		if got := time.UnixMilli(stat.Ctime); got.Sub(want).Abs() > time.Minute {
			return fmt.Errorf("the servers' clock shows %v, and was set to %v", got, want)
		}
		return nil
	})
}

// operate does what an operator does, with a connection of its own: one that lasts
// would not outlive a reset.
func operate(addrs []string, do func(*zk.Conn) error) error {
	op, _, err := zk.Connect(addrs, 10*time.Second, zk.WithLogger(quiet{}))
	if err != nil {
		return err
	}
	defer op.Close()
	return do(op)
}

// drop deletes a znode and its children in one step.
func drop(op *zk.Conn, at string) error {
	for {
		names, _, err := op.Children(at)
		if err != nil {
			return err
		}
		var ops []any
		for _, name := range append(names, "") {
			ops = append(ops, &zk.DeleteRequest{Path: path.Join(at, name), Version: -1})
		}
		_, err = op.Multi(ops...)
		if err != zk.ErrNoNode && err != zk.ErrNotEmpty { // somebody joined or left meanwhile
			return err
		}
	}
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}
