package proxy_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/succession-dev/succession/conformance/proxy"
)

func TestProxyForwardsAndCounts(t *testing.T) {
	p, client, server := through(t)
	send(t, client, "question")
	expect(t, server, "question")
	send(t, server, "the answer")
	expect(t, client, "the answer")
	want := proxy.Stats{Accepted: 1, Open: 1, ToServer: 8, ToClient: 10}
	wait(t, p, func(got proxy.Stats) bool { return got == want })

	// Each side may end its stream first.
	if err := client.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("server read %v after the client's end of stream, want EOF", err)
	}
	send(t, server, "still")
	server.Close()
	expect(t, client, "still")
	if _, err := client.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("client read %v after the server closed, want EOF", err)
	}
	wait(t, p, func(s proxy.Stats) bool { return s.Open == 0 })
}

func TestProxyBlocksEachDirectionApart(t *testing.T) {
	for _, tt := range []struct {
		dir  proxy.Direction
		ends func(client, server net.Conn) (heldFrom, heldTo, openFrom, openTo net.Conn)
	}{
		{proxy.ToServer, func(c, s net.Conn) (_, _, _, _ net.Conn) { return c, s, s, c }},
		{proxy.ToClient, func(c, s net.Conn) (_, _, _, _ net.Conn) { return s, c, c, s }},
	} {
		t.Run(tt.dir.String(), func(t *testing.T) {
			p, client, server := through(t)
			heldFrom, heldTo, openFrom, openTo := tt.ends(client, server)
			p.Block(tt.dir)
			send(t, heldFrom, "one ")
			send(t, openFrom, "free")
			expect(t, openTo, "free")
			expectSilence(t, heldTo)
			send(t, heldFrom, "two")
			p.Unblock(tt.dir)
			expect(t, heldTo, "one two")
		})
	}
}

// The end of a connection is held back like everything else.
func TestProxyHoldsBackEndOfStream(t *testing.T) {
	p, client, server := through(t)
	p.Cut()
	send(t, client, "last words")
	client.Close()
	wait(t, p, func(s proxy.Stats) bool { return s.Ended == 1 && s.Open == 1 })
	expectSilence(t, server)
	p.Heal()
	expect(t, server, "last words")
	if _, err := server.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("server read %v, want EOF", err)
	}
}

// After Block has returned nothing passes, not even what was being written.
func TestProxyBlockTakesEffectAtOnce(t *testing.T) {
	p, client, server := through(t)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			if _, err := client.Write(make([]byte, 8<<10)); err != nil {
				return // closed below
			}
		}
	})
	defer wg.Wait()
	defer client.Close()
	wait(t, p, func(s proxy.Stats) bool { return s.ToServer > 1<<20 }) // the server's buffers fill
	p.Block(proxy.ToServer)
	passed := p.Stats().ToServer
	if n, err := io.CopyN(io.Discard, server, passed); err != nil {
		t.Fatalf("server read %d of the %d bytes that were delivered: %v", n, passed, err)
	}
	expectSilence(t, server)
	if now := p.Stats().ToServer; now != passed {
		t.Errorf("%d bytes passed after Block", now-passed)
	}
}

// Block does not wait for a server that does not read, such as a paused one.
func TestProxyBlockInterruptsStuckWrite(t *testing.T) {
	p, client, server := through(t)
	sent := 0
	for err := error(nil); err == nil; { // until all buffers are full
		if err := client.SetWriteDeadline(time.Now().Add(silence)); err != nil {
			t.Fatal(err)
		}
		var n int
		n, err = client.Write(make([]byte, 256<<10))
		sent += n
	}
	blocked := make(chan struct{})
	go func() { p.Block(proxy.ToServer); close(blocked) }()
	select {
	case <-blocked:
	case <-time.After(soon):
		t.Error("Block does not return while the server does not read")
		server.Close()
		<-blocked
	}
	p.Heal()
	if _, err := io.CopyN(io.Discard, server, int64(sent)); err != nil {
		t.Errorf("of %d bytes sent not all arrive after Heal: %v", sent, err)
	}
}

func TestProxyCutHoldsNewConnections(t *testing.T) {
	checkLeaks(t)
	u := listenUpstream(t)
	p := start(t, u)
	p.Cut()
	client := dial(t, p)
	send(t, client, "hello")
	wait(t, p, func(s proxy.Stats) bool { return s.Open == 1 })
	select {
	case <-u.conns:
		t.Fatal("a connection came through a cut network")
	case <-time.After(silence):
	}
	p.Heal()
	expect(t, u.accept(), "hello")
}

func TestProxyReset(t *testing.T) {
	p, client, server := through(t)
	p.Reset()
	expectReset(t, client)
	expectReset(t, server)
	wait(t, p, func(s proxy.Stats) bool { return s.Open == 0 })
	dial(t, p) // new connections can be made
	wait(t, p, func(s proxy.Stats) bool { return s.Accepted == 2 })
}

func TestProxyRefuse(t *testing.T) {
	p, client, server := through(t)
	p.Refuse()
	expectRefusal(t, p)
	send(t, client, "open ones stay")
	expect(t, server, "open ones stay")
	p.Heal()
	dial(t, p)
	wait(t, p, func(s proxy.Stats) bool { return s.Accepted == 2 })
}

// A hidden client has no connection and can make none.
func TestProxyHide(t *testing.T) {
	p, client, server := through(t)
	p.Hide()
	expectReset(t, client)
	expectReset(t, server)
	expectRefusal(t, p)
	p.Heal()
	dial(t, p)
	wait(t, p, func(s proxy.Stats) bool { return s.Accepted == 2 && s.Open == 1 })
}

// A killed client does not come back, even if another fault is healed later.
func TestProxyKill(t *testing.T) {
	p, client, server := through(t)
	p.Block(proxy.ToServer)
	p.Kill()
	expectReset(t, client)
	expectReset(t, server)
	p.Heal()
	expectRefusal(t, p)
}

// A connection that carries a request while Sever is in force breaks, and the request is
// delivered, or lost, in turns.
func TestProxySever(t *testing.T) {
	checkLeaks(t)
	u := listenUpstream(t)
	p := start(t, u)
	p.Sever()
	for i := range 4 {
		client := dial(t, p)
		server := u.accept()
		send(t, server, "news on an idle connection")
		expect(t, client, "news on an idle connection")
		send(t, client, "request")
		if i%2 == 0 {
			expect(t, server, "request")
		}
		expectReset(t, client)
		expectReset(t, server)
	}
	wait(t, p, func(s proxy.Stats) bool { return s.Open == 0 })
	if n, want := p.Stats().ToServer, int64(2*len("request")); n != want {
		t.Errorf("%d bytes came through to the server, want %d", n, want)
	}
	p.Heal()
	client := dial(t, p)
	send(t, client, "request")
	server := u.accept()
	expect(t, server, "request")
	send(t, server, "answer")
	expect(t, client, "answer")
}

// The answer does not come through, however quick it is.
func TestProxySeverLosesAnswers(t *testing.T) {
	checkLeaks(t)
	u := listenUpstream(t)
	p := start(t, u)
	p.Sever()
	for i := range 200 {
		client := dial(t, p)
		server := u.accept()
		go func() {
			if b := make([]byte, 1); server.SetReadDeadline(time.Now().Add(soon)) == nil {
				if _, err := server.Read(b); err == nil {
					server.Write(b)
				}
			}
		}()
		send(t, client, "x")
		if err := client.SetReadDeadline(time.Now().Add(soon)); err != nil {
			t.Fatal(err)
		}
		if n, err := client.Read(make([]byte, 1)); n > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("connection %d: read %d bytes, %v; want an end", i, n, err)
		}
	}
	if n := p.Stats().ToServer; n != 100 {
		t.Errorf("%d of 200 requests were delivered, want every second", n)
	}
}

func TestProxyCloseAfter(t *testing.T) {
	for _, tt := range []struct {
		name string
		dir  proxy.Direction
		n    int64
	}{
		{"the next answer", proxy.ToClient, 0},
		{"in the middle of an answer", proxy.ToClient, 3},
		{"the next request", proxy.ToServer, 0},
		{"in the middle of a request", proxy.ToServer, 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, client, server := through(t)
			from, to := client, server
			if tt.dir == proxy.ToClient {
				from, to = server, client
			}
			p.CloseAfter(tt.dir, tt.n)
			const otherWay = "the other way does not count"
			send(t, to, otherWay)
			expect(t, from, otherWay)
			send(t, from, "0123456789")
			expectReset(t, from)
			wait(t, p, func(s proxy.Stats) bool { return s.Open == 0 })
			counted := p.Stats().ToServer
			if tt.dir == proxy.ToClient {
				counted = p.Stats().ToClient
			}
			if counted != tt.n {
				t.Errorf("%d bytes were delivered, want %d", counted, tt.n)
			}
			// It strikes once.
			again := dial(t, p)
			send(t, again, "x")
			wait(t, p, func(s proxy.Stats) bool { return s.ToServer == int64(len(otherWay))+1 || s.ToServer == tt.n+1 })
		})
	}
}

func TestProxyLoseAnswers(t *testing.T) {
	p, client, server := through(t)
	lost := p.LoseAnswers(func(b []byte) bool { return bytes.Contains(b, []byte("create")) })

	send(t, client, "ping")
	expect(t, server, "ping")
	send(t, server, "pong")
	expect(t, client, "pong")
	select {
	case <-lost:
		t.Fatal("a request was chosen that does not match")
	default:
	}

	send(t, client, "create")
	select {
	case <-lost:
	case <-time.After(soon):
		t.Fatal("the request was not delivered")
	}
	expect(t, server, "create")
	send(t, server, "created")
	expectSilence(t, client)
	send(t, client, "still there?")
	expect(t, server, "still there?")
	p.Reset()
	expectReset(t, client)
}

// A request that is held back arrives when it is released, whatever has happened to the network meanwhile. The client has
// another connection by then.
func TestProxyHoldBack(t *testing.T) {
	checkLeaks(t)
	u := listenUpstream(t)
	p := start(t, u)
	held, release := p.HoldBack(1, func(b []byte) bool { return bytes.Contains(b, []byte("write")) })
	client := dial(t, p)
	send(t, client, "read")
	server := u.accept()
	expect(t, server, "read")
	send(t, client, "write 1")
	expect(t, server, "write 1")
	send(t, server, "written")
	expect(t, client, "written")
	if held() {
		t.Fatal("a request is held back that was to pass")
	}

	send(t, client, "write 2")
	expectReset(t, client)
	if !held() {
		t.Error("no request is held back")
	}
	expectSilence(t, server)
	if n := p.Stats().Held; n != 1 {
		t.Errorf("%d connections are held, want 1", n)
	}
	send(t, server, "nobody hears this")
	again := dial(t, p)
	send(t, again, "write 3")
	expect(t, u.accept(), "write 3")
	p.Cut()
	p.Kill()
	expectReset(t, again)
	expectSilence(t, server)
	released := make(chan struct{})
	go func() {
		defer close(released)
		release()
	}()
	expect(t, server, "write 2")
	select {
	case <-released:
		t.Error("the request was released before it was answered")
	case <-time.After(silence):
	}
	send(t, server, "written")
	<-released
	expectReset(t, server)
	release()
}

// What is never released ends with the proxy, and a server that has closed the connection is not waited for.
func TestProxyHoldBackEnds(t *testing.T) {
	for name, end := range map[string]func(p *proxy.Proxy, server net.Conn, release func()){
		"not released": func(p *proxy.Proxy, _ net.Conn, _ func()) { p.Close() },
		"closed by the server": func(p *proxy.Proxy, server net.Conn, release func()) {
			server.Close()
			if err := p.Wait(t.Context(), func(s proxy.Stats) bool { return s.Held == 0 }); err != nil {
				t.Error(err)
			}
			release()
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, client, server := through(t)
			_, release := p.HoldBack(0, func([]byte) bool { return true })
			send(t, client, "write")
			expectReset(t, client)
			end(p, server, release)
		})
	}
}

func TestProxyDelay(t *testing.T) {
	p, client, server := through(t)
	p.Delay(proxy.ToClient, time.Hour)
	send(t, client, "quick")
	expect(t, server, "quick") // the other direction is not delayed

	const delay = 150 * time.Millisecond
	p.Delay(proxy.ToClient, delay)
	begin := time.Now()
	for range 3 { // all three are delayed at the same time, and not one after the other
		send(t, server, "slow")
	}
	expect(t, client, "slowslowslow")
	if d := time.Since(begin); d < delay || d > delay+soon {
		t.Errorf("a delay of %v took %v", delay, d)
	}

	p.Delay(proxy.ToClient, time.Hour)
	send(t, server, "very slow")
	expectSilence(t, client)
	p.Delay(proxy.ToClient, 0) // this also releases what is on its way
	expect(t, client, "very slow")
}

func TestProxyWithoutServer(t *testing.T) {
	checkLeaks(t)
	u := listenUpstream(t)
	u.Close()
	p := start(t, u)
	expectRefusal(t, p)
}

func TestProxyWaitHonoursContext(t *testing.T) {
	p, _, _ := through(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := p.Wait(ctx, func(s proxy.Stats) bool { return s.Accepted == 2 })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Wait returned %v, want that it was canceled", err)
	}
}

// Much data in both directions arrives complete and in order while the network is cut and
// healed. Close in the middle of it leaves nothing behind.
func TestProxyUnderLoad(t *testing.T) {
	p, client, server := through(t)
	const size = 8 << 20
	var wg sync.WaitGroup
	for i, ends := range [][2]net.Conn{{client, server}, {server, client}} {
		data := make([]byte, size)
		r := rand.NewChaCha8([32]byte{byte(i)})
		if _, err := r.Read(data); err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			if _, err := ends[0].Write(data); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			got := make([]byte, size)
			if _, err := io.ReadFull(ends[1], got); err != nil {
				t.Error(err)
				return
			}
			if sha256.Sum256(got) != sha256.Sum256(data) {
				t.Error("what arrived is not what was sent")
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for running := true; running; {
		p.Cut()
		p.Unblock(proxy.ToClient)
		p.Heal()
		select {
		case <-done:
			running = false
		default:
		}
	}
	if s := p.Stats(); s.ToServer != size || s.ToClient != size {
		t.Errorf("counted %+v, want %d bytes each way", s, size)
	}

	p.Cut()
	send(t, client, "held back for ever")
	p.Close()
	p.Close()
	expectReset(t, client)
	if s := p.Stats(); s.Open != 0 {
		t.Errorf("%d connections are open after Close", s.Open)
	}
}

// The suite counts goroutines by their labels, which goroutines inherit.
func TestProxyHasNoLabels(t *testing.T) {
	checkLeaks(t)
	pprof.Do(t.Context(), pprof.Labels("proxy-test", "x"), func(context.Context) {
		u := listenUpstream(t)
		p := start(t, u)
		send(t, dial(t, p), "x")
		expect(t, u.accept(), "x")
	})
	var b bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&b, 1); err != nil {
		t.Fatal(err)
	}
	for stack := range strings.SplitSeq(b.String(), "\n\n") {
		if strings.Contains(stack, "proxy.(*conn).run") && strings.Contains(stack, "proxy-test") {
			t.Errorf("a goroutine of the proxy has the label of who started it:\n%s", stack)
		}
	}
	if !strings.Contains(b.String(), "proxy.(*conn).run") {
		t.Error("no goroutine of the proxy was found")
	}
}

// Who gives up while the network is cut has never reached the server: after Heal that hears only of who waits still.
func TestGivenUpWhileCut(t *testing.T) {
	checkLeaks(t)
	u := listenUpstream(t)
	p := start(t, u)
	p.Cut()
	for range 3 {
		c := dial(t, p)
		send(t, c, "given up")
		c.Close()
	}
	stays := dial(t, p)
	wait(t, p, func(s proxy.Stats) bool { return s.Accepted == 4 && s.Open == 1 })
	send(t, stays, "x")
	p.Heal()
	expect(t, u.accept(), "x")
	select {
	case <-u.conns:
		t.Error("the server heard of a client that had given up")
	case <-time.After(silence):
	}
}

// A proxy uses the Listener and the Dial of its Options.
func TestProxyOptions(t *testing.T) {
	checkLeaks(t)
	u := listenUpstream(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p, err := proxy.Start("the server", &proxy.Options{
		Listener: l,
		Dial: func(addr string, timeout time.Duration) (net.Conn, error) {
			if addr != "the server" || timeout <= 0 {
				t.Errorf("dials %q for %v", addr, timeout)
			}
			return net.DialTimeout("tcp", u.Addr().String(), timeout)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	if p.Addr() != l.Addr().String() {
		t.Errorf("the address is %s, want that of the listener, %s", p.Addr(), l.Addr())
	}
	send(t, dial(t, p), "x")
	expect(t, u.accept(), "x")
}
