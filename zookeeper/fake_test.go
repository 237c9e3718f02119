package zookeeper

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/zookeeper/internal/wire"
)

// What a fake server must know of the protocol (ZooDefs.java, KeeperException.java).
const (
	opCreate    = 1
	opExists    = 3
	opPing      = 11
	opChildren2 = 12
	opMulti     = 14
	opClose     = -11

	codeNoNode         = -101
	codeBadVersion     = -103
	codeNodeExists     = -110
	codeSessionExpired = -112
)

const second = time.Second

// frame returns a frame of these fields.
func frame(fields ...any) []byte {
	var b bytes.Buffer
	for _, f := range fields {
		switch f := f.(type) {
		case int:
			binary.Write(&b, binary.BigEndian, int32(f))
		case string:
			binary.Write(&b, binary.BigEndian, int32(len(f)))
			b.WriteString(f)
		default:
			binary.Write(&b, binary.BigEndian, f)
		}
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(b.Len())), b.Bytes()...)
}

func reply(xid, code int, zxid int64, body ...any) []byte {
	return frame(append([]any{xid, zxid, code}, body...)...)
}

func multiOK(xid int) []byte { return reply(xid, 0, 7, 13, false, 0, -1, true, -1) }

// readFrame reads a frame and returns what follows its length.
func readFrame(r io.Reader) ([]byte, error) {
	var n uint32
	if err := binary.Read(r, binary.BigEndian, &n); err != nil {
		return nil, err
	}
	b := make([]byte, n)
	_, err := io.ReadFull(r, b)
	return b, err
}

// fakeServer returns the dialer to a server that greets with the session 5, for 10 s, confirms
// its end, and answers everything else as answer says.
func fakeServer(answer func(xid, op int, path string) []byte) Dialer {
	return fakeServerThat(func() time.Duration { return 10 * second }, answer)
}

// fakeServerThat is fakeServer with the time that the session gets. The server greets when grant returns.
func fakeServerThat(grant func() time.Duration, answer func(xid, op int, path string) []byte) Dialer {
	serve := func(conn net.Conn) {
		defer conn.Close()
		if _, err := readFrame(conn); err != nil {
			return
		}
		for a := frame(0, int(grant().Milliseconds()), int64(5), "................"); ; {
			if _, err := conn.Write(a); err != nil {
				return
			}
			b, err := readFrame(conn)
			if err != nil {
				return
			}
			word := func(i int) int { return int(int32(binary.BigEndian.Uint32(b[4*i:]))) }
			xid, op := word(0), word(1)
			switch op {
			case opClose:
				a = reply(xid, 0, 7)
			case opPing:
				a = reply(xid, 0, 7)
			case opMulti:
				a = answer(xid, op, "")
			default:
				a = answer(xid, op, string(b[12:12+word(2)])) // every other begins with its path
			}
		}
	}
	return func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go serve(server)
		return client, nil
	}
}

// open returns a backend of the dialer's one server, which is closed when the test
// ends.
func open(t *testing.T, o Options) *Backend {
	t.Helper()
	b, err := New([]string{"server"}, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// stats is a znode's stat as answers have it.
func stats(czxid, owner int64) []any {
	return []any{czxid, czxid, int64(0), int64(0), 0, 0, 0, owner, 0, 0, czxid}
}

// The opening of a session takes the connect timeout, however short sessions are.
func TestConnectTimeoutIsHonoured(t *testing.T) {
	for name, dial := range map[string]Dialer{
		"refused": func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("refused") },
		"silent": func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			go io.Copy(io.Discard, server)
			return client, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := open(t, Options{TTL: second, ConnectTimeout: 10 * second, Dialer: dial})
				begin := time.Now()
				_, err := b.Session(t.Context())
				if !errors.Is(err, backend.ErrUnavailable) || errors.Is(err, backend.ErrSessionEnded) || !strings.Contains(err.Error(), "last problem") {
					t.Error(err)
				}
				if took := time.Since(begin); took != 10*second {
					t.Errorf("took %v", took)
				}
			})
		})
	}
}

// A server that goes silent in the middle of a session is left for another after a quarter of the
// session time, and what was asked is asked again.
func TestSilentInMidSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := fakeServer(func(xid, op int, _ string) []byte {
			if op == opMulti {
				return multiOK(xid)
			}
			return reply(xid, codeNoNode, 7)
		})
		dials := 0
		var silent atomic.Bool
		b := open(t, Options{TTL: 10 * second, Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials++
			silent.Store(false)
			conn, err := answers(ctx, network, addr)
			return &silenced{conn, &silent}, err
		}})
		s, err := b.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if dials != 1 {
			t.Errorf("%d connections were made in an hour of rest", dials)
		}
		silent.Store(true)
		begin := time.Now()
		if _, err := s.Get(t.Context(), "r"); err != nil {
			t.Error(err)
		}
		if took := time.Since(begin); took < 2*second || took > 2510*time.Millisecond { // a ping may be due already
			t.Errorf("answered after %v", took)
		}
	})
}

// silenced is a connection on which nothing more can be sent once silent is set.
type silenced struct {
	net.Conn
	silent *atomic.Bool
}

func (s *silenced) Write(b []byte) (int, error) {
	if s.silent.Load() {
		return len(b), nil
	}
	return s.Conn.Write(b)
}

// If a session ends while it is being opened, the caller is not told that a session has
// ended: it has had none.
func TestSessionEndsWhileOpened(t *testing.T) {
	b := open(t, Options{Dialer: fakeServer(func(xid, _ int, _ string) []byte { return reply(xid, codeSessionExpired, 7) })})
	if _, err := b.Session(t.Context()); !errors.Is(err, backend.ErrUnavailable) || errors.Is(err, backend.ErrSessionEnded) {
		t.Error(err)
	}
}

// Once the counter stays at its largest number, the number of the next member is taken
// already, and Join fails.
func TestJoinAfterLastNumber(t *testing.T) {
	b := open(t, Options{Dialer: fakeServer(func(xid, op int, _ string) []byte {
		if op == opCreate {
			return reply(xid, codeNodeExists, 7)
		}
		return multiOK(xid)
	})})
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Join(t.Context(), "e", "", ""); !errors.Is(err, backend.ErrLine) || !strings.Contains(err.Error(), "begin at 0 again") {
		t.Error(err)
	}
}

// A server that did not ask for the client's certificate knows nobody to whom znodes could
// belong.
func TestServerKnowsNobody(t *testing.T) {
	b := open(t, Options{Auth: &Digest{User: "u"}, Dialer: fakeServer(func(xid, op int, _ string) []byte {
		if op == opCreate {
			return reply(xid, -114, 7) // INVALIDACL
		}
		return multiOK(xid)
	})})
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Join(t.Context(), "e", "", ""); !errors.Is(err, backend.ErrDenied) || !strings.Contains(err.Error(), "ssl.clientAuth") {
		t.Error(err)
	}
}

// A server that throttles has not carried the request out: it is sent again.
func TestThrottled(t *testing.T) {
	var mu sync.Mutex
	opened := false
	count := make(map[int]int)
	b := open(t, Options{Dialer: fakeServer(func(xid, op int, path string) []byte {
		mu.Lock()
		defer mu.Unlock()
		if !opened {
			opened = true
			return multiOK(xid)
		}
		if count[op]++; count[op] == 1 {
			return reply(xid, wire.CodeThrottled, 7)
		}
		switch {
		case op == opCreate:
			return reply(xid, 0, 7, "/e/n_0000000000")
		case op == opExists && path == "/e":
			return reply(xid, 0, 7, stats(1, 0)...)
		case op == opExists:
			return reply(xid, 0, 7, stats(7, 5)...)
		case op == opMulti:
			return multiOK(xid)
		}
		return reply(xid, codeNoNode, 7)
	})})
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.Join(t.Context(), "e", "", "")
	if err != nil || m.Key != "n_0000000000" || m.Position != 7 {
		t.Errorf("joined %+v, %v", m, err)
	}
	if r, err := s.Get(t.Context(), "r"); err != nil || r.Version != backend.Absent {
		t.Errorf("got %+v, %v", r, err)
	}
	mu.Lock()
	defer mu.Unlock()
	if count[opCreate] != 2 || count[opMulti] < 2 {
		t.Errorf("requests %v, want 2 creates, and a barrier that was repeated", count)
	}
}

type several []error

func (s several) Error() string { return errors.Join(s...).Error() }

// Who counts deletions without a pause prevents a write on condition. The error says what does.
func TestCountThatNeverRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opened := false
		b := open(t, Options{Dialer: fakeServer(func(xid, op int, path string) []byte {
			switch {
			case op == opMulti && !opened:
				opened = true
				return multiOK(xid)
			case op == opMulti:
				return reply(xid, 0, 7, -1, false, 0, 0, -1, false, codeBadVersion, codeBadVersion, -1, true, -1)
			case op == opExists:
				return reply(xid, 0, 7, stats(5, 0)...)
			}
			return reply(xid, 0, 7, append([]any{"x"}, stats(6, 0)...)...)
		})})
		s, err := b.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for what, write := range map[string]func(context.Context) error{
			"Put":    func(ctx context.Context) error { _, err := s.Put(ctx, "d/r", nil, &backend.If{Version: 6}); return err },
			"Delete": func(ctx context.Context) error { return s.Delete(ctx, "d/r", &backend.If{Version: 6}) },
		} {
			for _, cause := range []error{errors.New("told to end"), several{errors.New("of a type that cannot be compared")}} {
				ctx, cancel := context.WithTimeoutCause(t.Context(), second, cause)
				if err := write(ctx); err == nil || !strings.Contains(err.Error(), cause.Error()) || !strings.Contains(err.Error(), "/d/~deletions has changed") {
					t.Errorf("%s: %v", what, err)
				}
				cancel()
			}
		}
	})
}

// An item may be gone before its session has read its position: it was appended nevertheless.
func TestAppendAndRemovedAtOnce(t *testing.T) {
	b := open(t, Options{Dialer: fakeServer(func(xid, op int, _ string) []byte {
		switch op {
		case opCreate:
			return reply(xid, 0, 7, "/q/n_0000000003")
		case opMulti:
			return multiOK(xid)
		}
		return reply(xid, codeNoNode, 7)
	})})
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := backend.Member{Line: "q", Key: "n_0000000003", Value: "v", Pinned: true}
	if m, err := s.Append(t.Context(), "q", "v"); err != nil || m != want {
		t.Errorf("%+v, %v; want %+v", m, err, want)
	}
}

// Heartbeats wait for no answer to anything else.
func TestHeartbeatBeforeAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		asked, beats := 0, 0
		b := open(t, Options{Dialer: fakeServer(func(xid, op int, path string) []byte {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case op == opMulti:
				beats++
				return multiOK(xid)
			case path == "/slow":
				asked++
				return nil
			}
			return reply(xid, codeNoNode, 7)
		})})
		opened, err := b.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s := b.sessions.Newest().(*session)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range 2 * maxTurns {
			go opened.Get(ctx, "slow")
		}
		synctest.Wait()
		mu.Lock()
		if asked != maxTurns {
			t.Errorf("%d requests are on their way, want %d", asked, maxTurns)
		}
		before := beats
		mu.Unlock()
		soon, enough := context.WithTimeout(ctx, second)
		defer enough()
		if err := s.beat(soon, []string{"/e/n_0000000000"}); err != nil {
			t.Error(err)
		}
		if beats == before {
			t.Error("no heartbeat has arrived")
		}
	})
}

// A guarded write takes two round trips: the member and the record are read at the same time.
func TestGuardedWriteReadsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var held []byte // the answer to the first read, until the second has come
		written := false
		b := open(t, Options{Dialer: fakeServer(func(xid, op int, path string) []byte {
			switch {
			case op == opMulti && held == nil:
				return multiOK(xid)
			case op == opMulti:
				written = true
				answer := append([]any{13, false, 0, 5, false, 0}, stats(8, 0)...)
				return reply(xid, 0, 8, append(answer, -1, true, -1)...)
			}
			a := reply(xid, 0, 7, append([]any{"x"}, stats(7, 5)...)...)
			if held == nil {
				held = a
				return nil
			}
			return append(held, a...)
		})})
		s, err := b.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		m := backend.Member{Line: "e", Key: "n_0000000000", Position: 7}
		if v, err := s.Put(t.Context(), "r", []byte("y"), &backend.If{Member: m}); err != nil || v != 8 || !written {
			t.Errorf("version %d, %v; want 8", v, err)
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("the second read has waited for the answer to the first: %v", took)
		}
	})
}

// Whoever may write to the count of deletions can have each write on condition be refused. It is tried again with pauses, until its context ends.
func TestCountMovesAllTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opened, writes := false, 0
		b := open(t, Options{Dialer: fakeServer(func(xid, op int, path string) []byte {
			switch {
			case op == opMulti && !opened:
				opened = true
				return multiOK(xid)
			case op == opMulti:
				writes++
				return reply(xid, 0, 8, -1, false, 0, 0, -1, false, codeBadVersion, codeBadVersion, -1, true, -1)
			case op == opExists:
				return reply(xid, 0, 7, stats(5, 0)...)
			}
			return reply(xid, 0, 7, append([]any{"x"}, stats(7, 5)...)...)
		})})
		s, err := b.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), s.TTL())
		defer cancel()
		_, err = s.Put(ctx, "r", []byte("y"), &backend.If{Version: 7})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		if most := int(time.Since(begin) / time.Millisecond); writes > most || writes < 100 {
			t.Errorf("in %v it was sent %d times, want at most %d", time.Since(begin), writes, most)
		}
	})
}

// An answer may need longer than a server may be silent for.
func TestLongAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		value := strings.Repeat("x", backend.MaxRecord)
		answers := fakeServer(func(xid, op int, path string) []byte {
			if op == opMulti {
				return multiOK(xid)
			}
			return reply(xid, 0, 7, append([]any{value}, stats(7, 0)...)...)
		})
		dials := 0
		b := open(t, Options{TTL: 10 * second, Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials++
			conn, err := answers(ctx, network, addr)
			return &slow{conn}, err
		}})
		s, err := b.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 30*second)
		defer cancel()
		r, err := s.Get(ctx, "r")
		if err != nil || string(r.Value) != value || dials != 1 {
			t.Errorf("%d bytes, %v, after %d connections", len(r.Value), err, dials)
		}
		if took := time.Since(begin); took < 5*second {
			t.Errorf("it took %v, which is not longer than a server may be silent for", took)
		}
	})
}

// slow is a connection on which a long read takes its time.
type slow struct{ net.Conn }

func (s *slow) Read(b []byte) (int, error) {
	if len(b) > 16<<10 {
		b = b[:16<<10]
		time.Sleep(second / 2)
	}
	return s.Conn.Read(b)
}
