package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/proxy"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/zookeeper"
)

// What was under way when the session ended does not run under the next one.
func TestNothingRunsUnderNextSession(t *testing.T) {
	front := coordtest.NewProxy(t, server(t))
	b := open(t, zookeeper.Options{TTL: 2 * time.Second}, front.Addr())
	s, other := session(t, b), session(t, open(t, zookeeper.Options{}, server(t)))
	join(t, s, "e", "")
	front.Block(proxy.ToServer)
	var calls []<-chan error
	for i := range 40 { // more than the library's queue holds
		calls = append(calls, background(func() error {
			_, err := s.Join(t.Context(), fmt.Sprintf("queued%d", i), "", "")
			return err
		}))
	}
	time.Sleep(20 * time.Millisecond)
	front.Refuse()
	front.Reset()
	eventually(t, 5*time.Second, "the server ends the session", func() bool {
		dump, err := coordtest.FourLetter(t.Context(), server(t), "dump")
		return err == nil && !strings.Contains(dump, chroot(t)+"/e/")
	})
	front.Heal()
	for _, c := range calls {
		if err := result(t, c, 5*time.Second); !errors.Is(err, backend.ErrSessionEnded) {
			t.Fatalf("call of the session that ended: %v", err)
		}
	}
	if _, err := s.Get(t.Context(), "r"); !errors.Is(err, backend.ErrSessionEnded) {
		t.Error(err)
	}
	next := session(t, b)
	if next == s {
		t.Fatal("the same session again")
	}
	time.Sleep(200 * time.Millisecond)
	_, _ = next.Get(t.Context(), "r") // what it has sent before is done then
	for i := range 40 {
		if l := line(t, other, fmt.Sprintf("queued%d", i)); len(l.Members) > 0 {
			t.Errorf("a queued join ran: %+v", l.Members)
		}
	}
}

func eventually(t testing.TB, limit time.Duration, what string, cond func() bool) {
	t.Helper()
	watch := calm.Start(t)
	for end := time.Now().Add(limit + time.Minute); !cond(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, limit+time.Minute)
		}
	}
	watch.Within(limit, "%s", what)
}

// A server that takes connections and stays silent blocks nobody.
func TestSilentServer(t *testing.T) {
	silent := coordtest.NewProxy(t, server(t))
	silent.Cut()
	b := open(t, zookeeper.Options{ConnectTimeout: 600 * time.Millisecond}, silent.Addr())
	watch := calm.Start(t)
	if _, err := b.Session(t.Context()); !errors.Is(err, backend.ErrUnavailable) {
		t.Errorf("only a silent server: %v", err)
	}
	watch.Within(800*time.Millisecond, "a session with a silent server")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	watch = calm.Start(t)
	if _, err := b.Session(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with a context of 50ms: %v", err)
	}
	watch.Within(100*time.Millisecond, "a session with a context of 50ms")
	for range 4 { // the order of servers is random
		b := open(t, zookeeper.Options{TTL: 1500 * time.Millisecond}, silent.Addr(), server(t))
		watch := calm.Start(t)
		session(t, b)
		watch.Within(800*time.Millisecond, "a session with a good second server")
	}
	// And in the middle of a session.
	front := coordtest.NewProxy(t, server(t))
	b = open(t, zookeeper.Options{TTL: 8 * time.Second}, front.Addr(), silent.Addr(), front.Addr())
	s := session(t, b)
	m := join(t, s, "e", "")
	front.Reset()
	begin := time.Now()
	ahead(t, s, m)
	t.Logf("answer %v after a reset, with a silent server among three", time.Since(begin))
}

func TestReconnectIsQuick(t *testing.T) {
	front := coordtest.NewProxy(t, server(t))
	s := session(t, open(t, zookeeper.Options{}, front.Addr()))
	m := join(t, s, "e", "")
	for range 10 {
		front.Reset()
		watch := calm.Start(t)
		ahead(t, s, m)
		watch.Within(300*time.Millisecond, "with one server, an answer after a reset")
	}
}

// Waiters live through a restart with their session and their place.
func TestServerRestart(t *testing.T) {
	t.Parallel()
	z := own(t)
	o := zookeeper.Options{TTL: 2 * time.Minute} // a restart may take long
	a, b := session(t, open(t, o, z.Addrs()...)), session(t, open(t, o, z.Addrs()...))
	ma, mb := join(t, a, "e", ""), join(t, b, "e", "")
	p := ahead(t, b, mb)
	gone := background(func() error { return b.Gone(t.Context(), p.Ahead) })
	still(t, gone, 50*time.Millisecond)
	if err := z.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	still(t, gone, 500*time.Millisecond)
	if p := ahead(t, a, ma); !p.First {
		t.Errorf("%+v", p)
	}
	if err := a.Leave(within(t, time.Minute), ma); err != nil {
		t.Fatal(err)
	}
	// A client whose session is long waits long for a server that has accepted its connection and does not answer yet.
	if err := result(t, gone, time.Minute); err != nil {
		t.Fatal(err)
	}
	if p := ahead(t, b, mb); !p.First || p.Token != mb.Position {
		t.Errorf("%+v", p)
	}
}

// A departure while the waiter is not connected is found out on the next connection.
func TestDepartureWhileDisconnected(t *testing.T) {
	front := coordtest.NewProxy(t, server(t))
	a := session(t, open(t, zookeeper.Options{}, server(t)))
	b := session(t, open(t, zookeeper.Options{}, front.Addr()))
	ma, mb := join(t, a, "e", ""), join(t, b, "e", "")
	p := ahead(t, b, mb)
	gone := background(func() error { return b.Gone(t.Context(), p.Ahead) })
	still(t, gone, 50*time.Millisecond)
	front.Refuse()
	front.Reset()
	if err := a.Leave(t.Context(), ma); err != nil {
		t.Fatal(err)
	}
	still(t, gone, 50*time.Millisecond)
	front.Heal()
	if err := result(t, gone, 2*time.Second); err != nil {
		t.Fatal(err)
	}
}

// A leader that is cut off is told at its deadline, before the server lets the heir
// lead.
func TestPartitionedLeader(t *testing.T) {
	for _, ways := range [][]proxy.Direction{
		{proxy.ToServer, proxy.ToClient}, {proxy.ToServer}, {proxy.ToClient},
	} {
		t.Run(fmt.Sprint(ways), func(t *testing.T) {
			t.Parallel()
			const ttl = 6 * time.Second // a busy machine does not end it before
			front := coordtest.NewProxy(t, server(t))
			a := session(t, open(t, zookeeper.Options{TTL: ttl}, front.Addr()))
			b := session(t, open(t, zookeeper.Options{}, server(t)))
			ma, mb := join(t, a, "e", ""), join(t, b, "e", "")
			ahead(t, a, ma)
			p := ahead(t, b, mb)
			time.Sleep(ttl / 3) // some heartbeats
			for _, way := range ways {
				front.Block(way)
			}
			won := make(chan time.Time, 1)
			go func() {
				if err := b.Gone(t.Context(), p.Ahead); err != nil {
					t.Error(err)
				}
				won <- time.Now()
			}()
			watch := calm.Start(t)
			<-a.Done()
			deadline := a.Deadline()
			watch.From(deadline).Within(50*time.Millisecond, "to be told of the deadline")
			select {
			case at := <-won:
				if at.Before(deadline) {
					t.Errorf("heir's turn came %v before the leader's deadline", deadline.Sub(at))
				}
			case <-time.After(time.Minute):
				t.Fatal("the heir waits for ever")
			}
			if p := ahead(t, b, mb); !p.First {
				t.Errorf("%+v", p)
			}
			if _, err := a.Ahead(t.Context(), ma); !errors.Is(err, backend.ErrSessionEnded) {
				t.Error(err)
			}
		})
	}
}

// While its server is paused, a leader is told at its deadline. Its member stands until the
// server ends the session.
func TestPausedServer(t *testing.T) {
	t.Parallel()
	const ttl = 6 * time.Second // a busy machine does not end it before
	z := own(t)
	b := open(t, zookeeper.Options{TTL: ttl}, z.Addrs()...)
	s := session(t, b)
	m := join(t, s, "e", "")
	ahead(t, s, m)
	if err := z.Pause(); err != nil {
		t.Fatal(err)
	}
	watch := calm.Start(t)
	select {
	case <-s.Done():
	case <-time.After(time.Minute):
		t.Fatal("the leader was never told")
	}
	watch.Within(ttl, "to tell a leader")
	if _, err := b.Session(within(t, 100*time.Millisecond)); err == nil {
		t.Error("a session with a paused server")
	}
	time.Sleep(time.Second)
	if err := z.Resume(); err != nil {
		t.Fatal(err)
	}
	s2 := session(t, b)
	m2 := join(t, s2, "e", "again")
	p := ahead(t, s2, m2)
	for !p.First { // the old member stands until the server ends its session
		if err := s2.Gone(within(t, time.Minute), p.Ahead); err != nil {
			t.Fatal(err)
		}
		p = ahead(t, s2, m2)
	}
	if p.Token <= m.Position {
		t.Errorf("token %d after %d", p.Token, m.Position)
	}
}

// A candidate that only waits keeps its session when the deadline passes, and loses it after
// two session times of silence.
func TestSilenceEndsSession(t *testing.T) {
	t.Parallel()
	const ttl = 6 * time.Second // a busy machine does not end it before
	front := coordtest.NewProxy(t, server(t))
	s := session(t, open(t, zookeeper.Options{TTL: ttl}, front.Addr()))
	watch := calm.Start(t)
	join(t, s, "e", "")
	front.Cut()
	call := background(func() error { _, err := s.Get(t.Context(), "r"); return err })
	select {
	case <-s.Done():
	case <-time.After(time.Minute):
		t.Fatal("never")
	}
	if took := time.Since(watch.Began()); took < 2*ttl*9/10 {
		t.Errorf("after %v, want two session times of %v", took, ttl)
	}
	watch.Within(2*ttl+time.Second, "two session times of %v", ttl)
	if err := result(t, call, 100*time.Millisecond); !errors.Is(err, backend.ErrSessionEnded) {
		t.Error(err)
	}
	t.Log(s.Err())
}

func TestReset(t *testing.T) {
	t.Parallel()
	z := own(t)
	b := open(t, zookeeper.Options{TTL: 5 * time.Second}, z.Addrs()...) // it ends after two of them: a server that is behind refuses it
	s := session(t, b)
	for i := range 50 {
		if _, err := s.Put(t.Context(), "r", fmt.Append(nil, i), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Wipe(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.Done():
	case <-time.After(time.Minute):
		t.Fatal("the session never ended")
	}
	for range 2 {
		_, err := b.Session(within(t, time.Minute))
		if !errors.Is(err, backend.ErrReset) {
			t.Fatalf("after a reset: %v", err)
		}
		t.Log(err)
	}
}

func TestClose(t *testing.T) {
	front := coordtest.NewProxy(t, server(t))
	for _, test := range []struct {
		name  string
		fault func()
		limit time.Duration
		fails bool
	}{
		{"connected", func() {}, 300 * time.Millisecond, false},
		{"reset", front.Reset, 500 * time.Millisecond, false},
		{"cut", front.Cut, 3500 * time.Millisecond, true},
		{"refused", func() { front.Refuse(); front.Reset() }, 3500 * time.Millisecond, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			b := open(t, zookeeper.Options{}, front.Addr())
			s := session(t, b)
			ms := []backend.Member{join(t, s, "e", ""), join(t, s, "e", "")}
			ahead(t, s, ms[0])
			gone := background(func() error { return s.Gone(t.Context(), ms[0]) })
			time.Sleep(20 * time.Millisecond)
			test.fault()
			watch := calm.Start(t)
			err := b.Close()
			if err != nil && !test.fails && watch.NotJudged(2*time.Second, "Close: %v", err) {
				return
			}
			watch.Within(test.limit, "Close")
			if (err != nil) != test.fails {
				t.Errorf("Close: %v", err)
			}
			<-gone
			if _, err := b.Session(t.Context()); !errors.Is(err, backend.ErrClosed) {
				t.Errorf("Session after Close: %v", err)
			}
			if err := b.Close(); err != nil && !test.fails {
				t.Errorf("Close again: %v", err)
			}
			front.Heal()
			front.Reset()
			if !test.fails {
				other := session(t, open(t, zookeeper.Options{Prefix: chroot(t)}, server(t)))
				if l := line(t, other, "e"); len(l.Members) != 0 {
					t.Errorf("members stand: %+v", l.Members)
				}
				other.Close(t.Context())
			}
			if err := front.Wait(within(t, time.Minute), func(s proxy.Stats) bool { return s.Open == 0 }); err != nil {
				t.Error(err)
			}
			if err := coordtest.Leaks(before); err != nil {
				t.Error(err)
			}
		})
	}
}
