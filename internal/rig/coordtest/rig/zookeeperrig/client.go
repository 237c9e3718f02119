// Package zookeeperrig makes those faults of the conformance suite that need the protocol or
// the tools of ZooKeeper.
package zookeeperrig

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/conformance/proxy"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
)

// A Client is a [rig.Client]. A backend connects to Addr by Dial.
type Client struct {
	server   string // behind the proxy
	proxy    *proxy.Proxy
	requests atomic.Int64
	life     context.Context // until Close
	end      context.CancelFunc
	losing   sync.WaitGroup

	mu       sync.Mutex
	greeting []byte // the newest answer to a connect request
}

var _ rig.Client = (*Client)(nil)

// Start starts a client's proxy before the server.
func Start(server string) (*Client, error) {
	p, err := coordtest.StartProxy(server)
	if err != nil {
		return nil, err
	}
	c := &Client{server: server, proxy: p}
	c.life, c.end = context.WithCancel(context.Background())
	return c, nil
}

// Server returns the address of the server behind the proxy.
func (c *Client) Server() string { return c.server }

// Addr returns the address of the proxy.
func (c *Client) Addr() string { return c.proxy.Addr() }

// Proxy implements [rig.Client].
func (c *Client) Proxy() *proxy.Proxy { return c.proxy }

// Requests implements [rig.Client].
func (c *Client) Requests() int64 { return c.requests.Load() }

// Close implements [rig.Client].
func (c *Client) Close() {
	c.end()
	c.losing.Wait()
	c.proxy.Close()
}

// Dial makes the connections of the backend.
func (c *Client) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &observed{Conn: conn, by: c}, nil
}

// observed counts requests: the client writes one frame at a time.
type observed struct {
	net.Conn
	by   *Client
	read bool
}

func (o *observed) Write(b []byte) (int, error) {
	o.by.requests.Add(1)
	return o.Conn.Write(b)
}

func (o *observed) Read(b []byte) (int, error) {
	n, err := o.Conn.Read(b)
	if !o.read && n >= greetingLength {
		o.read = true
		o.by.mu.Lock()
		o.by.greeting = append([]byte(nil), b[:n]...)
		o.by.mu.Unlock()
	}
	return n, err
}

// The types of requests (ZooDefs.OpCode).
const (
	opCreate = 1
	opDelete = 2
	opCheck  = 13
	opMulti  = 14
	opClose  = -11
)

// greetingLength is the length of the answer to a connect request, as far as Expire
// needs it: length, protocol, timeout, session, and password with its length.
const greetingLength = 4 + 4 + 4 + 8 + 4 + 16

// Expire implements [rig.Client]: it takes the session over, and closes it. A session that
// has ended already cannot be taken over.
func (c *Client) Expire(ctx context.Context) error {
	c.mu.Lock()
	greeting := c.greeting
	c.mu.Unlock()
	if greeting == nil {
		return rig.ErrNoSession
	}
	b := binary.BigEndian.AppendUint32(nil, 44)
	b = binary.BigEndian.AppendUint32(b, 0)
	b = binary.BigEndian.AppendUint64(b, 0)
	b = append(b, greeting[8:greetingLength]...) // timeout, session, password
	b = binary.BigEndian.AppendUint32(b, 8)
	b = binary.BigEndian.AppendUint32(b, 1)
	b = binary.BigEndian.AppendUint32(b, uint32(opClose&(1<<32-1)))
	c.proxy.Refuse() // the client, whose connection the server closes, would take it back
	defer c.proxy.Heal()
	// The server was once seen not to answer, why is not known. Whether the session has
	// ended is known when it has answered.
	again := backoff.New(ctx)
	for {
		err := takeOver(ctx, c.server, b)
		if err == nil || again.Sleep(ctx) != nil {
			return err
		}
	}
}

// answers is how long takeOver waits for the server's answer.
const answers = 2 * time.Second

// takeOver sends a request that takes a session over and closes it, and returns nil when
// the server has answered both, or that there is no such session any more.
func takeOver(ctx context.Context, server string, request []byte) error {
	ctx, cancel := context.WithTimeout(ctx, answers)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", server)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err := conn.Write(request); err != nil {
		return err
	}
	answer := make([]byte, greetingLength)
	if _, err := io.ReadFull(conn, answer); err != nil {
		return fmt.Errorf("take the session over: %w", err)
	}
	if binary.BigEndian.Uint32(answer[8:]) == 0 { // of no time: it has ended
		return nil
	}
	if _, err := io.ReadFull(conn, make([]byte, 20)); err != nil { // of close, beside a rest of the greeting
		return fmt.Errorf("close the session: %w", err)
	}
	return nil
}

// LoseAnswer implements [rig.Client].
func (c *Client) LoseAnswer() {
	delivered := c.proxy.LoseAnswers(changes)
	c.losing.Go(func() {
		select {
		case <-delivered:
			time.Sleep(50 * time.Millisecond) // for the server to act
			c.proxy.Reset()
		case <-c.life.Done():
		}
	})
}

// HoldBack implements [rig.Client]. The server closes the connection that has carried the write when the client has
// moved its session to another, or the session has ended. The release waits for that, a second at most. If the write
// arrived before, ZooKeeper would do it where another member has the guarding member's name by then; package zookeeper says so.
func (c *Client) HoldBack(skip int) (held func() bool, release func()) {
	held, deliver := c.proxy.HoldBack(skip, changes)
	return held, func() {
		ctx, cancel := context.WithTimeout(c.life, time.Second)
		defer cancel()
		_ = c.proxy.Wait(ctx, func(s proxy.Stats) bool { return s.Held == 0 })
		deliver()
	}
}

// changes reports whether one of the requests in b is for a write that is no heartbeat. Where the machine
// is busy, several requests of a client come at once.
func changes(b []byte) bool {
	for len(b) >= 4 {
		n := min(len(b), 4+int(binary.BigEndian.Uint32(b)))
		if change(b[:n]) {
			return true
		}
		b = b[n:]
	}
	return false
}

// change reports whether b is such a request. A heartbeat is a check alone; a guarded write is a check and
// what comes after it.
func change(b []byte) bool {
	if len(b) < 25 { // of what changes anything none is shorter
		return false
	}
	switch binary.BigEndian.Uint32(b[8:]) {
	case opCreate, opDelete:
		return true
	case opMulti:
		if binary.BigEndian.Uint32(b[12:]) != opCheck {
			return true
		}
		// Behind the path and the version of the check the next header says whether it was the last.
		const path = 21
		last := path + 4 + int(binary.BigEndian.Uint32(b[path:])) + 4 + 4
		return last < len(b) && b[last] == 0
	}
	return false
}
