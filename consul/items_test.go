package consul_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/consul"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

func appendItem(t *testing.T, s backend.Session, line, value string) backend.Member {
	t.Helper()
	m, err := s.Append(t.Context(), line, value)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The request of an Append that was given up may arrive at any time. It takes effect once, and
// not when the session has ended.
func TestLateAppend(t *testing.T) {
	t.Parallel()
	addr, name := server(t), coordtest.Name(t)
	b := open(t, addr, nil)
	var held []byte // of a request that has not arrived; only Append below sends transactions
	consul.Tap(b, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		if kindOf(req) != "PUT /v1/txn" {
			return next.RoundTrip(req)
		}
		var err error
		if held, err = io.ReadAll(req.Body); err == nil {
			err = errors.New("it is on its way")
		}
		return nil, err
	})
	s := sessionOf(t, b)
	transport := newTransport(t)
	arrives := func(request []byte) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+addr+"/v1/txn", bytes.NewReader(request))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	giveUp := func() []byte {
		t.Helper()
		if m, err := s.Append(t.Context(), name, "late"); !errors.Is(err, backend.ErrUnavailable) {
			t.Fatalf("Append without an answer returned %+v, %v, want ErrUnavailable", m, err)
		}
		return held
	}
	during, after := giveUp(), giveUp()
	for range 2 {
		arrives(during)
		if keys := members(t, addr, name); len(keys) != 1 {
			t.Errorf("the line has %q, want one item", keys)
		}
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	arrives(after)
	l, err := session(t, addr, nil).Line(t.Context(), name)
	if err != nil || len(l.Members) != 1 || !l.Members[0].Pinned || l.Members[0].Value != "late" {
		t.Errorf("after the end of the session the line is %+v, %v, want one item", l.Members, err)
	}
}

// Pin changes the entries of what is to be removed, and of its guard.
func TestRemovePinned(t *testing.T) {
	t.Parallel()
	addr, name := server(t), coordtest.Name(t)
	s, other := session(t, addr, nil), session(t, addr, nil)
	guard := join(t, s, name+"-guard", "")
	for _, by := range []backend.Session{s, other} {
		m := join(t, s, name, "")
		if err := by.Remove(t.Context(), m, guard); !errors.Is(err, backend.ErrDenied) {
			t.Errorf("Remove of a member that is not pinned returned %v, want ErrDenied", err)
		}
		if err := s.Pin(t.Context(), m, backend.Header{}, 0); err != nil {
			t.Fatal(err)
		}
		if err := by.Remove(t.Context(), m, guard); err != nil {
			t.Errorf("Remove of a member that was pinned returned %v", err)
		}
	}
	item := appendItem(t, s, name, "")
	if err := s.Pin(t.Context(), guard, backend.Header{}, 0); err != nil {
		t.Fatal(err)
	}
	if err := other.Remove(t.Context(), item, guard); err != nil {
		t.Errorf("Remove by a member that was pinned returned %v", err)
	}
	item = appendItem(t, s, name, "")
	if err := other.Remove(t.Context(), item, item); err != nil {
		t.Errorf("Remove of an item while it stands itself returned %v", err)
	}
	if err := other.Remove(t.Context(), item, item); !errors.Is(err, backend.ErrNotMember) {
		t.Errorf("Remove of an item while it stands itself, again, returned %v, want ErrNotMember", err)
	}
	if keys := members(t, addr, name); len(keys) > 0 {
		t.Errorf("the line has %q, want nobody", keys)
	}
}

// A pin wakes who watches the line, and is not what WatchLine waits for.
func TestWatchLinePinned(t *testing.T) {
	t.Parallel()
	addr, name := server(t), coordtest.Name(t)
	s := session(t, addr, nil)
	m := join(t, s, name, "")

	b := open(t, addr, nil)
	queries := make(chan struct{}, 100)
	consul.OnRequest(b, func(req *http.Request) {
		if kindOf(req) == "query" {
			queries <- struct{}{}
		}
	})
	watches := sessionOf(t, b)
	before, err := watches.Line(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	type result struct {
		l   backend.Line
		err error
	}
	changed := make(chan result, 1)
	go func() {
		l, err := watches.WatchLine(t.Context(), name, before)
		changed <- result{l, err}
	}()
	<-queries
	if err := s.Pin(t.Context(), m, backend.Header{Fence: 7}, backend.Absent); err != nil {
		t.Fatal(err)
	}
	select {
	case <-queries: // it goes on waiting
	case r := <-changed:
		t.Fatalf("WatchLine returned %+v, %v after a pin", r.l, r.err)
	}
	last := join(t, s, name, "last")
	r := <-changed
	if r.err != nil || len(r.l.Members) != 2 || r.l.Members[1] != last || !r.l.Members[0].Pinned || r.l.Header.Fence != 7 {
		t.Errorf("WatchLine returned %+v, %v, want one that is pinned and %+v, with the header", r.l, r.err, last)
	}
}
