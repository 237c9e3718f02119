package consul_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/conformance/proxy"
	"github.com/succession-dev/succession/consul"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// A meter counts what clients send through a proxy, and what they receive.
type meter struct {
	*proxy.Proxy
	requests atomic.Int64
}

func newMeter(t *testing.T, addr string) *meter { return &meter{Proxy: coordtest.NewProxy(t, addr)} }

// session returns a session that sends nothing by itself while the test runs.
func (m *meter) session(t *testing.T) backend.Session {
	t.Helper()
	b := open(t, m.Addr(), &consul.Options{TTL: time.Hour})
	consul.OnRequest(b, func(*http.Request) { m.requests.Add(1) })
	return sessionOf(t, b)
}

// A spent is what something costs.
type spent struct{ requests, bytes int64 }

func (m *meter) read() spent {
	s := m.Stats()
	return spent{m.requests.Load(), s.ToServer + s.ToClient}
}

func (s spent) since(o spent) spent { return spent{s.requests - o.requests, s.bytes - o.bytes} }

// A handover costs two requests, to leave and to look, and the same bytes in a line of 200 as in a line of two, also if nobody has
// looked since all joined.
func TestHandoverCostsTheSameInALongLine(t *testing.T) {
	t.Parallel()
	// costs returns the most requests of a handover while the line of n drains, and the
	// median of the bytes while it is longest: now and then an answer of before is counted too.
	costs := func(t *testing.T, n int) spent {
		m := newMeter(t, server(t))
		name := coordtest.Name(t)
		sessions := []backend.Session{m.session(t), m.session(t), m.session(t)}
		of := func(i int) backend.Session { return sessions[i%len(sessions)] }
		var line []backend.Member
		for i := range n {
			line = append(line, join(t, of(i), name, fmt.Sprint(i)))
			p, err := of(i).Ahead(t.Context(), line[i])
			if err != nil || p.First != (i == 0) || i > 0 && p.Ahead != line[i-1] {
				t.Fatalf("%d stands at %+v, %v", i, p, err)
			}
		}
		var most spent
		var bytes []int64
		for i := range n - 1 {
			gone := make(chan error, 1)
			watching := m.read()
			go func() { gone <- of(i+1).Gone(t.Context(), line[i]) }()
			for m.read().since(watching).requests == 0 {
				time.Sleep(time.Millisecond)
			}
			before := m.read()
			if err := of(i).Leave(t.Context(), line[i]); err != nil {
				t.Fatal(err)
			}
			if err := <-gone; err != nil {
				t.Fatal(err)
			}
			p, err := of(i+1).Ahead(t.Context(), line[i+1])
			if err != nil || !p.First || p.Token != line[i+1].Position {
				t.Fatalf("after %d have left the next stands at %+v, %v", i+1, p, err)
			}
			spent := m.read().since(before)
			most.requests = max(most.requests, spent.requests)
			bytes = append(bytes, spent.bytes)
		}
		bytes = bytes[:min(len(bytes), 21)]
		slices.Sort(bytes)
		most.bytes = bytes[len(bytes)/2]
		return most
	}
	two, many := costs(t, 2), costs(t, 200)
	t.Logf("a handover takes %d requests and %d bytes in a line of 2, %d and %d in a line of 200", two.requests, two.bytes, many.requests, many.bytes)
	if two.requests > 2 || many.requests > 2 || many.bytes > two.bytes+3<<10 {
		t.Errorf("a handover takes %+v in a line of 2, and up to %+v in a line of 200", two, many)
	}
}

// What Ahead knows from earlier must lead to the same answer as the whole line does. Members
// join and go at random, in every way in which they can, and some look rarely.
func TestAheadAgreesWithTheLine(t *testing.T) {
	t.Parallel()
	addr, o := server(t), &consul.Options{TTL: time.Hour}
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 0))
			name, operator := coordtest.Name(t), admin(t, addr).KV()
			type entry struct {
				backend.Member
				s backend.Session
			}
			sessions := []backend.Session{session(t, addr, o), session(t, addr, o), session(t, addr, o)}
			reader := session(t, addr, o)
			shares := seed%2 == 1
			var fence uint64
			var line []entry // may have some that have gone
			for step := range 200 {
				s := random.IntN(len(sessions))
				switch act := random.IntN(40); {
				case len(line) < 4 || act < 14 && len(line) < 25:
					add := sessions[s].Join
					if shares && random.IntN(2) == 0 {
						add = sessions[s].JoinShared
					}
					m, err := add(t.Context(), name, fmt.Sprint(step), "")
					if err != nil {
						t.Fatal(err)
					}
					line = append(line, entry{m.Member, sessions[s]})
				case act < 28: // the first leaves, or another
					i := 0
					if random.IntN(3) == 0 {
						i = random.IntN(len(line))
					}
					if err := line[i].s.Leave(t.Context(), line[i].Member); err != nil {
						t.Fatal(err)
					}
					line = slices.Delete(line, i, i+1)
				case act < 30:
					i := random.IntN(len(line))
					if _, err := operator.Delete(name+"/"+line[i].Key, nil); err != nil {
						t.Fatal(err)
					}
					line = slices.Delete(line, i, i+1)
				case act < 31: // a session ends
					if err := sessions[s].Close(t.Context()); err != nil {
						t.Fatal(err)
					}
					line = slices.DeleteFunc(line, func(e entry) bool { return e.s == sessions[s] })
					sessions[s] = session(t, addr, o)
				case act < 32:
					i := random.IntN(len(line))
					if err := line[i].s.Pin(t.Context(), line[i].Member, backend.Header{Fence: fence}, 0); err != nil {
						t.Fatal(err)
					}
				case act < 33:
					fence++
					if _, err := reader.Put(t.Context(), name, backend.Header{Fence: fence}.Encode(), nil); err != nil {
						t.Fatal(err)
					}
				}
				whole, err := reader.Line(t.Context(), name)
				if err != nil {
					t.Fatal(err)
				}
				head, err := reader.Head(t.Context(), name)
				if err != nil || !slices.Equal(head.Members, whole.Members[:min(len(whole.Members), 1)]) || head.Header != whole.Header || head.Version != whole.Version {
					t.Fatalf("step %d: the head is %+v, %v, and the line %+v", step, head, err, whole)
				}
				if len(line) == 0 {
					continue
				}
				// Most of the time who is first looks, as in an election.
				for _, e := range []entry{line[0], line[random.IntN(len(line))]} {
					p, err := e.s.Ahead(t.Context(), e.Member)
					want, wantErr := placeIn(whole, e.Member)
					if p != want || !errors.Is(err, wantErr) {
						t.Fatalf("step %d: %+v stands at %+v, %v; want %+v, %v", step, e.Member, p, err, want, wantErr)
					}
				}
			}
		})
	}
}

// placeIn returns where m stands according to the whole line.
func placeIn(l backend.Line, m backend.Member) (backend.Place, error) {
	i := slices.IndexFunc(l.Members, func(o backend.Member) bool { return o.Key == m.Key && o.Position == m.Position })
	if i < 0 {
		return backend.Place{}, backend.ErrNotMember
	}
	if front := kit.Awaited(i, func(i int) bool { return l.Members[i].Shared }); front >= 0 {
		return backend.Place{Ahead: l.Members[front], Header: l.Header}, nil
	}
	return backend.Place{First: true, Token: l.Token(m), Header: l.Header}, nil
}

// An observer that has seen the line once steps along it at the same cost at any length.
func TestHeadCostsTheSameInALongLine(t *testing.T) {
	t.Parallel()
	costs := func(t *testing.T, n int) spent {
		m := newMeter(t, server(t))
		name, s, observer := coordtest.Name(t), session(t, server(t), nil), m.session(t)
		var line []backend.Member
		for range n {
			line = append(line, join(t, s, name, "some value"))
		}
		if l, err := observer.Head(t.Context(), name); err != nil || len(l.Members) != 1 || l.Members[0] != line[0] {
			t.Fatalf("the head is %+v, %v", l, err)
		}
		var most spent
		for i := range min(n, 50) - 1 {
			if err := s.Leave(t.Context(), line[i]); err != nil {
				t.Fatal(err)
			}
			before := m.read()
			if l, err := observer.Head(t.Context(), name); err != nil || len(l.Members) != 1 || l.Members[0] != line[i+1] {
				t.Fatalf("the head is %+v, %v", l, err)
			}
			spent := m.read().since(before)
			most.requests, most.bytes = max(most.requests, spent.requests), max(most.bytes, spent.bytes)
		}
		return most
	}
	two, many := costs(t, 2), costs(t, 200)
	t.Logf("to see the next leader takes %+v in a line of 2, at most %+v in a line of 200", two, many)
	if two.requests > 2 || many.requests > 2 || many.bytes > two.bytes+5<<9 {
		t.Errorf("to see the next leader takes %+v in a line of 2, and up to %+v in a line of 200", two, many)
	}
}

// A mark is written only together with the exit of the leader. So a request to leave that
// comes a second time, when the member has gone, writes none.
func TestMarkOfALine(t *testing.T) {
	t.Parallel()
	addr, name := server(t), coordtest.Name(t)
	kv := admin(t, addr).KV()
	mark := func() uint64 {
		t.Helper()
		p, _, err := kv.Get(name+"~", nil)
		if err != nil {
			t.Fatal(err)
		}
		if p == nil {
			return 0
		}
		return p.Flags
	}
	b := open(t, addr, nil)
	var late []byte // the last request to leave that writes a mark
	consul.Tap(b, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		if req.Body != nil {
			body, err := io.ReadAll(req.Body)
			if err != nil {
				return nil, err
			}
			if bytes.Contains(body, []byte(`~"`)) && !req.URL.Query().Has("consistent") {
				late = body
			}
			req.Body = io.NopCloser(bytes.NewReader(body))
		}
		return next.RoundTrip(req)
	})
	first, s := session(t, addr, nil), sessionOf(t, b)
	var line []backend.Member
	for i := range 7 {
		owner := s
		if i == 5 {
			owner = first
		}
		line = append(line, join(t, owner, name, ""))
		if _, err := owner.Ahead(t.Context(), line[i]); err != nil {
			t.Fatal(err)
		}
	}
	leave := func(s backend.Session, m backend.Member) {
		t.Helper()
		if _, err := s.Ahead(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := s.Leave(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, m := range line[:4] {
		leave(s, m)
	}
	if at := mark(); at != 0 {
		t.Errorf("who has seen fewer than four in front has marked %d", at)
	}
	leave(s, line[4])
	if at := mark(); at != line[4].Position {
		t.Errorf("the mark is %d, want the position %d of the leader that has left", at, line[4].Position)
	}
	repeated := late
	leave(s, line[6]) // from behind
	if at := mark(); at != line[4].Position {
		t.Errorf("the mark is %d after one has left that was not first, want %d", at, line[4].Position)
	}
	leave(first, line[5]) // of another session, which takes the mark over
	if at := mark(); at != line[5].Position {
		t.Errorf("the mark is %d, want %d", at, line[5].Position)
	}
	req, err := http.NewRequest(http.MethodPut, "http://"+addr+"/v1/txn", bytes.NewReader(repeated))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := newTransport(t).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if at := mark(); resp.StatusCode != http.StatusConflict || at != line[5].Position {
		t.Errorf("a request to leave that came twice was answered with %s, and the mark is %d; want %d", resp.Status, at, line[5].Position)
	}
	if names, err := s.List(t.Context(), name); err != nil || len(names) != 0 {
		t.Errorf("the folder of the line has %v, %v", names, err)
	}
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if at := mark(); at != 0 {
		t.Errorf("the mark %d outlives the session that has written it", at)
	}
}

// A mark that no leader of the line has written is not believed: an import brings one from another log,
// without a session, or writes over one that stands; and a hand can lock whatever it likes.
func TestForeignMark(t *testing.T) {
	t.Parallel()
	addr := server(t)
	kv := admin(t, addr).KV()
	put := func(t *testing.T, p *api.KVPair) {
		t.Helper()
		if _, err := kv.Put(p, nil); err != nil {
			t.Fatal(err)
		}
	}
	lock := func(t *testing.T, p *api.KVPair) {
		t.Helper()
		if ok, _, err := kv.Acquire(p, nil); err != nil || !ok {
			t.Fatalf("the key could not be locked: %t, %v", ok, err)
		}
	}
	tests := map[string]func(t *testing.T, mark, session string, first backend.Member){
		"imported": func(t *testing.T, mark, _ string, first backend.Member) {
			put(t, &api.KVPair{Key: mark, Flags: 999_999_999})
		},
		"imported, with a position of this line": func(t *testing.T, mark, _ string, first backend.Member) {
			put(t, &api.KVPair{Key: mark, Flags: first.Position})
		},
		"locked by hand": func(t *testing.T, mark, session string, first backend.Member) {
			lock(t, &api.KVPair{Key: mark, Flags: 999_999_999, Session: session})
		},
		"imported over one that stands": func(t *testing.T, mark, session string, first backend.Member) {
			lock(t, &api.KVPair{Key: mark, Flags: first.Position - 1, Session: session})
			put(t, &api.KVPair{Key: mark, Flags: first.Position})
		},
	}
	for what, write := range tests {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			name, s := coordtest.Name(t), session(t, addr, nil)
			var line []backend.Member
			for range 6 {
				m := join(t, s, name, "")
				if _, err := s.Ahead(t.Context(), m); err != nil {
					t.Fatal(err)
				}
				line = append(line, m)
			}
			first, last := line[0], line[5]
			write(t, name+"~", consul.SessionID(s), first)
			for _, m := range line[1:5] {
				if err := s.Leave(t.Context(), m); err != nil {
					t.Fatal(err)
				}
			}
			if p, err := s.Ahead(t.Context(), last); err != nil || p.Ahead != first {
				t.Errorf("behind %+v stands %+v: %+v, %v", first, last, p, err)
			}
		})
	}
}

// Members that have left stand again after a restore. A session that knew who stands in
// front of its member reads the whole line again, and removes its own.
func TestRestoreMakesAheadReadTheLine(t *testing.T) {
	t.Parallel()
	c := coordtest.NewConsul(t, &coordtest.ConsulOptions{Durable: true})
	addr, name := c.Addrs()[0], coordtest.Name(t)
	b, other := open(t, addr, nil), session(t, addr, nil)
	var restored atomic.Bool
	asked, verifying, written := make(chan struct{}, 100), make(chan struct{}), make(chan struct{})
	consul.Tap(b, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		if strings.HasSuffix(req.URL.Path, "/~") && restored.CompareAndSwap(true, false) {
			close(verifying)
			<-written
		}
		if kindOf(req) == "query" {
			asked <- struct{}{}
		}
		return next.RoundTrip(req)
	})
	s := sessionOf(t, b)
	left, stays := join(t, s, name, "left"), join(t, s, name, "stays")
	if p, err := s.Ahead(t.Context(), stays); err != nil || p.Ahead != left {
		t.Fatalf("the second stands at %+v, %v", p, err)
	}
	restore := snapshot(t, admin(t, addr))
	if err := s.Leave(t.Context(), left); err != nil {
		t.Fatal(err)
	}
	if p, err := s.Ahead(t.Context(), stays); err != nil || !p.First {
		t.Fatalf("the one that stays stands at %+v, %v", p, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	gone := make(chan error, 1)
	go func() { gone <- s.Gone(ctx, stays) }()
	// A query that arrives later than the restore does not tell of it.
	<-asked
	if _, err := s.Line(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	restored.Store(true)
	restore()
	select {
	case <-verifying:
	case <-within(t, time.Minute).Done():
		t.Fatal("the restore was not noticed")
	}
	join(t, other, name+"-another", "") // overtakes the log
	close(written)
	if p, err := s.Ahead(t.Context(), stays); err != nil || p.Ahead != left {
		t.Fatalf("ahead is %+v (error: %v), want %+v, which has left", p, err, left)
	}
	if err := other.Gone(within(t, time.Minute), left); err != nil {
		t.Fatal("a member that nobody owns: ", err)
	}
	if p, err := s.Ahead(t.Context(), stays); err != nil || !p.First {
		t.Errorf("the one that stays stands at %+v, %v", p, err)
	}
	cancel()
	<-gone
}
