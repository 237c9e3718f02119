package consul_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/consul"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// newTransport returns a transport that is closed when the test ends.
func newTransport(t testing.TB) *http.Transport {
	tr := new(http.Transport)
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

// Foreign clients rely on what a member looks like.
func TestMemberIsAKeyOfItsSession(t *testing.T) {
	addr, name := server(t), coordtest.Name(t)
	s := session(t, addr, nil)
	first, second := join(t, s, name, "a"), join(t, s, name, "")
	kv := admin(t, addr).KV()
	pairs, _, err := kv.List(name+"/", nil)
	if err != nil || len(pairs) != 2 {
		t.Fatalf("there are %d keys (error: %v), want 2", len(pairs), err)
	}
	for i, m := range []backend.Member{first, second} {
		p := pairs[i]
		if p.Key != name+"/"+m.Key || p.CreateIndex != m.Position || string(p.Value) != m.Value {
			t.Errorf("the key is %+v, the member %+v", p, m)
		}
	}
	if id := pairs[0].Session; first.Key != id || second.Key != id+"-2" {
		t.Errorf("the keys are %s and %s of session %s", first.Key, second.Key, id)
	}
	entry, _, err := admin(t, addr).Session().Info(pairs[0].Session, nil)
	if err != nil {
		t.Fatal(err)
	}
	if entry.Node != "succession" || entry.Behavior != api.SessionBehaviorDelete || entry.LockDelay != 0 || len(entry.NodeChecks) != 0 || entry.TTL != long.String() {
		t.Errorf("the session is %+v", entry)
	}
}

func TestSuccession(t *testing.T) {
	addr, name := server(t), coordtest.Name(t)
	a, b, c := session(t, addr, nil), session(t, addr, nil), session(t, addr, nil)
	ma, mb, mc := join(t, a, name, "a"), join(t, b, name, "b"), join(t, c, name, "c")

	place := func(s backend.Session, m backend.Member) backend.Place {
		t.Helper()
		p, err := s.Ahead(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if p := place(a, ma); !p.First || p.Token != ma.Position {
		t.Errorf("the first of the line stands at %+v", p)
	}
	if p := place(b, mb); p.Ahead != ma {
		t.Errorf("ahead of b is %+v, want %+v", p.Ahead, ma)
	}
	if p := place(c, mc); p.Ahead != mb {
		t.Errorf("ahead of c is %+v, want %+v", p.Ahead, mb)
	}

	gone := make(chan error, 1)
	go func() { gone <- c.Gone(t.Context(), mb) }()
	if err := b.Leave(t.Context(), mb); err != nil {
		t.Fatal(err)
	}
	if err := <-gone; err != nil {
		t.Fatal(err)
	}
	if p := place(c, mc); p.Ahead != ma {
		t.Errorf("ahead of c is then %+v, want %+v", p.Ahead, ma)
	}
	if _, err := b.Ahead(t.Context(), mb); !errors.Is(err, backend.ErrNotMember) {
		t.Errorf("Ahead of who left returned %v, want ErrNotMember", err)
	}
	if err := b.Leave(t.Context(), mb); err != nil {
		t.Errorf("leaving twice returned %v", err)
	}
	if err := c.Gone(t.Context(), mb); err != nil {
		t.Errorf("Gone of who has gone returned %v", err)
	}
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Gone(t.Context(), ma); err != nil {
		t.Fatal(err)
	}
	if p := place(c, mc); !p.First || p.Token != mc.Position || p.Token <= ma.Position {
		t.Errorf("the last of the line stands at %+v", p)
	}
}

// A pinned member keeps its position, outlives its session, and goes only by Leave.
func TestPin(t *testing.T) {
	addr, name := server(t), coordtest.Name(t)
	a, b := session(t, addr, nil), session(t, addr, nil)
	ma, mb := join(t, a, name, "a"), join(t, b, name, "b")
	h := backend.Header{Sealed: "etcd://h1:2379"}

	if err := b.Pin(t.Context(), ma, h, backend.Absent); !errors.Is(err, backend.ErrDenied) {
		t.Errorf("pinning another's member returned %v, want ErrDenied", err)
	}
	if err := a.Pin(t.Context(), ma, h, 7); !errors.Is(err, backend.ErrVersion) {
		t.Errorf("pinning at a wrong version returned %v, want ErrVersion", err)
	}
	for range 2 { // twice: it is not an error
		if err := a.Pin(t.Context(), ma, h, backend.Absent); err != nil {
			t.Fatal(err)
		}
	}
	// A request of Join that arrives only now must not lock the key by the session again.
	if err := consul.ReplayJoin(t.Context(), a, ma); err != nil {
		t.Fatal(err)
	}
	if p, err := a.Ahead(t.Context(), ma); err != nil || !p.First {
		t.Errorf("who sealed stands at %+v (error: %v), want first", p, err)
	}
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	line, err := b.Line(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	ma.Pinned = true
	if len(line.Members) != 2 || line.Members[0] != ma || line.Members[1] != mb || line.Header != h {
		t.Errorf("the line is %+v, want %+v and %+v", line, ma, mb)
	}
	var sealed *backend.SealedError
	if _, err := b.Ahead(t.Context(), mb); !errors.As(err, &sealed) || sealed.To != h.Sealed {
		t.Errorf("who stands behind the seal got %v", err)
	}
	if _, err := b.Put(t.Context(), name+"-r", []byte("x"), &backend.If{Member: ma}); err != nil {
		t.Errorf("writing under a pinned member returned %v", err)
	}
	if err := b.Leave(t.Context(), ma); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Put(t.Context(), name+"-r", []byte("x"), &backend.If{Member: ma}); !errors.Is(err, backend.ErrNotMember) {
		t.Errorf("writing under a member that has gone returned %v, want ErrNotMember", err)
	}
}

func TestRecords(t *testing.T) {
	addr, name := server(t), coordtest.Name(t)
	s := session(t, addr, nil)
	ctx := t.Context()
	r, err := s.Get(ctx, name)
	if err != nil || r.Version != backend.Absent {
		t.Fatalf("a record that does not exist is %+v (error: %v)", r, err)
	}
	seen := map[backend.Version]bool{}
	var last backend.Version
	for _, cond := range []*backend.If{nil, nil, {}} { // the same value thrice
		v, err := s.Put(ctx, name, []byte("same"), cond)
		if err != nil || seen[v] || v <= 0 {
			t.Fatalf("Put returned version %d (error: %v), want one that never was", v, err)
		}
		seen[v], last = true, v
	}
	if _, err := s.Put(ctx, name, nil, &backend.If{Version: last - 1}); !errors.Is(err, backend.ErrVersion) {
		t.Errorf("Put at an old version returned %v", err)
	}
	if _, err := s.Put(ctx, name, nil, &backend.If{Version: backend.Absent}); !errors.Is(err, backend.ErrVersion) {
		t.Errorf("Put where there must be none returned %v", err)
	}
	v, err := s.Put(ctx, name, []byte("next"), &backend.If{Version: last})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(ctx, name, &backend.If{Version: last}); !errors.Is(err, backend.ErrVersion) {
		t.Errorf("Delete at an old version returned %v", err)
	}
	if err := s.Delete(ctx, name, &backend.If{Version: v}); err != nil {
		t.Error(err)
	}
	if err := s.Delete(ctx, name, &backend.If{Version: v}); !errors.Is(err, backend.ErrVersion) {
		t.Errorf("Delete of nothing at a version returned %v", err)
	}
	if err := s.Delete(ctx, name, nil); err != nil {
		t.Errorf("Delete of nothing returned %v", err)
	}
	v, err = s.Put(ctx, name, []byte("again"), &backend.If{Version: backend.Absent})
	if err != nil || seen[v] {
		t.Errorf("Put after Delete returned %d, %v", v, err)
	}
	if _, err := s.Put(ctx, name+"/"+uuid, nil, nil); !errors.Is(err, backend.ErrInvalid) {
		t.Errorf("a record with the name of a member returned %v, want ErrInvalid", err)
	}
}

const uuid = "01234567-89ab-cdef-0123-456789abcdef"

func TestListShowsRecordsAlone(t *testing.T) {
	addr, name := server(t), coordtest.Name(t)
	s := session(t, addr, nil)
	join(t, s, name, "not a record")
	for _, r := range []string{"b", "a", "deep/er", "a-b"} {
		if _, err := s.Put(t.Context(), name+"/"+r, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.List(t.Context(), name)
	want := []string{name + "/a", name + "/a-b", name + "/b"}
	if err != nil || len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("List returned %q, %v, want %q", got, err, want)
	}
}

func TestWatch(t *testing.T) {
	addr, name := server(t), coordtest.Name(t)
	s, other := session(t, addr, nil), session(t, addr, nil)
	type seen struct {
		r   backend.Record
		err error
	}
	ctx := within(t, time.Minute)
	watch := func(after backend.Version) <-chan seen {
		c := make(chan seen, 1)
		go func() {
			r, err := s.Watch(ctx, name, after)
			c <- seen{r, err}
		}()
		return c
	}
	if w := <-watch(0); w.err != nil || w.r.Version != backend.Absent {
		t.Fatalf("Watch after 0 returned %+v", w)
	}
	w := watch(backend.Absent)
	v, err := other.Put(ctx, name, []byte("x"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if w := <-w; w.err != nil || w.r.Version != v {
		t.Fatalf("Watch after Absent returned %+v, want version %d", w, v)
	}
	w = watch(v)
	if err := other.Delete(ctx, name, nil); err != nil {
		t.Fatal(err)
	}
	if w := <-w; w.err != nil || w.r.Version != backend.Absent {
		t.Fatalf("Watch returned %+v, want Absent", w)
	}
}

// Reads that decide something are linearizable. Blocking queries are not, because they
// would fail at each change of Consul's leader. No read allows a stale answer.
func TestConsistency(t *testing.T) {
	addr, name := server(t), coordtest.Name(t)
	b := open(t, addr, nil)
	var mu sync.Mutex
	var seen []*url.URL
	var blocks context.CancelFunc // ends a call once it blocks
	consul.OnRequest(b, func(req *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, req.URL)
		if kindOf(req) == "query" {
			blocks()
		}
	})
	s := sessionOf(t, b)
	m := join(t, s, name, "")
	calls := []struct {
		name string
		want []string // parameters of the reads
		call func(ctx context.Context)
	}{
		{"Ahead", []string{"consistent"}, func(ctx context.Context) { s.Ahead(ctx, m) }},
		{"Line", []string{"consistent"}, func(ctx context.Context) { s.Line(ctx, name) }},
		{"Get", []string{"consistent"}, func(ctx context.Context) { s.Get(ctx, name) }},
		{"List", []string{"consistent"}, func(ctx context.Context) { s.List(ctx, name) }},
		{"WatchLine of a line that has changed", []string{"consistent", "consistent"}, func(ctx context.Context) { s.WatchLine(ctx, name, backend.Line{}) }},
		{"WatchLine", []string{"consistent", "index"}, func(ctx context.Context) { s.WatchLine(ctx, name, backend.Line{Members: []backend.Member{m}}) }},
		{"Watch", []string{"consistent", "index"}, func(ctx context.Context) { s.Watch(ctx, name, backend.Absent) }},
		{"Gone", []string{"index"}, func(ctx context.Context) { s.Gone(ctx, m) }},
	}
	for _, c := range calls {
		ctx, cancel := context.WithCancel(within(t, time.Minute))
		mu.Lock()
		seen, blocks = nil, cancel
		mu.Unlock()
		c.call(ctx)
		cancel()
		mu.Lock()
		var got []string
		for _, u := range seen {
			q := u.Query()
			for _, p := range []string{"consistent", "index", "stale", "cached"} {
				if q.Has(p) {
					got = append(got, p)
				}
			}
		}
		mu.Unlock()
		if !slices.Equal(got, c.want) {
			t.Errorf("%s asked with %q, want %q", c.name, got, c.want)
		}
	}
}

// Of a gate, an item, a member and a key that was imported, only the last one was never joined by a session.
// Leave removes it, and who stands behind it leads.
func TestImported(t *testing.T) {
	t.Parallel()
	addr, name := server(t), coordtest.Name(t)
	s := session(t, addr, nil)
	if _, err := s.Append(t.Context(), name, "item"); err != nil {
		t.Fatal(err)
	}
	gate := join(t, s, name, "gate")
	if err := s.Pin(t.Context(), gate, backend.Header{}, 0); err != nil {
		t.Fatal(err)
	}
	imported := name + "/00000000-0000-0000-0000-000000000001"
	if _, err := admin(t, addr).KV().Put(&api.KVPair{Key: imported, Value: []byte("ghost")}, nil); err != nil {
		t.Fatal(err)
	}
	m := join(t, s, name, "member")
	// An import into a line in use also writes what stands. Consul then forgets that it was locked, and not by which session it is.
	if _, err := admin(t, addr).KV().Put(&api.KVPair{Key: name + "/" + m.Key, Value: []byte("member")}, nil); err != nil {
		t.Fatal(err)
	}
	found, err := s.Imported(t.Context(), name)
	if err != nil || len(found) != 1 || found[0].Value != "ghost" || !found[0].Pinned {
		t.Fatalf("imported were %+v, %v; want the ghost", found, err)
	}
	if p, err := s.Ahead(t.Context(), m); err != nil || p.Ahead != found[0] {
		t.Errorf("the member stands at %+v, %v; want it behind the ghost", p, err)
	}
	if err := s.Leave(t.Context(), found[0]); err != nil {
		t.Fatal(err)
	}
	if p, err := s.Ahead(t.Context(), m); err != nil || p.Ahead.Key != gate.Key {
		t.Errorf("the member stands at %+v, %v; want it behind the gate", p, err)
	}
}

// A member that nobody owns is removed by its session. Who waits behind it in the middle of the line, in the same session, has no query
// for it, and is told at once.
func TestToldOfGhost(t *testing.T) {
	t.Parallel()
	addr, name := server(t), coordtest.Name(t)
	other, b := session(t, addr, nil), open(t, addr, &consul.Options{TTL: time.Hour}) // the guard looks once in that time
	var holds atomic.Bool                                                             // removals
	remove := make(chan struct{})
	consul.Tap(b, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		if holds.Load() && req.URL.Path == "/v1/txn" {
			body, err := req.GetBody()
			if err != nil {
				return nil, err
			}
			if sent, err := io.ReadAll(body); err == nil && bytes.Contains(sent, []byte(api.KVDeleteCAS)) {
				<-remove
			}
		}
		return next.RoundTrip(req)
	})
	join(t, other, name, "")
	last := join(t, other, name, "")
	s := sessionOf(t, b)
	ghost := join(t, s, name, "")
	if err := s.Leave(t.Context(), ghost); err != nil {
		t.Fatal(err)
	}
	holds.Store(true)
	if err := consul.ReplayJoin(t.Context(), s, ghost); err != nil {
		t.Fatal(err)
	}
	m := join(t, s, name, "")
	p, err := s.Ahead(t.Context(), m)
	if err != nil || p.Ahead.Key != ghost.Key {
		t.Fatalf("ahead is %+v (error: %v): nothing is tested", p.Ahead, err)
	}
	told := make(chan error, 1)
	go func() { told <- s.WatchPlace(t.Context(), m, &p) }()
	for ctx := within(t, time.Minute); !consul.Waits(s, p.Ahead); time.Sleep(time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatal(context.Cause(ctx))
		}
	}
	close(remove)
	select {
	case err := <-told:
		if err != nil || p.Ahead.Key != last.Key {
			t.Errorf("it then stands behind %+v (error: %v), want %+v", p.Ahead, err, last)
		}
	case <-within(t, time.Minute).Done():
		t.Error("the member in front was removed a minute ago, and who waits for it does not know")
	}
}
