package wire

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/clock"
)

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

func connectRequest(session int64) []byte {
	return frame(0, int64(0), 10_000, session, "................")
}

func connectResponse(session int64, ttl time.Duration) []byte {
	return frame(0, int(ttl.Milliseconds()), session, "................")
}

func reply(xid, code int, zxid int64, body ...any) []byte {
	return frame(append([]any{xid, zxid, code}, body...)...)
}

// A rig is both ends of one connection of a link: what the library writes and
// reads, and what the server does.
type rig struct {
	t      *testing.T
	link   *Link
	client net.Conn // the wire
	server net.Conn
}

// newRig connects without a handshake.
func newRig(t *testing.T, l *Link) *rig {
	t.Helper()
	var server net.Conn
	l.dialer = func(context.Context, string, string) (c net.Conn, err error) {
		c, server = net.Pipe()
		return c, nil
	}
	client, err := l.Dial("tcp", "server:2181", 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); server.Close() })
	return &rig{t, l, client, server}
}

func testLink(t *testing.T) *Link {
	l := New(Config{TTL: 10 * time.Second, Connect: 4 * time.Second}, new(Zxids))
	l.servers = []string{"server:2181"}
	t.Cleanup(func() { l.Kill(errors.New("end of test")) })
	return l
}

// send lets the library write a frame, and the server read it.
func (r *rig) send(b []byte) {
	r.t.Helper()
	done := make(chan error, 1)
	go func() {
		got := make([]byte, len(b))
		_, err := io.ReadFull(r.server, got)
		done <- err
	}()
	if _, err := r.client.Write(b); err != nil {
		r.t.Fatal(err)
	}
	if err := <-done; err != nil {
		r.t.Fatal(err)
	}
}

// answer lets the server write a frame, and the library read it, in pieces.
func (r *rig) answer(b []byte) error {
	r.t.Helper()
	go r.server.Write(b)
	got := make([]byte, len(b))
	if _, err := io.ReadFull(r.client, got[:4]); err != nil {
		return err
	}
	if _, err := io.ReadFull(r.client, got[4:]); err != nil {
		return err
	}
	if !bytes.Equal(got, b) {
		r.t.Fatalf("delivered %x, want %x", got, b)
	}
	return nil
}

func (r *rig) handshake(ask, session int64, ttl time.Duration) error {
	r.t.Helper()
	r.send(connectRequest(ask))
	return r.answer(connectResponse(session, ttl))
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// left checks how much of the lease is left.
func (r *rig) left(want time.Duration) {
	r.t.Helper()
	// The clock that counts suspension is not the bubble's: it adds what the test
	// really takes.
	if got := r.link.Lease.Left(); got > want || got < want-100*time.Millisecond {
		r.t.Errorf("lease: %v left, want %v", got, want)
	}
}

const second = time.Second

func multiRequest(xid int) []byte { return frame(xid, opMulti, 13, false, -1, "/e/n_0000000000", -1) }
func multiOK(xid int) []byte      { return reply(xid, 0, 7, 13, false, 0, -1, true, -1) }

func TestLeaseCountsFromSending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, testLink(t))
		r.send(connectRequest(0))
		time.Sleep(second)
		r.must(r.answer(connectResponse(5, 8*second)))
		r.left(-1) // a handshake alone proves nothing

		r.send(multiRequest(1))
		time.Sleep(second)
		r.must(r.answer(multiOK(1)))
		r.left(6 * second) // from the connect request, with the granted 8 s

		// A write sent at 3.5 s gains nothing: what was answered since the connect
		// request was answered less than 0.3 of 8 s before.
		r.send(frame(-2, 11))
		time.Sleep(second)
		r.must(r.answer(reply(-2, 0, 7)))
		time.Sleep(500 * time.Millisecond)
		r.send(multiRequest(2))
		r.must(r.answer(multiOK(2)))
		r.left(4500 * time.Millisecond)

		// One sent at 4.5 s: the first write had been answered 2.5 s before, so it
		// counts from when that was sent, at 1 s, however late the answer is.
		time.Sleep(second)
		r.send(multiRequest(3))
		time.Sleep(1500 * time.Millisecond)
		r.must(r.answer(frame(xidEvent, int64(-1), 0, eventDeleted, 3, "/other"))) // the connection is not silent
		time.Sleep(1500 * time.Millisecond)
		r.must(r.answer(multiOK(3)))
		r.left(1500 * time.Millisecond) // 1 + 8 - 7.5

		// One sent at 8 s: the write sent at 4.5 s was answered at 7.5 s, which is
		// too late. That of 3.5 s counts.
		time.Sleep(500 * time.Millisecond)
		r.send(multiRequest(4))
		r.must(r.answer(multiOK(4)))
		r.left(3500 * time.Millisecond)
	})
}

// With sessions of two ticks, the shortest by default, the leader of the ensemble asks each
// server every quarter of a session, and may be late.
func TestRelayHasSlack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, testLink(t))
		r.must(r.handshake(0, 5, 8*second)) // ticks of 4 s
		time.Sleep(second)
		r.send(multiRequest(1))
		r.must(r.answer(multiOK(1)))
		time.Sleep(2300 * time.Millisecond)
		r.send(multiRequest(2))
		r.must(r.answer(multiOK(2)))
		r.left(4700 * time.Millisecond) // from the connect request: 8 - 3.3
		time.Sleep(200 * time.Millisecond)
		r.send(multiRequest(3))
		r.must(r.answer(multiOK(3)))
		r.left(5500 * time.Millisecond) // from the first write: 1 + 8 - 3.5
	})
}

func TestLeaseNeedsQuorumWrite(t *testing.T) {
	for _, test := range []struct {
		name    string
		request []byte
		answer  []byte
		proves  bool
	}{
		{"ping", frame(-2, 11), reply(-2, 0, 7), false},
		{"read", frame(1, opGetData, "/e", false), reply(1, 0, 7, "", "stat"), false},
		{"sync", frame(1, 9, "/e"), reply(1, 0, 7, "/e"), false},
		{"multi", multiRequest(1), multiOK(1), true},
		{"multi that fails", multiRequest(1), reply(1, 0, 7, -1, false, codeNoNode, codeNoNode, -1, true, -1), true},
		{"multi, code in the header", multiRequest(1), reply(1, codeNoNode, 7), true},
		{"multi, session moved", multiRequest(1), reply(1, codeSessionMoved, 7), false},
		{"multi, session moved within", multiRequest(1), reply(1, 0, 7, -1, false, 0, codeSessionMoved, -1, true, -1), false},
		{"create", frame(1, opCreate, "/e"), reply(1, 0, 7, "/e"), true},
		{"create that fails", frame(1, opCreate, "/e"), reply(1, codeNodeExists, 7), false},
		{"delete", frame(1, opDelete, "/e", -1), reply(1, 0, 7), true},
		{"answer to nothing", frame(-2, 11), reply(9, 0, 7), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, testLink(t))
			r.must(r.handshake(0, 5, 8*second))
			r.send(test.request)
			r.must(r.answer(test.answer))
			if got := r.link.Lease.Left() > 0; got != test.proves {
				t.Errorf("deadline ahead: %v, want %v", got, test.proves)
			}
		})
	}
}

// A server that is behind what the session has been told must not be taken, be it by an answer,
// by a ping, or by a notice.
func TestConnectRequestHasHighestZxid(t *testing.T) {
	for name, heard := range map[string][]byte{
		"answer": reply(9, 0, 11),
		"ping":   reply(xidPing, 0, 11),
		"notice": frame(xidEvent, int64(11), 0, eventDeleted, 3, "/e/n_0000000000"),
	} {
		t.Run(name, func(t *testing.T) {
			l := testLink(t)
			r := newRig(t, l)
			r.must(r.handshake(0, 5, 8*second))
			r.must(r.answer(heard))
			r.must(r.answer(frame(xidEvent, int64(-1), 0, eventDeleted, 3, "/e/n_0000000001"))) // as sent before 3.9
			r.client.Close()
			r = newRig(t, l)
			go r.client.Write(connectRequest(5))
			b, err := readFrame(r.server, nil, maxHandshake)
			r.must(err)
			c := cursor{b: b[8:]}
			if zxid := c.int64(); zxid != 11 {
				t.Errorf("the session has seen zxid 11 and says %d", zxid)
			}
		})
	}
}

// A later connection of the session may be granted a shorter timeout, which then counts.
func TestLeaseTakesShorterTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := testLink(t)
		r := newRig(t, l)
		r.must(r.handshake(0, 5, 8*second))
		r.send(multiRequest(1))
		r.must(r.answer(multiOK(1)))
		r.left(8 * second)
		r.client.Close()
		if _, err := r.client.Read(make([]byte, 1)); err == nil {
			t.Fatal("read from a closed connection")
		}
		time.Sleep(second)
		r = newRig(t, l)
		r.must(r.handshake(5, 5, 4*second))
		r.left(4 * second)
	})
}

// Once there is a session, the link carries no other one. When another one is offered, the
// link ends and carries nothing more.
func TestWireCarriesOneSession(t *testing.T) {
	for name, fault := range map[string]func(*rig) error{
		"ended":               func(r *rig) error { return r.handshake(5, 0, 0) },
		"another":             func(r *rig) error { return r.handshake(5, 6, 8*second) },
		"expired":             expired(reply(1, codeSessionExpired, 7)),
		"expired, in a multi": expired(reply(1, 0, 7, -1, false, 0, codeSessionExpired, -1, true, -1)),
	} {
		t.Run(name, func(t *testing.T) {
			l := testLink(t)
			r := newRig(t, l)
			r.must(r.handshake(0, 5, 8*second))
			r.client.Close()
			r = newRig(t, l)
			if err := fault(r); err == nil {
				t.Error("the answer was delivered")
			}
			if err := l.Ended(); !errors.Is(err, backend.ErrSessionEnded) || !l.over.Load() {
				t.Errorf("link ended: %v, over: %v", err, l.over.Load())
			}
			r.client.Write(multiRequest(9))
			if n, _ := io.Copy(io.Discard, r.server); n > 0 {
				t.Error("a write after the end")
			}
			r.client.(*wire).Conn.SetDeadline(time.Now().Add(second))
			if _, err := r.client.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("a read after the end")
			}
			if _, err := l.Dial("tcp", "server:2181", 0); !errors.Is(err, backend.ErrSessionEnded) {
				t.Errorf("a dial after the end: %v", err)
			}
		})
	}
	l := testLink(t)
	r := newRig(t, l)
	r.must(r.handshake(0, 5, 8*second))
	r.client.Close()
	r = newRig(t, l)
	if _, err := r.client.Write(connectRequest(0)); err == nil {
		t.Error("a request for a new session went out")
	}
}

func expired(answer []byte) func(*rig) error {
	return func(r *rig) error {
		if err := r.handshake(5, 5, 8*second); err != nil {
			return err
		}
		r.send(multiRequest(1))
		return r.answer(answer)
	}
}

// Once requests are sent, the library learns of a write that fails from its next read
// alone.
func TestWireFailsByReading(t *testing.T) {
	r := newRig(t, testLink(t))
	r.must(r.handshake(0, 5, 8*second))
	r.server.Close()
	if n, err := r.client.Write(multiRequest(1)); n != len(multiRequest(1)) || err != nil {
		t.Errorf("write: %d, %v", n, err)
	}
	if _, err := r.client.Read(make([]byte, 1)); err == nil {
		t.Error("read from a connection on which a write has failed")
	}
}

// A silent server is given up, whatever deadlines the library sets.
func TestHandshakeDeadline(t *testing.T) {
	for name, part := range map[string]int{"nothing": 0, "half a length": 2, "half an answer": 20} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, testLink(t))
				r.send(connectRequest(0))
				r.client.SetReadDeadline(time.Now().Add(time.Hour))
				go r.server.Write(connectResponse(5, second)[:part])
				begin := time.Now()
				if _, err := io.ReadFull(r.client, make([]byte, 8)); err == nil {
					t.Error("read an answer")
				}
				if took := time.Since(begin); took > 2*time.Second { // half of 4 s
					t.Errorf("gave up after %v", took)
				}
			})
		})
	}
}

func TestWireRefusesStrangers(t *testing.T) {
	for name, answer := range map[string]string{
		"web server": "HTTP/1.1 400 Bad Request\r\n\r\n",
		"short":      "\x00\x00\x00\x04\x00\x00\x00\x00",
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, testLink(t))
			r.send(connectRequest(0))
			if err := r.answer([]byte(answer)); !errors.Is(err, errFrame) {
				t.Error(err)
			}
		})
	}
}

// When a connection breaks, every watch that is armed gets an event first.
func TestBrokenWireEndsWatches(t *testing.T) {
	r := newRig(t, testLink(t))
	r.must(r.handshake(0, 5, 8*second))
	for _, q := range [][2][]byte{
		{frame(1, opGetData, "/armed", true), reply(1, 0, 7, "", "stat")},
		{frame(2, opGetData, "/missing", true), reply(2, codeNoNode, 7)},
		{frame(3, opExists, "/created", true), reply(3, codeNoNode, 7)},
		{frame(4, opExists, "/there", true), reply(4, 0, 7)},
		{frame(5, opChildren2, "/parent", true), reply(5, 0, 7)},
		{frame(6, opGetData, "/unwatched", false), reply(6, 0, 7)},
		{frame(7, opGetData, "/fired", true), reply(7, 0, 7)},
	} {
		r.send(q[0])
		r.must(r.answer(q[1]))
	}
	r.must(r.answer(frame(xidEvent, int64(-1), 0, eventDeleted, 3, "/fired")))
	r.server.Close()
	var got []string
	in := r.client
	for {
		b, err := readFrame(in, nil, MaxFrame)
		if err != nil {
			break
		}
		h, body, err := parseReply(b)
		r.must(err)
		kind, path, err := parseEvent(body)
		r.must(err)
		if h.xid != xidEvent {
			t.Errorf("xid %d", h.xid)
		}
		got = append(got, path+" "+map[int32]string{eventCreated: "created", eventDataChanged: "data", eventChildrenChanged: "children"}[kind])
	}
	slices.Sort(got)
	want := []string{"/armed data", "/created created", "/parent children", "/there data"}
	if !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
}

func TestTouches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := clock.Now()
		ts := touches{relay: 4 * second, connect: begin}
		at := func(want time.Duration) {
			t.Helper()
			got := ts.anchor(clock.Now()).Sub(begin)
			if got < want || got > want+100*time.Millisecond {
				t.Errorf("at %v: anchor %v, want %v", clock.Since(begin), got, want)
			}
		}
		for range 200 { // far more than the list holds
			now := clock.Now()
			time.Sleep(100 * time.Millisecond)
			ts.answered(now, clock.Now())
		}
		if len(ts.list) > maxTouches {
			t.Errorf("%d touches", len(ts.list))
		}
		// Touches are half a second apart.
		now := clock.Now()
		if age := now.Sub(ts.anchor(now)); age < 4*second || age > 5*second {
			t.Errorf("the anchor is %v old, want the newest touch of at least 4s", age)
		}
		time.Sleep(time.Minute)
		at(19900*time.Millisecond - 500*time.Millisecond + 100*time.Millisecond)
	})
}

// On a reconnect a silent server is given up soon, as the session has little time. Once every
// server has been tried, each gets longer.
func TestSilenceOnReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := testLink(t)
		r := newRig(t, l)
		r.must(r.handshake(0, 5, 8*second))
		for i, want := range []time.Duration{second, 2 * second, 2 * second} { // half of 4 s
			l.down(r.client.(*wire), errors.New("lost"))
			r.client.Close()
			r = newRig(t, l)
			r.send(connectRequest(5))
			begin := time.Now()
			if _, err := r.client.Read(make([]byte, 8)); err == nil {
				t.Error("read an answer")
			}
			if took := time.Since(begin); took != want {
				t.Errorf("dial %d: gave up after %v, want %v", i, took, want)
			}
		}
	})
}

// A connection on which an answer is due, and nothing has come for a quarter of the session time,
// is broken. One on which nothing is due may be silent.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, testLink(t))
		r.must(r.handshake(0, 5, 8*second))
		time.Sleep(time.Hour)
		r.send(frame(1, opGetData, "/e", false))
		r.send(frame(xidPing, 11))
		time.Sleep(1900 * time.Millisecond)
		r.must(r.answer(reply(xidPing, 0, 7)))
		time.Sleep(1900 * time.Millisecond)
		r.must(r.answer(reply(1, 0, 7)))
		time.Sleep(time.Hour)
		r.send(multiRequest(2))
		begin := time.Now()
		if _, err := r.client.Read(make([]byte, 8)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(err)
		}
		if took := time.Since(begin); took != 2*second {
			t.Errorf("silence was noticed after %v", took)
		}
	})
}

// A server may send anything. A frame is what was sent, and no longer than is taken; what is read of one is read the same of one that
// says it again.
func FuzzFrames(f *testing.F) {
	f.Add(multiOK(1))
	f.Add(frame(xidEvent, int64(-1), 0, eventDeleted, 3, "/x"))
	f.Add(connectResponse(5, second))
	f.Fuzz(func(t *testing.T, b []byte) {
		frame, err := readFrame(bytes.NewReader(b), nil, maxHandshake)
		if err != nil {
			return
		}
		if !bytes.HasPrefix(b, frame) || len(frame) > 4+maxHandshake {
			t.Fatalf("of %d bytes a frame of %d is read", len(b), len(frame))
		}
		if h, err := parseConnectResponse(frame); err == nil {
			if again, err := parseConnectResponse(connectResponse(h.session, time.Duration(h.timeout)*time.Millisecond)); err != nil || again != h {
				t.Errorf("%+v is read again as %+v, %v", h, again, err)
			}
		}
		if h, err := parseConnectRequest(frame); err != nil && h.session != 0 && !errors.Is(err, errFrame) {
			t.Error(err)
		}
		if _, r, err := parseRequest(frame); err == nil && len(r.path) > len(frame) {
			t.Errorf("a path of %d bytes in a frame of %d", len(r.path), len(frame))
		}
		_, body, err := parseReply(frame)
		if err != nil {
			return
		}
		if code := multiCode(body); code != 0 && code != codeSessionExpired && code != codeSessionMoved {
			t.Errorf("a multi says %d", code)
		}
		if kind, path, err := parseEvent(body); err == nil {
			for _, k := range fires(kind) {
				_, again, err := parseReply(appendEvent(nil, WatchKey{path, k}))
				if err != nil {
					t.Fatal(err)
				}
				if kind2, path2, err := parseEvent(again); err != nil || path2 != path || !slices.Contains(fires(kind2), k) {
					t.Errorf("event %d of %q is read again as %d of %q, %v", kind, path, kind2, path2, err)
				}
			}
		}
	})
}
