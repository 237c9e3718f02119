package zookeeper_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/zookeeper"
)

// A saboteur breaks the connection at an exact byte of one create or of its answer.
type saboteur struct {
	mu     sync.Mutex
	op     uint32
	sent   int // bytes of the request that still pass; -1 for all
	answer int // bytes that are still delivered after the request
	armed  bool
	length int // of the request that was met
	met    chan struct{}
}

func (s *saboteur) arm(op uint32, sent, answer int) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed, s.op, s.sent, s.answer, s.met = true, op, sent, answer, make(chan struct{})
	return s.met
}

func (s *saboteur) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &sabotaged{Conn: conn, by: s, left: -1}, nil
}

type sabotaged struct {
	net.Conn
	by   *saboteur
	mu   sync.Mutex
	left int // bytes still delivered; -1 for all
}

func (c *sabotaged) Write(b []byte) (int, error) {
	c.by.mu.Lock()
	hit := c.by.armed && len(b) >= 12 && binary.BigEndian.Uint32(b[8:]) == c.by.op
	sent, answer := c.by.sent, c.by.answer
	if hit {
		c.by.armed, c.by.length = false, len(b)
		defer close(c.by.met)
	}
	c.by.mu.Unlock()
	switch {
	case !hit:
	case 0 <= sent && sent < len(b):
		n, _ := c.Conn.Write(b[:sent])
		c.Close()
		return n, errors.New("sabotaged")
	default:
		c.mu.Lock()
		c.left = answer
		c.mu.Unlock()
	}
	return c.Conn.Write(b)
}

func (c *sabotaged) Read(b []byte) (int, error) {
	// The reader is usually here already when the request is written. What it gets after
	// that counts too.
	n, err := c.Conn.Read(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left < 0 {
		return n, err
	}
	n = min(n, c.left)
	c.left -= n
	if c.left == 0 {
		c.Close()
		if n == 0 {
			return 0, errors.New("sabotaged")
		}
	}
	return n, err
}

const (
	opCreate  = 1
	opDelete  = 2
	opGetData = 4
	opMulti   = 14
)

func TestAmbiguousJoin(t *testing.T) {
	t.Parallel()
	sab := new(saboteur)
	s := session(t, open(t, zookeeper.Options{Dialer: sab.dial}, server(t)))
	other := session(t, open(t, zookeeper.Options{}, server(t)))
	variants := 0
	var abandoned []string // the lines of joins that have been given up
	run := func(sent, answer int, abandon bool) {
		t.Helper()
		variants++
		name := fmt.Sprintf("e%d", variants)
		join(t, other, name, "other") // the line is there, and somebody else's member
		met := sab.arm(opCreate, sent, answer)
		ctx, cancel := context.WithCancel(within(t, time.Minute))
		defer cancel()
		if abandon {
			go func() { <-met; cancel() }()
		}
		m, err := s.Join(ctx, name, "mine", "")
		switch {
		case abandon && errors.Is(err, context.Canceled):
			abandoned = append(abandoned, name)
			return
		case err != nil:
			t.Fatalf("%d bytes sent, %d of the answer: %v", sent, answer, err)
		}
		if l := line(t, other, name); len(l.Members) != 2 || l.Members[1] != m.Member || m.Value != "mine" {
			t.Fatalf("%d bytes sent, %d of the answer: joined %+v, and there stands %+v", sent, answer, m, l.Members)
		}
	}
	run(0, 0, false)
	request := sab.length
	for k := 1; k < request; k++ {
		run(k, 0, k%4 == 0)
	}
	for k := range 60 { // length, header, path: some 50 bytes
		run(-1, k, k%4 == 0)
	}
	// The session removes the member of an abandoned join after the caller has gone.
	for _, name := range abandoned {
		for end := within(t, time.Minute); len(line(t, other, name).Members) != 1; {
			if end.Err() != nil {
				t.Fatalf("a minute later the member of an abandoned join stands: %+v", line(t, other, name))
			}
		}
	}
	if s.Err() != nil {
		t.Fatal("it must have been one session throughout: ", s.Err())
	}
	if variants < 100 {
		t.Errorf("only %d variants", variants)
	}
	t.Logf("%d variants, one session", variants)
}

func TestAmbiguousLeaveAndPin(t *testing.T) {
	sab := new(saboteur)
	s := session(t, open(t, zookeeper.Options{Dialer: sab.dial}, server(t)))
	for i, cut := range [][2]int{{0, 0}, {30, 0}, {-1, 0}, {-1, 7}} {
		name := fmt.Sprintf("leave%d", i)
		m := join(t, s, name, "")
		sab.arm(opDelete, cut[0], cut[1])
		if err := s.Leave(within(t, time.Minute), m); err != nil {
			t.Fatalf("leave, %v: %v", cut, err)
		}
		if l := line(t, s, name); len(l.Members) != 0 {
			t.Errorf("leave, %v: %+v", cut, l.Members)
		}
		name = fmt.Sprintf("pin%d", i)
		m = join(t, s, name, "v")
		sab.arm(opMulti, cut[0], cut[1])
		h := backend.Header{Fence: 7}
		if err := s.Pin(within(t, time.Minute), m, h, backend.Absent); err != nil {
			t.Fatalf("pin, %v: %v", cut, err)
		}
		l := line(t, s, name)
		if len(l.Members) != 1 || !l.Members[0].Pinned || l.Members[0].Value != "v" || l.Header != h {
			t.Errorf("pin, %v: %+v", cut, l)
		}
	}
}

// A foreign candidate may choose its number itself, and stand behind those that come later.
func TestAmbiguousJoinBeforeForeignNumber(t *testing.T) {
	t.Parallel()
	sab := new(saboteur)
	s := session(t, open(t, zookeeper.Options{Dialer: sab.dial}, server(t)))
	first := join(t, s, "e", "mine")
	foreign := raw(t, server(t))
	for _, name := range []string{"n_1500000000", "n_0000000002", "n_15000000000"} {
		if _, err := foreign.Create(chroot(t)+"/e/"+name, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Get(t.Context(), "r"); err != nil { // the session has seen them
		t.Fatal(err)
	}
	sab.arm(opCreate, -1, 0)
	m := join(t, s, "e", "mine")
	names, _, err := foreign.Children(chroot(t) + "/e")
	if err != nil || len(names) != 5 || !slices.Contains(names, m.Key) || m.Key == first.Key {
		t.Errorf("joined %v and %v, and there stand %q, %v", first, m, names, err)
	}
}

// A line that was made anew gives its members the old names. A join whose answer is lost then finds its member also if the session
// has not noticed that a former one of that name has gone; and who waits for that one is told.
func TestAmbiguousJoinInALineMadeAnew(t *testing.T) {
	sab := new(saboteur)
	s, op := session(t, open(t, zookeeper.Options{Dialer: sab.dial}, server(t))), raw(t, server(t))
	former := join(t, s, "e", "mine")
	forgotten := zookeeper.Forgotten(s, former)
	at := chroot(t) + "/e"
	drop := func() {
		if err := errors.Join(op.Delete(at+"/"+former.Key, -1), op.Delete(at, -1)); err != nil {
			t.Fatal(err)
		}
	}
	drop()
	if _, err := op.Create(at, []byte{}, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	sab.arm(opCreate, -1, 0)
	m := join(t, s, "e", "mine")
	if l := line(t, s, "e"); len(l.Members) != 1 || l.Members[0] != m || m.Key != former.Key {
		t.Errorf("joined %+v, and there stand %+v", m, l.Members)
	}
	select {
	case <-forgotten:
	default:
		t.Error("who waits for the former member is not told")
	}
	drop()
}
