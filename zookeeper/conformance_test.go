package zookeeper_test

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"path"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance"
	"github.com/succession-dev/succession/internal/coordtest"
	"github.com/succession-dev/succession/zookeeper"
)

// A client is a backend with a proxy of its own before the server.
type client struct {
	*zookeeper.Backend
	proxy    *coordtest.Proxy
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

// One server: the whole suite.
func TestConformance(t *testing.T) {
	z := own(t)
	suite(t, z, conformance.Harness{
		Name:  "zookeeper",
		TTL:   time.Second,
		Slack: 500 * time.Millisecond, // two and a half ticks
	}, z.Restart)
}

// Three servers, with the clients spread over them: what one has written, another
// reads elsewhere. A restart is that of the ensemble's leader, and makes another
// server the leader.
func TestConformanceOfEnsemble(t *testing.T) {
	z, err := coordtest.StartZooKeeper(t.Context(), &coordtest.ZooKeeperOptions{Nodes: 3, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(z.Stop)
	suite(t, z, conformance.Harness{
		Name: "zookeeper-ensemble",
		TTL:  1500 * time.Millisecond,
		// Two and a half ticks, and half a second without a leader.
		Slack: time.Second,
	}, func(ctx context.Context) error {
		leader, err := z.Leader(ctx)
		if err != nil {
			return err
		}
		return leader.Restart(ctx)
	})
}

// suite runs the suite on z, with what h does not say filled in.
func suite(t *testing.T, z *coordtest.ZooKeeper, h conformance.Harness, restart func(context.Context) error) {
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
		Cut: func(b backend.Backend) func() {
			of(b).proxy.Cut()
			return of(b).proxy.Heal
		},
		Deafen: func(b backend.Backend) func() {
			of(b).proxy.Block(coordtest.ToClient)
			return of(b).proxy.Heal
		},
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
		Kill: func(b backend.Backend) {
			of(b).proxy.Refuse()
			of(b).proxy.Reset()
		},
		Restart: restart,
		Pause: func(context.Context) (func(), error) {
			return func() { z.Resume() }, z.Pause()
		},
		Reset: z.Wipe,
		Remove: func(_ context.Context, m backend.Member) error {
			return operate(addrs, func(op *zk.Conn) error { return op.Delete(path.Join(root, m.Line, m.Key), -1) })
		},
		Drop: func(_ context.Context, line string) error {
			return operate(addrs, func(op *zk.Conn) error { return drop(op, path.Join(root, line)) })
		},
		Requests: func(b backend.Backend) int64 { return of(b).requests.Load() },
	}
	conformance.Run(t, h)
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
