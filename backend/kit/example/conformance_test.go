package example

import (
	"bytes"
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime/pprof"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/conformance"
	"github.com/succession-dev/succession/conformance/proxy"
)

const ttl = 2 * time.Second

// The environment variables of a candidate in a process of its own.
const (
	urlEnv      = "EXAMPLE_URL"
	electionEnv = "EXAMPLE_ELECTION"
	idEnv       = "EXAMPLE_ID"
)

func TestMain(m *testing.M) {
	url := os.Getenv(urlEnv)
	if url == "" {
		flag.Parse()
		if err := flag.Set("test.parallel", "8"); err != nil { // rules wait most of the time
			panic(err)
		}
		os.Exit(m.Run())
	}
	b, err := succession.Connect(context.Background(), url)
	if err == nil {
		err = conformance.Stand(context.Background(), b, os.Getenv(electionEnv), os.Getenv(idEnv), os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_ = b.Close() // its session ends in any case
	os.Exit(0)
}

// TestConformance runs every rule on one server, each client behind a proxy of its own.
func TestConformance(t *testing.T) {
	o := newOperator(t)
	h := conformance.Harness{
		Name:      "example",
		TTL:       ttl,
		Open:      func(context.Context) (backend.Backend, error) { return newClient(t, o.addr) },
		Reference: reference(t),
		Faults: conformance.Faults{
			Expire:     o.expire,
			LoseAnswer: func(b backend.Backend) { b.(*client).proxy.LoseAnswers(writes) },
			HoldBack: func(b backend.Backend, skip int) (func() bool, func()) {
				return b.(*client).proxy.HoldBack(skip, writes)
			},
			Process: o.process,
			Restart: o.restart,
			Pause: func(context.Context) (func(), error) {
				o.mu.Lock()
				return o.mu.Unlock, nil
			},
			Remove: func(_ context.Context, m backend.Member) error { return o.remove(m) },
			Drop:   func(_ context.Context, line string) error { return o.drop(line) },
			Reset:  func(context.Context) error { return o.restore(new(server)) },
			Rewind: func(context.Context) (func(context.Context) error, error) {
				backup := o.backup()
				return func(context.Context) error { return o.restore(backup) }, nil
			},
			Requests: func(b backend.Backend) int64 { return b.(*client).requests.Load() },
		},
		Lacks: map[conformance.Fault]string{
			conformance.Compact:       "the server answers those who watch with what is, and keeps no history",
			conformance.Clock:         "sessions end by timers",
			conformance.Cluster:       "there is one server",
			conformance.Promote:       "there is no standby",
			conformance.PromoteBeside: "there is no standby",
		},
		Complete: true,
	}
	h.Faults.Network(func(b backend.Backend) []*proxy.Proxy { return []*proxy.Proxy{b.(*client).proxy} })
	conformance.Run(t, h)
}

// reference returns a Reference to a server of its own: it deletes a record that is not there.
func reference(t *testing.T) func(context.Context) error {
	c, err := newClient(t, newOperator(t).addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return func(ctx context.Context) error {
		s, err := c.Session(ctx)
		if err != nil {
			return err
		}
		return s.Delete(ctx, "reference", nil)
	}
}

// A client is a backend behind a proxy.
type client struct {
	*Backend
	proxy    *proxy.Proxy
	requests atomic.Int64
}

func newClient(t *testing.T, addr string) (*client, error) {
	p, err := proxy.Start(addr, nil)
	if err != nil {
		return nil, err
	}
	t.Cleanup(p.Close)
	c := &client{proxy: p}
	c.Backend = New(&http.Transport{DialContext: c.dial}, p.Addr(), ttl)
	return c, nil
}

// dial connects without the labels by which the suite finds goroutines that a rule has left:
// the connection may be kept for later requests.
func (c *client) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	pprof.SetGoroutineLabels(context.Background())
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	return &counted{conn, c}, err
}

// counted counts requests. Each begins with a Write.
type counted struct {
	net.Conn
	by *client
}

func (c *counted) Write(b []byte) (int, error) {
	if bytes.HasPrefix(b, []byte("POST ")) {
		c.by.requests.Add(1)
	}
	return c.Conn.Write(b)
}

// writes reports whether a request is for a write.
func writes(request []byte) bool {
	return slices.ContainsFunc([]string{"join", "leave", "pin", "put", "delete"}, func(op string) bool {
		return bytes.HasPrefix(request, []byte("POST /"+op+" "))
	})
}

// An operator runs the server, and injects faults into it.
type operator struct {
	*server
	addr     string
	listener net.Listener
	http     *http.Server
}

func newOperator(t *testing.T) *operator {
	o := &operator{server: &server{changed: make(chan struct{})}, addr: "127.0.0.1:0"}
	o.restore(new(server))
	if err := o.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.stop)
	return o
}

// start serves, at the same address each time.
func (o *operator) start() (err error) {
	if o.listener, err = net.Listen("tcp", o.addr); err == nil {
		o.addr, o.http = o.listener.Addr().String(), &http.Server{Handler: o.server}
		go o.http.Serve(o.listener)
	}
	return err
}

func (o *operator) stop() {
	o.listener.Close() // Serve may not have begun, and then Close of o.http does not close it
	o.http.Close()
}

func (o *operator) restart(context.Context) error {
	o.stop()
	return o.start()
}

func (o *operator) process(election, id string) *exec.Cmd {
	self, err := os.Executable()
	cmd := exec.Command(self)
	cmd.Err = err // Start returns it
	cmd.Env = append(os.Environ(), urlEnv+"=example://"+o.addr+"?ttl="+ttl.String(), electionEnv+"="+election, idEnv+"="+id)
	cmd.Stderr = os.Stderr
	return cmd
}

func (o *operator) expire(ctx context.Context, b backend.Backend) error {
	s, err := b.Session(ctx)
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if id := s.(*kit.Adapter).Session.(*session).id; o.sessions[id] != nil {
		o.end(id)
	}
	return nil
}

func (o *operator) remove(m backend.Member) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.server.remove(m.Line, func(e entry) bool { return e.Position == m.Position })
	return nil
}

func (o *operator) drop(line string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.server.remove(line, func(entry) bool { return true })
	delete(o.records, line)
	return nil
}

// backup returns a copy of the server's state. Sessions in it do not end by time.
func (o *operator) backup() *server {
	o.mu.Lock()
	defer o.mu.Unlock()
	b := &server{index: o.index, lines: make(map[string][]entry), records: maps.Clone(o.records), sessions: make(map[string]*grant)}
	for line, entries := range o.lines {
		b.lines[line] = slices.Clone(entries)
	}
	for id, g := range o.sessions {
		b.sessions[id] = &grant{ttl: g.ttl, used: maps.Clone(g.used)}
	}
	return b
}

// restore replaces the server's state by the backup, and begins another log.
func (o *operator) restore(backup *server) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, g := range o.sessions {
		g.timer.Stop()
	}
	o.log, o.index = rand.Text(), backup.index
	o.lines, o.records, o.sessions = make(map[string][]entry), make(map[string]record), make(map[string]*grant)
	maps.Copy(o.lines, backup.lines)
	maps.Copy(o.records, backup.records)
	for id, g := range backup.sessions {
		o.grant(id, g.ttl, g.used)
	}
	o.change()
	return nil
}
