package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/etcd"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig/etcdrig"
)

// A wire sees what a backend sends, and can keep from it what comes on its streams of watches.
type wire struct {
	mu      sync.Mutex
	sent    []string  // what each request is about
	probes  int       // of streams of watches
	streams int       // of watches
	muted   int       // this one and those before it are silent from now on
	deleted time.Time // when the newest request to leave was sent
}

// wired returns a backend, which ends with the test, and its wire.
func wired(t *testing.T, addr string, ttl time.Duration) (*etcd.Backend, *wire) {
	t.Helper()
	w := new(wire)
	c, err := etcdrig.Dial([]string{addr}, grpc.WithChainUnaryInterceptor(w.unary), grpc.WithChainStreamInterceptor(w.stream))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	b, err := etcd.New(c, &etcd.Options{TTL: ttl, ConnectTimeout: opening})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b, w
}

func (w *wire) note(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent = append(w.sent, what)
}

// take returns what was sent since the last take, but probes.
func (w *wire) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	sent := w.sent
	w.sent = nil
	return sent
}

// asked is take without the ends of watches, of which etcd is told a moment later.
func (w *wire) asked() []string {
	return slices.DeleteFunc(w.take(), func(what string) bool { return what == "cancel" })
}

// probed returns how many probes were sent.
func (w *wire) probed() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.probes
}

// mute has all present streams of watches be silent.
func (w *wire) mute() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.muted = w.streams
}

func (w *wire) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	r, ok := req.(*pb.TxnRequest)
	if ok && about(r) == "delete" {
		w.mu.Lock()
		w.sent, w.deleted = append(w.sent, "delete"), time.Now()
		w.mu.Unlock()
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	err := invoke(ctx, method, req, reply, cc, opts...)
	if ok && err == nil {
		w.note(about(r)) // who sees the note knows that the answer is there
	}
	return err
}

// about says what a transaction does.
func about(r *pb.TxnRequest) string {
	var does []string
	for _, op := range r.Success {
		switch {
		case op.GetRequestDeleteRange() != nil:
			does = append(does, "delete")
		case op.GetRequestPut() != nil:
			does = append(does, "put")
		case len(op.GetRequestRange().GetRangeEnd()) > 0:
			does = append(does, fmt.Sprintf("folder, %d keys", op.GetRequestRange().Limit))
		default:
			does = append(does, "key")
		}
	}
	return strings.Join(does, "; ")
}

func (w *wire) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, stream grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := stream(ctx, desc, cc, method, opts...)
	if err != nil || !strings.HasSuffix(method, "/Watch") {
		return s, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.streams++
	return &watchStream{s, w, w.streams}, nil
}

type watchStream struct {
	grpc.ClientStream
	w   *wire
	nth int
}

func (s *watchStream) SendMsg(m any) error {
	switch r := m.(*pb.WatchRequest); {
	case r.GetCreateRequest() != nil:
		s.w.note("watch")
	case r.GetCancelRequest() != nil:
		s.w.note("cancel")
	default:
		s.w.mu.Lock()
		s.w.probes++
		s.w.mu.Unlock()
	}
	return s.ClientStream.SendMsg(m)
}

func (s *watchStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	s.w.mu.Lock()
	muted := s.nth <= s.w.muted
	s.w.mu.Unlock()
	if err == nil && muted {
		<-s.Context().Done()
		return context.Cause(s.Context())
	}
	return err
}

// A watched is a call of WatchPlace.
type watched struct {
	place backend.Place
	err   error
	ended chan struct{}
}

// watch calls WatchPlace for m, and returns when it has asked for its two watches, and has looked.
func (w *wire) watch(t *testing.T, s backend.Session, m backend.Member) *watched {
	t.Helper()
	return w.watches(t, s, m, 2)
}

// watches is watch for who needs n watches.
func (w *wire) watches(t *testing.T, s backend.Session, m backend.Member, n int) *watched {
	t.Helper()
	after, err := s.Ahead(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	w.take()
	c := &watched{place: after, ended: make(chan struct{})}
	go func() {
		defer close(c.ended)
		c.err = s.WatchPlace(t.Context(), m, &c.place)
	}()
	var sent []string
	for ctx := within(t, time.Minute); !slices.Contains(sent, "key; key") && !slices.Contains(sent, "key; key; key"); time.Sleep(time.Millisecond) {
		if sent = append(sent, w.asked()...); ctx.Err() != nil {
			t.Fatalf("WatchPlace has sent %q", sent)
		}
	}
	if want := slices.Repeat([]string{"watch"}, n); len(sent) != n+1 || !slices.Equal(sent[:n], want) {
		t.Fatalf("WatchPlace began with %q; want %d watches, and one look at single keys", sent, n)
	}
	return c
}

// rests fails the test if the call has returned.
func (c *watched) rests(t *testing.T) {
	t.Helper()
	select {
	case <-c.ended:
		t.Fatalf("WatchPlace has returned %+v, %v", c.place, c.err)
	default:
	}
}

// returns waits until the call has returned, which must be within the bound.
func (c *watched) returns(t *testing.T, bound time.Duration) {
	t.Helper()
	watch := calm.Start(t)
	select {
	case <-c.ended:
		watch.Within(bound, "WatchPlace")
	case <-time.After(time.Minute):
		t.Fatal("WatchPlace has not returned after a minute")
	}
}

// TestPlaceReads counts what a waiter asks for. Who has seen the head of the line in front of it reads
// single keys when that has gone. Who has not reads two keys of the line.
func TestPlaceReads(t *testing.T) {
	t.Parallel()
	addr := sharedEtcd(t).Addrs()[0]
	name := coordtest.Name(t)
	front := newClient(t, addr).session(t)
	b, w := wired(t, addr, patient)
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	one, two := join(t, front, name, "1"), join(t, front, name, "2")
	three := join(t, s, name, "3")
	leave := func(m backend.Member) {
		t.Helper()
		if err := front.Leave(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}

	c := w.watch(t, s, three)
	leave(two) // one stood in front of it, which three has seen
	c.returns(t, takeover)
	if c.err != nil || c.place.First || c.place.Ahead.Position != one.Position {
		t.Errorf("WatchPlace: %+v, %v; want behind %+v", c.place, c.err, one)
	}
	if sent := w.asked(); !slices.Equal(sent, []string{"key; key; folder, 2 keys"}) {
		t.Errorf("when one of two in front had gone, it sent %q", sent)
	}

	c = w.watch(t, s, three)
	for range 20 {
		join(t, front, name, "behind")
	}
	leave(one)
	c.returns(t, takeover)
	if c.err != nil || !c.place.First || c.place.Token != three.Position {
		t.Errorf("WatchPlace: %+v, %v; want First with token %d", c.place, c.err, three.Position)
	}
	if sent := w.asked(); !slices.Equal(sent, []string{"key; key"}) {
		t.Errorf("when the only one in front had gone, it sent %q", sent)
	}
}

// TestPlaceMoved attaches the member in front, and the one that waits, to other leases, as a session
// does when etcd has changed its leader. Nobody is woken. It then takes the lease away, which pins.
func TestPlaceMoved(t *testing.T) {
	t.Parallel()
	addr := sharedEtcd(t).Addrs()[0]
	operator, name := admin(t, addr), coordtest.Name(t)
	front := newClient(t, addr).session(t)
	b, w := wired(t, addr, patient)
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	members := []backend.Member{join(t, front, name, "1"), join(t, s, name, "2")}
	lease, err := operator.Grant(t.Context(), 60)
	if err != nil {
		t.Fatal(err)
	}
	for _, first := range []bool{false, true} {
		c := w.watch(t, s, members[1])
		write := func(m backend.Member, opts ...clientv3.OpOption) {
			t.Helper()
			if _, err := operator.Put(t.Context(), name+"/"+m.Key, "", append(opts, clientv3.WithIgnoreValue())...); err != nil {
				t.Fatal(err)
			}
		}
		for _, m := range members {
			write(m, clientv3.WithLease(lease.ID))
		}
		time.Sleep(ttl / 10) // nothing tells that it has seen that
		c.rests(t)
		if sent := w.asked(); len(sent) > 0 {
			t.Errorf("a member was moved to another lease, and WatchPlace sent %q", sent)
		}
		write(members[0])
		c.returns(t, takeover)
		if c.err != nil || c.place.First != first {
			t.Errorf("WatchPlace: %+v, %v; want First: %t", c.place, c.err, first)
		}
		if !first { // the second stands first from now on
			if _, err := operator.Delete(t.Context(), name+"/"+members[0].Key); err != nil {
				t.Fatal(err)
			}
			members = members[1:]
			members = append(members, members[0])
		}
	}
}

// TestLeaveFirst has the leader leave while its place is watched. The request to leave goes out before
// anything else, and the watch returns without asking.
func TestLeaveFirst(t *testing.T) {
	t.Parallel()
	b, w := wired(t, sharedEtcd(t).Addrs()[0], patient)
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m := join(t, s, coordtest.Name(t), "x")
	for _, how := range []string{"beside the watch", "after the watch"} {
		c := w.watch(t, s, m)
		ctx, cancel := context.WithCancel(t.Context())
		gone, ended := make(chan error, 1), time.Time{}
		go func() { gone <- s.Gone(ctx, m) }()
		for ctx := within(t, time.Minute); !slices.Contains(w.take(), "key"); time.Sleep(time.Millisecond) {
			if ctx.Err() != nil {
				t.Fatal("Gone does not look")
			}
		}
		if how == "after the watch" {
			ended = time.Now()
			cancel()
			<-gone
		}
		if err := s.Leave(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		c.returns(t, takeover)
		if !errors.Is(c.err, backend.ErrNotMember) {
			t.Errorf("%s: WatchPlace of a member that left: %+v, %v; want ErrNotMember", how, c.place, c.err)
		}
		cancel()
		sent := w.take()
		for ctx := within(t, time.Minute); len(sent) < 4 && ctx.Err() == nil; time.Sleep(time.Millisecond) {
			sent = append(sent, w.take()...)
		}
		if late := w.deleted.Sub(ended); !ended.IsZero() && late > etcd.Sweep {
			t.Logf("calm: not judged: Leave was called %v after the watch had ended", late)
		} else if want := []string{"delete", "cancel", "cancel", "cancel"}; !slices.Equal(sent, want) {
			t.Errorf("%s: leaving sent %q; want %q", how, sent, want)
		}
		m = join(t, s, m.Line, "x")
	}
}

// TestPlaceSilent has the stream of watches fall silent. A waiter sends nothing at rest; the stream is
// given up for all waiters together, and they see what has happened meanwhile.
func TestPlaceSilent(t *testing.T) {
	t.Parallel()
	addr := sharedEtcd(t).Addrs()[0]
	front := newClient(t, addr).session(t)
	const ttl = 8 * time.Second
	b, w := wired(t, addr, ttl)
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var ahead []backend.Member
	var waiters []*watched
	for i := range 3 {
		name := fmt.Sprintf("%s-%d", coordtest.Name(t), i)
		ahead = append(ahead, join(t, front, name, "1"))
		waiters = append(waiters, w.watch(t, s, join(t, s, name, "2")))
	}
	watch, before := calm.Start(t), w.probed()
	time.Sleep(ttl) // at rest
	sent, probes := w.asked(), w.probed()-before
	if (len(sent) > 0 || probes < 2 || probes > 4) && !watch.NotJudged(ttl/4, "%q and %d probes", sent, probes) {
		t.Errorf("three waiters at rest have sent %q and %d probes in a TTL; want about three probes", sent, probes)
	}
	w.mute()
	for _, m := range ahead[:2] {
		if err := front.Leave(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	for _, c := range waiters[:2] {
		c.returns(t, ttl)
		if c.err != nil || !c.place.First {
			t.Errorf("WatchPlace: %+v, %v; want First", c.place, c.err)
		}
	}
	t.Logf("a silent stream cost %v", time.Since(began))
	waiters[2].rests(t)
	if err := front.Leave(t.Context(), ahead[2]); err != nil {
		t.Fatal(err)
	}
	waiters[2].returns(t, takeover)
}

// TestHead reads the head of a line in whose folder lie other keys.
func TestHead(t *testing.T) {
	t.Parallel()
	addr := sharedEtcd(t).Addrs()[0]
	operator, name := admin(t, addr), coordtest.Name(t)
	b, w := wired(t, addr, patient)
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	head := func(want backend.Member, requests ...string) {
		t.Helper()
		w.take()
		h, err := s.Head(t.Context(), name)
		if sent := w.take(); !slices.Equal(sent, requests) {
			t.Errorf("Head has sent %q; want %q", sent, requests)
		}
		l, lerr := s.Line(t.Context(), name)
		if err := errors.Join(err, lerr); err != nil {
			t.Fatal(err)
		}
		l.Members = l.Members[:min(1, len(l.Members))]
		if !kit.SameMembers(h, l) || h.Header != l.Header || h.Version != l.Version {
			t.Errorf("Head says %+v, and Line %+v", h, l)
		}
		if want != (backend.Member{}) && (len(h.Members) != 1 || h.Members[0] != want) {
			t.Errorf("Head says %+v; want %+v", h.Members, want)
		}
	}
	head(backend.Member{}, "folder, 1 keys; key")
	one := join(t, s, name, "1")
	join(t, s, name, "2")
	if _, err := s.Put(t.Context(), name, backend.Header{Fence: 7}.Encode(), nil); err != nil {
		t.Fatal(err)
	}
	head(one, "folder, 1 keys; key")
	stray := name + "-stray/x"
	if _, err := operator.Put(t.Context(), stray, "x"); err != nil {
		t.Fatal(err)
	}
	name += "-stray"
	head(backend.Member{}, "folder, 1 keys; key", "folder, 0 keys; key")
	three := join(t, s, name, "3")
	head(three, "folder, 1 keys; key", "folder, 0 keys; key")
}

// TestTogether has many members of one line look at the same time: most share views of the line.
func TestTogether(t *testing.T) {
	t.Parallel()
	const n = 300
	name := coordtest.Name(t)
	b, w := wired(t, sharedEtcd(t).Addrs()[0], patient)
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var members []backend.Member
	for range n {
		members = append(members, join(t, s, name, "x"))
	}
	if _, err := s.Put(t.Context(), name, backend.Header{Fence: 7}.Encode(), nil); err != nil {
		t.Fatal(err)
	}
	gone := members[n/2]
	if err := s.Leave(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	w.take()
	var all sync.WaitGroup
	for i, m := range members {
		all.Go(func() {
			p, err := s.Ahead(t.Context(), m)
			switch {
			case m == gone:
				if !errors.Is(err, backend.ErrNotMember) {
					t.Errorf("Ahead of a member that left: %+v, %v; want ErrNotMember", p, err)
				}
			case err != nil:
				t.Error(err)
			case i == 0:
				if !p.First || p.Token != 7+m.Position {
					t.Errorf("Ahead of the first says %+v", p)
				}
			default:
				want := members[i-1]
				if want == gone {
					want = members[i-2]
				}
				if p.First || p.Ahead.Key != want.Key || p.Ahead.Position != want.Position || p.Header.Fence != 7 {
					t.Errorf("Ahead of member %d says %+v; want %+v in front", i, p, want)
				}
			}
		})
	}
	all.Wait()
	sent := w.take()
	views := 0
	for _, what := range sent {
		if what == "folder, 0 keys; key" {
			views++
		}
	}
	t.Logf("%d looks took %d requests, %d of them views", n, len(sent), views)
	if views == 0 || len(sent) > n/2 {
		t.Errorf("%d looks took %d requests, %d of them views", n, len(sent), views)
	}

	// A view tells neither who is pinned nor what a strange key is.
	if err := s.Pin(t.Context(), members[0], backend.Header{Fence: 7, Sealed: "elsewhere"}, 0); err != nil {
		t.Fatal(err)
	}
	for i, m := range members[:2*n/3] {
		all.Go(func() {
			p, err := s.Ahead(t.Context(), m)
			if i == 0 && (err != nil || !p.First) || i > 0 && m != gone && !errors.Is(err, backend.ErrSealed) {
				t.Errorf("Ahead of member %d in a sealed election: %+v, %v", i, p, err)
			}
		})
	}
	all.Wait()
}
