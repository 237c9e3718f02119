package consul_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/consul"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// A placeWatch is a call of WatchPlace under way.
type placeWatch struct {
	place backend.Place
	err   error
	done  chan struct{}
}

// watchPlace waits from where m stands now.
func watchPlace(t *testing.T, s backend.Session, m backend.Member) *placeWatch {
	t.Helper()
	after, err := s.Ahead(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	w := &placeWatch{place: after, done: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(w.done)
		w.err = s.WatchPlace(ctx, m, &w.place)
	}()
	t.Cleanup(func() {
		cancel()
		<-w.done
	})
	return w
}

// returns waits for the end of the call, which is to come within d.
func (w *placeWatch) returns(t *testing.T, d time.Duration) {
	t.Helper()
	watch := calm.Start(t)
	select {
	case <-w.done:
	case <-within(t, time.Minute).Done():
		t.Fatal("WatchPlace has not returned after a minute")
	}
	watch.Within(d, "WatchPlace")
}

// counted returns a backend whose requests are counted by kind.
func counted(t *testing.T, addr string, ttl time.Duration) (*consul.Backend, func() map[string]int) {
	t.Helper()
	b := open(t, addr, &consul.Options{TTL: ttl})
	var mu sync.Mutex
	counts := make(map[string]int)
	consul.OnRequest(b, func(req *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		counts[kindOf(req)]++
	})
	return b, func() map[string]int {
		mu.Lock()
		defer mu.Unlock()
		was := counts
		counts = make(map[string]int)
		return was
	}
}

// Waiters of one line in one session have one query among them. When one leaves, its session
// tells the next, and nobody else.
func TestWaitersOfOneSession(t *testing.T) {
	t.Parallel()
	const n, fence = 30, 1
	addr, name := server(t), coordtest.Name(t)
	b, counts := counted(t, addr, time.Hour)
	s := sessionOf(t, b)
	// The leader waits for the header's key. If there were none, Consul would wake it for the keys of other tests.
	if _, err := s.Put(t.Context(), name, backend.Header{Fence: fence}.Encode(), nil); err != nil {
		t.Fatal(err)
	}
	var line []backend.Member
	var watches []*placeWatch
	for i := range n {
		line = append(line, join(t, s, name, fmt.Sprint(i)))
	}
	for _, m := range line {
		watches = append(watches, watchPlace(t, s, m))
	}
	queries := 0
	for ; queries < 2; time.Sleep(10 * time.Millisecond) { // the heir shares that of the leader
		queries += counts()["query"]
	}
	time.Sleep(100 * time.Millisecond)
	if queries += counts()["query"]; queries > 3 {
		t.Errorf("%d waiters and the leader have %d queries, want that of the leader, its header's and that of the heir", n-1, queries)
	}
	for i := range 10 {
		counts()
		if err := s.Leave(t.Context(), line[i]); err != nil {
			t.Fatal(err)
		}
		watches[i].returns(t, time.Second)
		watches[i+1].returns(t, time.Second)
		if n := counts()["read"]; n != 1 {
			t.Errorf("a handover took %d reads, want that of the next one alone", n)
		}
		if p, err := watches[i+1].place, watches[i+1].err; err != nil || !p.First || p.Token != line[i+1].Position+fence {
			t.Fatalf("the next stands at %+v, %v", p, err)
		}
	}
	for i, w := range watches[11:] {
		select {
		case <-w.done:
			t.Errorf("the one at %d was woken: %+v, %v", 11+i, w.place, w.err)
		default:
		}
	}
}

// An operator removes members of one session: the leader, which its heir is told at once,
// and one from the middle of the line, which itself and the next are told by the guard.
func TestOperatorRemovesWaiters(t *testing.T) {
	t.Parallel()
	const ttl = 3 * ttl // for a busy machine
	addr, name := server(t), coordtest.Name(t)
	s, kv := session(t, addr, &consul.Options{TTL: ttl}), admin(t, addr).KV()
	var line []backend.Member
	for i := range 5 {
		line = append(line, join(t, s, name, fmt.Sprint(i)))
	}
	heir, removed, next := watchPlace(t, s, line[1]), watchPlace(t, s, line[2]), watchPlace(t, s, line[3])
	remove := func(m backend.Member) {
		t.Helper()
		if _, err := kv.Delete(name+"/"+m.Key, nil); err != nil {
			t.Fatal(err)
		}
	}
	remove(line[0])
	heir.returns(t, 2*time.Second)
	if heir.err != nil || !heir.place.First {
		t.Errorf("the heir stands at %+v, %v", heir.place, heir.err)
	}
	remove(line[2])
	removed.returns(t, 2*ttl)
	if !errors.Is(removed.err, backend.ErrNotMember) {
		t.Errorf("WatchPlace of who was removed returned %+v, %v, want ErrNotMember", removed.place, removed.err)
	}
	next.returns(t, ttl)
	if next.err != nil || next.place.Ahead != line[1] {
		t.Errorf("who stood behind it stands at %+v, %v", next.place, next.err)
	}
}

// A leader learns that an operator has removed it by the answer of its query alone: the one behind it
// leads after one read. So the leader does not ask again, nor finish what it asks meanwhile.
func TestLeaderBelievesTheProof(t *testing.T) {
	t.Parallel()
	addr := server(t)
	for what, before := range map[string]func(t *testing.T, s backend.Session, name string, held <-chan struct{}){
		"at rest": func(*testing.T, backend.Session, string, <-chan struct{}) {},
		"while it reads the header": func(t *testing.T, s backend.Session, name string, held <-chan struct{}) {
			if _, err := s.Put(t.Context(), name, backend.Header{Fence: 1}.Encode(), nil); err != nil {
				t.Fatal(err)
			}
			select {
			case <-held:
			case <-within(t, time.Minute).Done():
				t.Fatal("the leader does not read the header again")
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			name, b := coordtest.Name(t), open(t, addr, &consul.Options{TTL: time.Hour})
			var holding atomic.Bool
			held, asked := make(chan struct{}, 100), make(chan struct{}, 100)
			consul.Tap(b, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
				switch kind := kindOf(req); {
				case kind == "query":
					asked <- struct{}{}
				case kind != "renewal" && holding.Load():
					held <- struct{}{}
					<-req.Context().Done()
					return nil, req.Context().Err()
				}
				return next.RoundTrip(req)
			})
			s := sessionOf(t, b)
			m := join(t, s, name, "")
			w := watchPlace(t, s, m)
			<-asked
			<-asked
			holding.Store(true)
			before(t, session(t, addr, nil), name, held)
			if _, err := admin(t, addr).KV().Delete(name+"/"+m.Key, nil); err != nil {
				t.Fatal(err)
			}
			w.returns(t, 5*time.Second)
			if !errors.Is(w.err, backend.ErrNotMember) {
				t.Errorf("WatchPlace returned %+v, %v; want ErrNotMember", w.place, w.err)
			}
		})
	}
}

// The session of a leader that has gone may have gone with it. It is asked for at once.
func TestDestroyedSessionIsNoticedAtOnce(t *testing.T) {
	t.Parallel()
	addr, name := server(t), coordtest.Name(t)
	s := session(t, addr, &consul.Options{TTL: time.Hour})
	w := watchPlace(t, s, join(t, s, name, ""))
	if _, err := admin(t, addr).Session().Destroy(consul.SessionID(s), nil); err != nil {
		t.Fatal(err)
	}
	w.returns(t, 5*time.Second)
	if err := ended(t, s, 5*time.Second); !errors.Is(err, backend.ErrSessionEnded) {
		t.Error(err)
	}
}

// A query that has died unseen, and is never answered, delays a waiter by a TTL at most.
func TestDeadQuery(t *testing.T) {
	t.Parallel()
	const ttl = 3 * ttl // for a busy machine
	addr, name := server(t), coordtest.Name(t)
	b, other := open(t, addr, &consul.Options{TTL: ttl}), session(t, addr, nil)
	asked := make(chan struct{}, 10)
	consul.Tap(b, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		if kindOf(req) == "query" && strings.Contains(req.URL.Path, name) {
			asked <- struct{}{}
			<-req.Context().Done()
			return nil, req.Context().Err()
		}
		return next.RoundTrip(req)
	})
	s := sessionOf(t, b)
	first := join(t, other, name, "")
	w := watchPlace(t, s, join(t, s, name, ""))
	<-asked
	if err := other.Leave(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	w.returns(t, 2*ttl)
	if w.err != nil || !w.place.First {
		t.Errorf("the next stands at %+v, %v", w.place, w.err)
	}
}

// Who waits behind a seal learns of it when it is made, and the seal of its header.
func TestWatchPlaceOfASealedElection(t *testing.T) {
	t.Parallel()
	addr, name := server(t), coordtest.Name(t)
	a, b := session(t, addr, nil), session(t, addr, nil)
	ma, mb := join(t, a, name, ""), join(t, b, name, "")
	seal, behind := watchPlace(t, a, ma), watchPlace(t, b, mb)
	h := backend.Header{Sealed: "etcd://h1:2379"}
	if err := a.Pin(t.Context(), ma, h, 0); err != nil {
		t.Fatal(err)
	}
	behind.returns(t, time.Second)
	if !errors.Is(behind.err, backend.ErrSealed) {
		t.Errorf("behind the seal it is %+v, %v, want ErrSealed", behind.place, behind.err)
	}
	seal.returns(t, time.Second)
	if seal.err != nil || !seal.place.First || seal.place.Header != h {
		t.Errorf("the seal stands at %+v, %v", seal.place, seal.err)
	}
}

// Who waits behind a member of its own session, and is not the heir, has no query: it is told by the session, also of what has happened
// since it looked where it stands.
func TestToldByItsSession(t *testing.T) {
	t.Parallel()
	addr := server(t)
	sealed := backend.Header{Sealed: "etcd://h1:2379"}
	for what, does := range map[string]func(s backend.Session, ahead, m backend.Member) error{
		"the one in front has left":   func(s backend.Session, ahead, _ backend.Member) error { return s.Leave(t.Context(), ahead) },
		"it has left itself":          func(s backend.Session, _, m backend.Member) error { return s.Leave(t.Context(), m) },
		"the one in front was pinned": func(s backend.Session, ahead, _ backend.Member) error { return s.Pin(t.Context(), ahead, sealed, 0) },
	} {
		for when, waits := range map[string]bool{"before it waits": false, "while it waits": true} {
			t.Run(what+", "+when, func(t *testing.T) {
				t.Parallel()
				name := coordtest.Name(t)
				s, other := session(t, addr, &consul.Options{TTL: time.Hour}), session(t, addr, nil)
				first, ahead, m := join(t, other, name, ""), join(t, s, name, ""), join(t, s, name, "")
				p, err := s.Ahead(t.Context(), m)
				if err != nil || p.Ahead != ahead {
					t.Fatalf("it stands at %+v, %v", p, err)
				}
				told := make(chan error, 1)
				begin := func() { told <- s.WatchPlace(within(t, 10*time.Second), m, &p) }
				if waits {
					go begin()
					for !consul.Waits(s, m) {
						time.Sleep(time.Millisecond)
					}
				}
				if err := does(s, ahead, m); err != nil {
					t.Fatal(err)
				}
				if !waits {
					go begin()
				}
				switch err := <-told; what {
				case "it has left itself":
					if !errors.Is(err, backend.ErrNotMember) {
						t.Errorf("it is told %v at %+v, want ErrNotMember", err, p)
					}
				case "the one in front has left":
					if err != nil || p.Ahead != first {
						t.Errorf("it is told %v at %+v, want that it stands behind the first", err, p)
					}
				default:
					if err != nil && !errors.Is(err, backend.ErrSealed) || err == nil && !p.Ahead.Pinned {
						t.Errorf("it is told %v at %+v, want that it stands behind who is pinned", err, p)
					}
				}
			})
		}
	}
}

// At rest a session asks for all its waiters together.
func TestWaitersAtRest(t *testing.T) {
	t.Parallel()
	const waiters, ttl = 60, 2 * ttl // for a busy machine
	addr, name := server(t), coordtest.Name(t)
	b, counts := counted(t, addr, ttl)
	s, other := sessionOf(t, b), session(t, addr, nil)
	join(t, other, name, "")
	for range waiters {
		watchPlace(t, s, join(t, s, name, ""))
	}
	time.Sleep(ttl) // until all wait
	watch := calm.Start(t)
	counts()
	const n = 4
	time.Sleep(n * ttl)
	c := counts()
	if err := s.Err(); err != nil {
		if !watch.NotJudged(ttl/3, "the session has ended: %v", err) {
			t.Fatal(err)
		}
		return
	}
	t.Logf("in %d TTL %d waiters cost %v", n, waiters, c)
	// A look in each TTL, and perhaps one at the index of all keys; a query, and what follows.
	if reads, queries := c["read"], c["query"]; reads == 0 || (reads > n+3 || queries > 3) && !watch.NotJudged(ttl/3, "%v", c) {
		t.Errorf("in %d TTL %d waiters sent %d reads and %d queries, want about one read in each TTL", n, waiters, reads, queries)
	}
}
