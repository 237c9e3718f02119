//go:build linux

package kubernetes_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
	"github.com/succession-dev/succession/kubernetes"
)

// A holder holds one request back on its way to the server. Its caller has it given up when the caller's context ends; the packets
// arrive when it is let go.
type holder struct {
	http.RoundTripper
	mu    sync.Mutex
	match func(*http.Request) bool // nil: no request is held
	held  chan struct{}            // closed when it is
	letGo chan struct{}
	late  chan int // the status of its answer
	cut   bool     // no other request goes out either
}

// newHolder returns a client whose requests may be held.
func newHolder(t *testing.T, k *coordtest.Kubernetes, prefix string, ttl time.Duration) (*kubernetes.Backend, *holder) {
	t.Helper()
	h := &holder{held: make(chan struct{}), letGo: make(chan struct{}), late: make(chan int, 1)}
	return transported(t, k, prefix, ttl, func(rt http.RoundTripper) http.RoundTripper { h.RoundTripper = rt; return h }), h
}

// transported returns a client with a transport around its own.
func transported(t *testing.T, k *coordtest.Kubernetes, prefix string, ttl time.Duration, wrap func(http.RoundTripper) http.RoundTripper) *kubernetes.Backend {
	t.Helper()
	cfg, err := configOf(k, k.Addrs()[0], coordtest.KubernetesToken)
	if err != nil {
		t.Fatal(err)
	}
	cfg.WrapTransport = wrap
	b, err := kubernetes.New(cfg, &kubernetes.Options{Namespace: "default", Prefix: prefix, TTL: ttl, ConnectTimeout: long})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// hold has the next request held that matches.
func (h *holder) hold(match func(*http.Request) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.match = match
}

func (h *holder) RoundTrip(req *http.Request) (*http.Response, error) {
	h.mu.Lock()
	hold, cut := h.match != nil && h.match(req), h.cut
	if hold {
		h.match = nil
	}
	h.mu.Unlock()
	if cut {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	if !hold {
		return h.RoundTripper.RoundTrip(req)
	}
	late := req.Clone(context.Background())
	if req.GetBody != nil {
		late.Body, _ = req.GetBody()
	}
	close(h.held)
	go func() {
		<-h.letGo
		resp, err := h.RoundTripper.RoundTrip(late)
		if err != nil {
			h.late <- -1
			return
		}
		resp.Body.Close()
		h.late <- resp.StatusCode
	}()
	<-req.Context().Done()
	return nil, req.Context().Err()
}

// first waits until m is first.
func first(t *testing.T, s backend.Session, m backend.Member) {
	t.Helper()
	ctx := within(t, time.Minute)
	p, err := s.Ahead(ctx, m)
	for err == nil && !p.First {
		err = s.WatchPlace(ctx, m, &p)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// patches matches the write of a record that is not the first write of a guarded one, which only announces it.
func patches(value string) func(*http.Request) bool {
	return func(req *http.Request) bool {
		if req.Method != http.MethodPatch || !strings.Contains(req.URL.Path, "/record-") {
			return false
		}
		body, err := req.GetBody()
		if err != nil {
			return false
		}
		defer body.Close()
		b := make([]byte, 1<<16)
		n, _ := body.Read(b)
		return strings.Contains(string(b[:n]), value)
	}
}

// A guarded write, or a pin, that is held up until the next one leads is refused, whoever has taken out the leader; so is one that is held up
// until the leader was pinned, which a migration then carries the records of.
func TestLateWrite(t *testing.T) {
	k := sharedKubernetes(t)
	for _, how := range []string{"silent", "closed", "left", "session removed", "member removed", "pinned"} {
		for _, what := range []string{"record", "new record", "header", "pin", "item"} {
			if how == "pinned" && what == "pin" {
				continue
			}
			t.Run(strings.ReplaceAll(how+", "+what, " ", "-"), func(t *testing.T) {
				t.Parallel()
				lateWrite(t, k, how, what)
			})
		}
	}
}

func lateWrite(t *testing.T, k *coordtest.Kubernetes, how, what string) {
	name, lives := coordtest.Name(t), long
	if how == "silent" {
		lives = 2 * ttl
	}
	b, h := newHolder(t, k, name, lives)
	other := newClient(t, k, kubernetes.Options{Prefix: name})
	operator := rig.OperatorOf(t, urlOf(t, k, name))
	x, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	y := other.live(t)
	m, n := join(t, x, "e", "x"), join(t, y, "e", "y")
	first(t, x, m)
	record, header := "r", backend.Header{Sealed: "late"}
	item, err := x.Append(t.Context(), "items", "it")
	if err != nil {
		t.Fatal(err)
	}
	if what == "record" {
		if _, err := x.Put(t.Context(), record, []byte("before"), &backend.If{Member: m}); err != nil {
			t.Fatal(err)
		}
	}
	h.hold(patches("late"))
	late := func() error { _, err := x.Put(t.Context(), record, []byte("late"), &backend.If{Member: m}); return err }
	switch what {
	case "header":
		record = "e"
	case "pin":
		late = func() error { return x.Pin(t.Context(), m, header, backend.Absent) }
	case "item":
		h.hold(func(req *http.Request) bool {
			return req.Method == http.MethodDelete && strings.Contains(req.URL.Path, "/item-")
		})
		late = func() error { return x.Remove(t.Context(), item, m) }
	}
	written := make(chan error, 1)
	go func() { written <- late() }()
	select {
	case <-h.held:
	case err := <-written:
		t.Fatalf("it was not held: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	switch how {
	case "silent":
		h.mu.Lock()
		h.cut = true
		h.mu.Unlock()
	case "closed":
		go x.Close(ctx)
	case "left":
		go x.Leave(ctx, m)
	case "session removed":
		err = do(ctx, other.admin, http.MethodDelete, leases+"/"+kubernetes.SessionName(b), "", nil)
	case "member removed":
		err = operator.Remove(ctx, m)
	case "pinned":
		err = x.Pin(t.Context(), m, backend.Header{}, backend.Absent)
	}
	if err != nil {
		t.Fatal(err)
	}
	stand := 1
	if how == "pinned" {
		stand = 2
	} else {
		first(t, y, n)
	}
	close(h.letGo)
	t.Logf("the late request is answered with status %d", <-h.late)
	cancel()
	b.Close()
	err = <-written
	l, err2 := lineNow(t.Context(), y, "e")
	r, err3 := y.Get(t.Context(), record)
	items, err4 := y.Line(t.Context(), "items")
	if err := errors.Join(err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	if string(r.Value) == "late" || l.Header.Sealed != "" || len(l.Members) != stand || len(items.Members) != 1 {
		t.Errorf("it took effect after the next one led: record %q, line %+v, items %v; its caller was told: %v", r.Value, l, items.Members, err)
	}
	if what == "new record" { // it was made for a write that was refused
		goes(t, other, record)
	}
}

// A stop holds the first request that matches, until it is let go.
type stop struct {
	match       func(*http.Request) bool
	once        sync.Once
	came, letGo chan struct{}
}

func newStop(match func(*http.Request) bool) *stop {
	return &stop{match: match, came: make(chan struct{}), letGo: make(chan struct{})}
}

func (s *stop) at(req *http.Request) {
	if s.match(req) {
		s.once.Do(func() {
			close(s.came)
			<-s.letGo
		})
	}
}

// A member or a session that was deleted has gone, also if somebody has asked that its object be kept for a while.
func TestFinalizer(t *testing.T) {
	t.Parallel()
	k := sharedKubernetes(t)
	name := coordtest.Name(t)
	a, b := newClient(t, k, kubernetes.Options{Prefix: name}), newClient(t, k, kubernetes.Options{Prefix: name})
	s := b.live(t)
	finalizers := func(object, list string) {
		t.Helper()
		err := doAs(context.Background(), a.admin, http.MethodPatch, leases+"/"+object, "application/merge-patch+json", `{"metadata":{"finalizers":`+list+`}}`)
		if err != nil {
			t.Error(err)
		}
	}
	keep := func(object string) {
		t.Helper()
		finalizers(object, `["example.org/later"]`)
		t.Cleanup(func() { finalizers(object, "null") })
	}
	x := a.live(t)
	for _, closes := range []bool{false, true} {
		m, n := join(t, x, "e", "x"), join(t, s, "e", "y")
		first(t, x, m)
		keep(m.Key)
		if closes {
			keep(kubernetes.SessionName(a.Backend))
			go x.Close(t.Context())
		} else if err := x.Leave(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		watch := calm.Start(t)
		first(t, s, n)
		watch.Within(ttl/2, "that the next one leads (closed: %v)", closes)
		if err := s.Leave(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
}

// A guarded write that begins while its member leaves is listed again, so that whoever leads next has it refused.
func TestWriteWhileLeaving(t *testing.T) {
	t.Parallel()
	k := sharedKubernetes(t)
	name := coordtest.Name(t)
	leaves := newStop(func(req *http.Request) bool {
		return req.Method == http.MethodDelete && strings.Contains(req.URL.Path, "/member-")
	})
	writes := newStop(patches("late"))
	x := wrapped(t, k, name, func(req *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
		leaves.at(req)
		writes.at(req)
		return send()
	})
	y := newClient(t, k, kubernetes.Options{Prefix: name}).live(t)
	m, n := join(t, x, "e", "x"), join(t, y, "e", "y")
	first(t, x, m)
	put := func(value string) error {
		_, err := x.Put(t.Context(), "r", []byte(value), &backend.If{Member: m})
		return err
	}
	if err := put("before"); err != nil {
		t.Fatal(err)
	}
	left, written := make(chan error, 1), make(chan error, 1)
	go func() { left <- x.Leave(t.Context(), m) }()
	<-leaves.came
	go func() { written <- put("late") }()
	<-writes.came
	close(leaves.letGo)
	if err := <-left; err != nil {
		t.Fatal(err)
	}
	first(t, y, n)
	close(writes.letGo)
	if err := <-written; !errors.Is(err, backend.ErrNotMember) {
		t.Errorf("the write of who has left: %v", err)
	}
	if r, err := y.Get(t.Context(), "r"); err != nil || string(r.Value) != "before" {
		t.Errorf("when the next one leads, who has left has written %q, %v", r.Value, err)
	}
}

// wrapped returns a session whose requests a function sends.
func wrapped(t *testing.T, k *coordtest.Kubernetes, prefix string, each func(req *http.Request, send func() (*http.Response, error)) (*http.Response, error)) backend.Session {
	t.Helper()
	s, err := transported(t, k, prefix, ttl, func(rt http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			return each(req, func() (*http.Response, error) { return rt.RoundTrip(req) })
		})
	}).Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A join whose answer is still out stands for its own session as for others: who joins after it stands behind it, and who claims the same
// item after it does not get it.
func TestAnswerIsOut(t *testing.T) {
	t.Parallel()
	k := sharedKubernetes(t)
	var armed atomic.Bool
	made, answered := make(chan struct{}, 1), make(chan struct{})
	s := wrapped(t, k, coordtest.Name(t), func(req *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
		hold := req.Method == http.MethodPost && armed.CompareAndSwap(true, false)
		resp, err := send()
		if hold {
			made <- struct{}{}
			<-answered
		}
		return resp, err
	})
	item, err := s.Append(t.Context(), "items", "x")
	if err != nil {
		t.Fatal(err)
	}
	type result struct {
		backend.Joined
		err error
	}
	begin := func(f func() (backend.Joined, error)) <-chan result {
		armed.Store(true)
		c := make(chan result, 1)
		go func() {
			j, err := f()
			c <- result{j, err}
		}()
		<-made
		return c
	}
	one := begin(func() (backend.Joined, error) { return s.Join(t.Context(), "e", "one", "") })
	two := join(t, s, "e", "two")
	p, err := s.Ahead(t.Context(), two)
	claim := func() (backend.Joined, error) {
		return s.Claim(t.Context(), "claims", "me\n"+kit.Subject(item), "", item)
	}
	first := begin(claim)
	if _, err := claim(); !errors.Is(err, backend.ErrTaken) {
		t.Errorf("the second claim: %v", err)
	}
	close(answered)
	if j := <-one; j.err != nil || err != nil || p.First || p.Ahead.Key != j.Key {
		t.Errorf("behind %+v, %v, the second stands at %+v, %v", j.Member, j.err, p, err)
	}
	if j := <-first; j.err != nil {
		t.Errorf("the first claim: %v", j.err)
	}
}

// If the record of a line is deleted while its leader stands, and with it the list of what the leader's writes may reach, the leader lists
// them anew when it has been told.
func TestListedAnew(t *testing.T) {
	t.Parallel()
	k := sharedKubernetes(t)
	name := coordtest.Name(t)
	b, h := newHolder(t, k, name, long)
	other := newClient(t, k, kubernetes.Options{Prefix: name})
	x, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	y := other.live(t)
	m, n := join(t, x, "e", "x"), join(t, y, "e", "y")
	first(t, x, m)
	put := func(value string) error {
		_, err := x.Put(t.Context(), "r", []byte(value), &backend.If{Member: m})
		return err
	}
	if err := put("before"); err != nil {
		t.Fatal(err)
	}
	p, err := x.Ahead(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	go x.WatchPlace(t.Context(), m, &p)
	record := leases + "/" + kubernetes.RecordName(b, "e")
	if err := do(t.Context(), other.admin, http.MethodDelete, record, "", nil); err != nil {
		t.Fatal(err)
	}
	watch := calm.Start(t)
	for {
		if err := put("between"); err != nil {
			t.Fatal(err)
		}
		if do(t.Context(), other.admin, http.MethodGet, record, "", nil) == nil {
			break
		}
		if time.Since(watch.Began()) > time.Minute {
			t.Fatal("the leader is never told that the list of what it may reach has gone")
		}
	}
	watch.Within(2*ttl, "to be told that the list has gone")
	h.hold(patches("late"))
	written := make(chan error, 1)
	go func() { written <- put("late") }()
	select {
	case <-h.held:
	case err := <-written:
		t.Fatalf("it was not held: %v", err)
	}
	if err := do(t.Context(), other.admin, http.MethodDelete, leases+"/"+kubernetes.SessionName(b), "", nil); err != nil {
		t.Fatal(err)
	}
	first(t, y, n)
	close(h.letGo)
	if status := <-h.late; status != http.StatusConflict {
		t.Errorf("the late write is answered with status %d, want %d", status, http.StatusConflict)
	}
	<-written
}

// A join whose request arrives when its member was to leave, or when its session has ended, leaves nobody in line.
func TestLateJoin(t *testing.T) {
	k := sharedKubernetes(t)
	for _, closes := range []bool{false, true} {
		t.Run(fmt.Sprint("closed=", closes), func(t *testing.T) {
			t.Parallel()
			name := coordtest.Name(t)
			b, h := newHolder(t, k, name, 2*ttl) // a third of that passes until the request is sent again
			s, err := b.Session(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			h.hold(func(req *http.Request) bool { return req.Method == http.MethodPost })
			if err := s.Leave(t.Context(), join(t, s, "e", "x")); err != nil {
				t.Fatal(err)
			}
			if closes {
				if err := s.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			close(h.letGo)
			t.Logf("the late request is answered with status %d", <-h.late)
			y := newClient(t, k, kubernetes.Options{Prefix: name}).live(t)
			for _, who := range []backend.Session{y, s} {
				if who == s && closes {
					continue
				}
				if l, err := lineNow(t.Context(), who, "e"); err != nil || len(l.Members) != 0 {
					t.Errorf("in line stand %+v, %v", l.Members, err)
				}
			}
			n := join(t, y, "e", "y")
			if p, err := y.Ahead(t.Context(), n); err != nil || !p.First {
				t.Errorf("who joins then stands at %+v, %v", p, err)
			}
		})
	}
}

// While the watches of a leader are broken the record of its line is deleted, and what happened meanwhile cannot be told. The next write
// that its member guards is listed in a new record.
func TestDeletedUnseen(t *testing.T) {
	t.Parallel()
	k := sharedKubernetes(t)
	admin, err := configOf(k, k.Addrs()[0], coordtest.KubernetesToken)
	if err != nil {
		t.Fatal(err)
	}
	type watch struct {
		body            io.Closer // nil if it is not open
		opened, refused int       // how often
	}
	var mu sync.Mutex
	var gap bool
	watches := make(map[string]*watch) // by the label or field that they select
	s := wrapped(t, k, coordtest.Name(t), func(req *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
		if !strings.Contains(req.URL.RawQuery, "watch=true") {
			return send()
		}
		resp, err := send()
		mu.Lock()
		defer mu.Unlock()
		q := req.URL.Query()
		selects, _, _ := strings.Cut(q.Get("labelSelector")+q.Get("fieldSelector"), " ") // whatever the values are
		selects, _, _ = strings.Cut(selects, "=")
		if watches[selects] == nil {
			watches[selects] = new(watch)
		}
		switch w := watches[selects]; {
		case err != nil:
		case gap:
			w.refused++
			resp.Body.Close()
			resp.StatusCode, resp.Body = http.StatusGone, io.NopCloser(strings.NewReader(`{"kind":"Status","code":410,"reason":"Expired","message":"too old"}`))
		default:
			w.opened++
			w.body = resp.Body
		}
		return resp, err
	})
	m := join(t, s, "e", "leader")
	first(t, s, m)
	ctx := within(t, time.Minute)
	go func() {
		p := backend.Place{First: true}
		for s.WatchPlace(ctx, m, &p) == nil {
		}
	}()
	// each waits until something holds for all watches.
	each := func(what string, holds func(w *watch) bool) {
		t.Helper()
		for over := false; !over; {
			mu.Lock()
			over = len(watches) > 0
			for _, w := range watches {
				over = over && holds(w)
			}
			mu.Unlock()
			if ctx.Err() != nil {
				t.Fatalf("not all watches are %s", what)
			}
		}
	}
	put := func() {
		t.Helper()
		if _, err := s.Put(ctx, "e-position", []byte("x"), &backend.If{Version: backend.Any, Member: m}); err != nil {
			t.Fatal(err)
		}
	}
	// lists returns the record that lists a write that m guards.
	lists := func() string {
		t.Helper()
		var text string
		if err := do(ctx, admin, http.MethodGet, leases, "", &text); err != nil {
			t.Fatal(err)
		}
		var all struct {
			Items []struct {
				Metadata struct {
					Name        string
					Annotations map[string]string
				}
			}
		}
		if err := json.Unmarshal([]byte(text), &all); err != nil {
			t.Fatal(err)
		}
		for _, o := range all.Items {
			if strings.Contains(o.Metadata.Annotations["succession-dev.github.io/guards"], m.Key) {
				return o.Metadata.Name
			}
		}
		return ""
	}
	put()
	record := lists()
	if record == "" {
		t.Fatal("no record lists what the leader writes")
	}
	each("open", func(w *watch) bool { return w.opened > 0 })
	mu.Lock()
	gap = true
	for _, w := range watches {
		w.body.Close()
		w.opened = 0
	}
	mu.Unlock()
	if err := do(ctx, admin, http.MethodDelete, leases+"/"+record, "", nil); err != nil {
		t.Fatal(err)
	}
	each("refused", func(w *watch) bool { return w.refused > 0 })
	mu.Lock()
	gap = false
	mu.Unlock()
	each("open again", func(w *watch) bool { return w.opened > 0 })
	put()
	if again := lists(); again != record {
		t.Errorf("the record %q lists what the leader writes, want %q", again, record)
	}
}

// What is listed for members that have gone does not grow without end behind a leader that stays.
func TestManyGuards(t *testing.T) {
	t.Parallel()
	k := sharedKubernetes(t)
	admin, err := configOf(k, k.Addrs()[0], coordtest.KubernetesToken)
	if err != nil {
		t.Fatal(err)
	}
	prefix := coordtest.Name(t)
	of := newClient(t, k, kubernetes.Options{Prefix: prefix})
	leader := of.live(t)
	first(t, leader, join(t, leader, "e", "leader"))
	record, note := leases+"/"+kubernetes.RecordName(of.Backend, "e"), kubernetes.RecordName(of.Backend, "note")
	const all, open = 200, 8
	var clients []*client
	for i := range all {
		c := newClient(t, k, kubernetes.Options{Prefix: prefix})
		clients = append(clients, c)
		s := c.live(t)
		m := join(t, s, "e", "another")
		if _, err := s.Put(t.Context(), "note", nil, &backend.If{Version: backend.Any, Member: m}); err != nil {
			t.Fatal(err)
		}
		if i >= open {
			clients[i-open].Close()
		}
		var text string
		if err := do(t.Context(), admin, http.MethodGet, record, "", &text); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(text, note); i > 40 && n < i/2 {
			return
		}
	}
	t.Errorf("the writes of %d members that have gone are listed", all)
}

// A record that says nothing any more is deleted: that of a line whose members have left, that of a write that was refused, and one whose value was deleted.
func TestEmptyRecords(t *testing.T) {
	t.Parallel()
	c := newClient(t, sharedKubernetes(t), kubernetes.Options{Prefix: coordtest.Name(t)})
	s := c.live(t)
	m := join(t, s, "e", "x")
	guarded := &backend.If{Member: m}
	if _, err := s.Put(t.Context(), "r", nil, guarded); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), "refused", nil, &backend.If{Member: m, Version: 1}); !errors.Is(err, backend.ErrVersion) {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), "e", nil, guarded); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Delete(t.Context(), "r", guarded), s.Delete(t.Context(), "e", guarded), s.Leave(t.Context(), m)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"r", "refused", "e"} {
		goes(t, c, name)
	}
	n := join(t, s, "e", "x")
	gone := n
	gone.Position++
	if _, err := s.Put(t.Context(), "late", nil, &backend.If{Member: gone}); !errors.Is(err, backend.ErrNotMember) {
		t.Fatal(err)
	}
	goes(t, c, "late")
}

// A session that is told that a record was deleted forgets what is listed for its members. It takes that from the list all the same when they leave.
func TestEmptyRecordsOfWhoIsTold(t *testing.T) {
	t.Parallel()
	c := newClient(t, sharedKubernetes(t), kubernetes.Options{Prefix: coordtest.Name(t)})
	s := c.live(t)
	m := join(t, s, "e", "x")
	if _, err := s.Put(t.Context(), "r", nil, &backend.If{Member: m}); err != nil {
		t.Fatal(err)
	}
	kubernetes.ToldOfDeletion(c.Backend, "another")
	if err := s.Leave(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	goes(t, c, "e")
}

// goes waits until the object of a record is there no more.
func goes(t *testing.T, c *client, name string) {
	t.Helper()
	path := leases + "/" + kubernetes.RecordName(c.Backend, name)
	for end := time.Now().Add(time.Minute); do(t.Context(), c.admin, http.MethodGet, path, "", nil) == nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("the record %s stays", name)
			return
		}
	}
}

// answering is a transport that says when a request was answered, before its caller knows.
type answering struct {
	http.RoundTripper
	answered func(*http.Request)
}

func (a answering) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := a.RoundTripper.RoundTrip(req)
	if err == nil {
		a.answered(req)
	}
	return resp, err
}

// A join is given up, and its request arrives just after its member was to be removed, and before that is answered. It keeps nobody of its own session
// waiting: nothing would wake who waits behind it.
func TestLateJoinWhileRemoved(t *testing.T) {
	t.Parallel()
	h := &holder{held: make(chan struct{}), letGo: make(chan struct{}), late: make(chan int, 1)}
	var s backend.Session
	done := make(chan error, 1)
	look := sync.OnceFunc(func() {
		close(h.letGo)
		if status := <-h.late; status != http.StatusCreated {
			t.Errorf("the late request is answered with status %d", status)
		}
		j, err := s.Join(t.Context(), "e", "y", "")
		if err == nil {
			var p backend.Place
			if p, err = s.Ahead(t.Context(), j.Member); err == nil && !p.First {
				err = fmt.Errorf("who joins then stands at %+v", p)
			}
		}
		done <- err
	})
	b := transported(t, sharedKubernetes(t), coordtest.Name(t), 2*ttl, func(rt http.RoundTripper) http.RoundTripper {
		h.RoundTripper = rt
		return answering{h, func(req *http.Request) {
			if req.Method == http.MethodDelete && strings.Contains(req.URL.Path, "/member-") {
				look()
			}
		}}
	})
	var err error
	if s, err = b.Session(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.hold(func(req *http.Request) bool { return req.Method == http.MethodPost })
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-h.held; cancel() }()
	if j, err := s.Join(ctx, "e", "x", ""); !errors.Is(err, context.Canceled) {
		t.Fatalf("a join that is given up: %+v, %v", j, err)
	}
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-within(t, time.Minute).Done():
		t.Error("the member is not removed")
	}
}

// The position of a member stays when something rewrites it. If that happens before it was noted, the member does not lead.
func TestRewritten(t *testing.T) {
	t.Parallel()
	k := sharedKubernetes(t)
	name := coordtest.Name(t)
	c := newClient(t, k, kubernetes.Options{Prefix: name})
	s := c.live(t)
	a, b := join(t, s, "e", "a"), join(t, s, "e", "b")
	first(t, s, a)
	rewrite := func(m backend.Member) {
		t.Helper()
		err := doAs(t.Context(), c.admin, http.MethodPatch, leases+"/"+m.Key, "application/merge-patch+json", `{"metadata":{"labels":{"somebody":"was-here"}}}`)
		if err != nil {
			t.Fatal(err)
		}
	}
	rewrite(a)
	l, err := s.Line(t.Context(), "e")
	if err != nil || len(l.Members) != 2 || l.Members[0] != a || l.Members[1] != b {
		t.Errorf("the line is %+v, %v; want %+v and %+v", l.Members, err, a, b)
	}
	if p, err := s.Ahead(t.Context(), a); err != nil || !p.First {
		t.Errorf("the first stands at %+v, %v", p, err)
	}
	hb, h := newHolder(t, k, name, long)
	x, err := hb.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h.hold(func(req *http.Request) bool {
		return req.Method == http.MethodPatch && strings.Contains(req.URL.Path, "/member-")
	})
	m := join(t, x, "rewritten", "x")
	<-h.held
	rewrite(m)
	close(h.letGo)
	if status := <-h.late; status != http.StatusConflict {
		t.Errorf("the note of a position after the object was rewritten: status %d, want 409", status)
	}
	ctx := within(t, time.Minute)
	for {
		p, err := x.Ahead(ctx, m)
		if errors.Is(err, backend.ErrNotMember) {
			break
		}
		if p.First || err != nil {
			t.Fatalf("who was rewritten before its position was noted stands at %+v, %v", p, err)
		}
	}
	if err := x.Leave(ctx, m); err != nil {
		t.Fatal(err)
	}
	if l, err := lineNow(ctx, s, "rewritten"); err != nil || len(l.Members) != 0 {
		t.Errorf("when it has left, %+v stand, %v", l.Members, err)
	}
}
