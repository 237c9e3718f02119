package zookeeper_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/zookeeper"
)

// raw returns a connection of an ordinary client: an operator, or a stranger.
func raw(t testing.TB, addr string) *zk.Conn {
	t.Helper()
	c, events, err := zk.Connect([]string{addr}, 20*time.Second, zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	for ev := range events {
		if ev.State == zk.StateHasSession {
			return c
		}
	}
	t.Fatal("no session")
	return nil
}

func TestHandover(t *testing.T) {
	a := session(t, open(t, zookeeper.Options{}, server(t)))
	b := session(t, open(t, zookeeper.Options{}, server(t)))
	ma, mb := join(t, a, "app/e", "a"), join(t, b, "app/e", "b")
	if mb.Position <= ma.Position || ma.Key != "n_0000000000" || mb.Key != "n_0000000001" {
		t.Fatalf("members %+v, %+v", ma, mb)
	}
	pa := ahead(t, a, ma)
	if !pa.First || pa.Token != ma.Position {
		t.Fatalf("first: %+v, want token %d", pa, ma.Position)
	}
	if left := time.Until(a.Deadline()); left <= 0 || left > a.TTL() {
		t.Fatalf("leader's deadline is in %v", left)
	}
	pb := ahead(t, b, mb)
	if pb.First || pb.Ahead.Key != ma.Key {
		t.Fatalf("second: %+v", pb)
	}
	gone := background(func() error { return b.Gone(t.Context(), pb.Ahead) })
	still(t, gone, 50*time.Millisecond)
	if err := a.Leave(t.Context(), ma); err != nil {
		t.Fatal(err)
	}
	if err := result(t, gone, time.Second); err != nil {
		t.Fatal(err)
	}
	if p := ahead(t, b, mb); !p.First || p.Token != mb.Position {
		t.Fatalf("heir: %+v", p)
	}
	if err := a.Leave(t.Context(), ma); err != nil {
		t.Fatalf("leaving twice: %v", err)
	}
	if _, err := a.Ahead(t.Context(), ma); !errors.Is(err, backend.ErrNotMember) {
		t.Fatalf("Ahead after Leave: %v", err)
	}
}

func TestOwnNodeDeleted(t *testing.T) {
	b := open(t, zookeeper.Options{}, server(t))
	s := session(t, b)
	m := join(t, s, "e", "")
	ahead(t, s, m)
	gone := background(func() error { return s.Gone(t.Context(), m) })
	still(t, gone, 50*time.Millisecond)
	if err := raw(t, server(t)).Delete(chroot(t)+"/e/"+m.Key, -1); err != nil {
		t.Fatal(err)
	}
	if err := result(t, gone, time.Second); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Ahead(t.Context(), m); !errors.Is(err, backend.ErrNotMember) {
		t.Fatal(err)
	}
}

// The heartbeat finds out even where nobody watches.
func TestHeartbeatFindsMemberGone(t *testing.T) {
	t.Parallel()
	watch := calm.Start(t)
	s := session(t, open(t, zookeeper.Options{TTL: 4 * time.Second}, server(t)))
	m := join(t, s, "e", "")
	ahead(t, s, m)
	if err := raw(t, server(t)).Delete(chroot(t)+"/e/"+m.Key, -1); err != nil {
		t.Fatal(err)
	}
	deleted := time.Now()
	time.Sleep(s.TTL() * 7 / 10) // several heartbeats
	if ahead := s.Deadline().Sub(deleted); ahead > s.TTL() {
		t.Errorf("the deadline is %v after the member had gone: a later heartbeat was taken as its proof", ahead)
	}
	if err := s.Err(); err != nil && !watch.NotJudged(s.TTL()/4, "the session has ended: %v", err) {
		t.Error("the session must go on without the member: ", err)
	}
}

// Under the same name there may be another's member, in a line that was deleted
// and created anew.
func TestLineRecreated(t *testing.T) {
	s := session(t, open(t, zookeeper.Options{}, server(t)))
	other := session(t, open(t, zookeeper.Options{}, server(t)))
	m := join(t, s, "e", "mine")
	op := raw(t, server(t))
	for _, path := range []string{"/e/" + m.Key, "/e"} {
		if err := op.Delete(chroot(t)+path, -1); err != nil {
			t.Fatal(err)
		}
	}
	m2 := join(t, other, "e", "other")
	if m2.Key != m.Key || m2.Position <= m.Position {
		t.Fatalf("the test needs the same name again: %+v, %+v", m, m2)
	}
	if _, err := s.Ahead(t.Context(), m); !errors.Is(err, backend.ErrNotMember) {
		t.Errorf("Ahead: %v", err)
	}
	if err := s.Gone(within(t, time.Minute), m); err != nil {
		t.Errorf("Gone: %v", err)
	}
	if err := s.Leave(t.Context(), m); err != nil {
		t.Errorf("Leave: %v", err)
	}
	if _, err := s.Put(t.Context(), "r", nil, &backend.If{Member: m}); !errors.Is(err, backend.ErrNotMember) {
		t.Errorf("Put: %v", err)
	}
	if l := line(t, other, "e"); len(l.Members) != 1 || l.Members[0] != m2 {
		t.Errorf("the other's member: %+v, want %+v", l.Members, m2)
	}
	if err := other.Leave(t.Context(), m); err != nil {
		t.Errorf("Leave of another's member that has gone: %v", err)
	}
	if p := ahead(t, other, m2); !p.First {
		t.Errorf("%+v", p)
	}
}

// A watch tells nothing once its connection has broken. Leave, whose delete went into the void,
// reads the znode on the next connection, and finds another's.
func TestLeaveOnSilentConnection(t *testing.T) {
	front := coordtest.NewProxy(t, server(t))
	s := session(t, open(t, zookeeper.Options{}, front.Addr()))
	other := session(t, open(t, zookeeper.Options{}, server(t)))
	m := join(t, s, "e", "mine")
	at := chroot(t) + "/e/" + m.Key
	ctx, cancel := context.WithCancel(t.Context())
	gone := background(func() error { return s.Gone(ctx, m) })
	eventually(t, 5*time.Second, "the watch", func() bool {
		dump, err := coordtest.FourLetter(t.Context(), server(t), "wchp")
		return err == nil && strings.Contains(dump, at)
	})
	cancel() // the watch stays
	if err := result(t, gone, time.Second); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	front.Cut()
	op := raw(t, server(t))
	for _, path := range []string{at, chroot(t) + "/e"} {
		if err := op.Delete(path, -1); err != nil {
			t.Fatal(err)
		}
	}
	m2 := join(t, other, "e", "other")
	if m2.Key != m.Key {
		t.Fatalf("the test needs the same name again: %+v, %+v", m, m2)
	}
	left := background(func() error { return s.Leave(t.Context(), m) })
	still(t, left, 50*time.Millisecond) // its request is held back, and lost with the connection
	front.Reset()
	front.Heal()
	if err := result(t, left, 5*time.Second); err != nil {
		t.Error(err)
	}
	if l := line(t, other, "e"); len(l.Members) != 1 || l.Members[0] != m2 {
		t.Errorf("the other's member: %+v, want %+v", l.Members, m2)
	}
}

func TestLeaveIsGuarded(t *testing.T) {
	a := session(t, open(t, zookeeper.Options{}, server(t)))
	b := session(t, open(t, zookeeper.Options{}, server(t)))
	m := join(t, a, "e", "")
	if err := b.Leave(t.Context(), m); !errors.Is(err, backend.ErrDenied) {
		t.Errorf("leave of another's member: %v", err)
	}
	if err := b.Pin(t.Context(), m, backend.Header{}, backend.Absent); !errors.Is(err, backend.ErrDenied) {
		t.Errorf("pin of another's member: %v", err)
	}
	if l := line(t, a, "e"); len(l.Members) != 1 {
		t.Errorf("line %+v", l)
	}
}

// Foreign participants name their members as they like; the number orders them.
func TestForeignMembers(t *testing.T) {
	op := raw(t, server(t))
	s := session(t, open(t, zookeeper.Options{}, server(t)))
	m0 := join(t, s, "e", "0")
	e := chroot(t) + "/e/"
	for _, name := range []string{
		"_c_6c1bd6c0-5b1a-4d5e-9f0a-2a5e3f1d8c77-latch-", "9f86d081884c7d659a2feaa0c55ad015__lock__", "not-a-member",
	} {
		flags := int32(zk.FlagEphemeralSequential)
		if name == "not-a-member" {
			flags = zk.FlagEphemeral
		}
		if _, err := op.Create(e+name, []byte("foreign"), flags, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
	}
	m4 := join(t, s, "e", "4")
	want := []string{
		m0.Key, "_c_6c1bd6c0-5b1a-4d5e-9f0a-2a5e3f1d8c77-latch-0000000001",
		"9f86d081884c7d659a2feaa0c55ad015__lock__0000000002", m4.Key,
	}
	l := line(t, s, "e")
	if len(l.Members) != len(want) {
		t.Fatalf("line %+v", l.Members)
	}
	for i, m := range l.Members {
		if m.Key != want[i] {
			t.Errorf("member %d is %s, want %s", i, m.Key, want[i])
		}
	}
	p := ahead(t, s, m4)
	if p.First || p.Ahead.Key != want[2] {
		t.Fatalf("%+v", p)
	}
	// A stranger may rewrite its own data: that is no departure.
	gone := background(func() error { return s.Gone(t.Context(), p.Ahead) })
	still(t, gone, 50*time.Millisecond)
	if _, err := op.Set(e+want[2], []byte("rewritten"), -1); err != nil {
		t.Fatal(err)
	}
	still(t, gone, 50*time.Millisecond)
	if err := op.Delete(e+want[2], -1); err != nil {
		t.Fatal(err)
	}
	if err := result(t, gone, time.Second); err != nil {
		t.Fatal(err)
	}
	if p := ahead(t, s, m4); p.First || p.Ahead.Key != want[1] {
		t.Fatalf("after a departure from the middle: %+v", p)
	}
}

func TestBadNumbers(t *testing.T) {
	for _, name := range []string{"n_-2147483648", "n_00000000001", "n_2147483648", "x_0000000000"} {
		t.Run(name, func(t *testing.T) {
			op := raw(t, server(t))
			s := session(t, open(t, zookeeper.Options{}, server(t)))
			m := join(t, s, "e", "")
			if _, err := op.Create(chroot(t)+"/e/"+name, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Ahead(t.Context(), m); !errors.Is(err, backend.ErrLine) {
				t.Errorf("Ahead: %v", err)
			}
			if _, err := s.Line(t.Context(), "e"); !errors.Is(err, backend.ErrLine) {
				t.Errorf("Line: %v", err)
			}
		})
	}
}

func TestPinAndSeal(t *testing.T) {
	ba := open(t, zookeeper.Options{}, server(t))
	a, b := session(t, ba), session(t, open(t, zookeeper.Options{}, server(t)))
	ma, mb := join(t, a, "e", "gate"), join(t, b, "e", "b")
	ahead(t, a, ma)
	h := backend.Header{Fence: 100, Sealed: "etcd://h1:2379/x"}
	if err := a.Pin(t.Context(), ma, h, 17); !errors.Is(err, backend.ErrVersion) {
		t.Fatalf("pin at a version that never was: %v", err)
	}
	if err := a.Pin(t.Context(), ma, h, backend.Absent); err != nil {
		t.Fatal(err)
	}
	if err := a.Pin(t.Context(), ma, h, backend.Absent); err != nil {
		t.Fatalf("pin again: %v", err)
	}
	if p := ahead(t, a, ma); !p.First || p.Token != 100+ma.Position {
		t.Errorf("who sealed still leads: %+v", p)
	}
	var sealed *backend.SealedError
	if _, err := b.Ahead(t.Context(), mb); !errors.As(err, &sealed) || sealed.To != h.Sealed {
		t.Errorf("behind a seal: %v", err)
	}
	if err := ba.Close(); err != nil {
		t.Fatal(err)
	}
	l := line(t, b, "e")
	pinned := ma
	pinned.Pinned = true
	if len(l.Members) != 2 || l.Members[0] != pinned || l.Members[1] != mb || l.Header != h {
		t.Fatalf("after the session: %+v", l)
	}
	if p := ahead(t, b, ma); !p.First || p.Token != 100+ma.Position {
		t.Errorf("the gate's place, as another session sees it: %+v", p)
	}
	if err := b.Leave(t.Context(), backend.Member{Line: "e", Key: ma.Key, Position: ma.Position + 1}); err != nil {
		t.Fatal(err)
	}
	if l := line(t, b, "e"); len(l.Members) != 2 {
		t.Error("a pinned member was removed by one who does not know its position")
	}
	if err := b.Leave(t.Context(), l.Members[0]); err != nil {
		t.Fatal(err)
	}
	if l := line(t, b, "e"); len(l.Members) != 1 {
		t.Errorf("pinned member stands: %+v", l)
	}
	if _, err := b.Ahead(t.Context(), mb); !errors.Is(err, backend.ErrSealed) {
		t.Errorf("sealed, and the gate was removed: %v", err)
	}
}

// WatchLine returns what Line returns, for each way in which a line changes, and for nothing else.
func TestWatchLine(t *testing.T) {
	a := session(t, open(t, zookeeper.Options{}, server(t)))
	b := session(t, open(t, zookeeper.Options{}, server(t)))
	op := raw(t, server(t))
	ctx, e := t.Context(), chroot(t)+"/e"
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	create := func(name string) {
		t.Helper()
		_, err := op.Create(e+"/"+name, []byte(name), zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		must(err)
	}
	var seen backend.Line
	var watch <-chan error
	change := func(what string, do func(), want ...string) {
		t.Helper()
		var now backend.Line
		watch = background(func() (err error) {
			now, err = a.WatchLine(ctx, "e", seen)
			return err
		})
		still(t, watch, 50*time.Millisecond)
		do()
		if err := result(t, watch, time.Second); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		var values []string
		for _, m := range now.Members {
			values = append(values, m.Value)
		}
		if l := line(t, b, "e"); !reflect.DeepEqual(now, l) || !slices.Equal(values, want) {
			t.Fatalf("%s: WatchLine %+v, Line %+v; want %q", what, now, l, want)
		}
		seen = now
	}

	var first, second, item backend.Member
	change("the first joins", func() { first = join(t, b, "e", "first") }, "first")
	change("it leaves", func() { must(b.Leave(ctx, first)) })
	change("it joins again", func() { first = join(t, b, "e", "first") }, "first")
	change("an item comes, after what is no member", func() {
		create("lock")
		_, err := b.Put(ctx, "e", backend.Header{Fence: 7}.Encode(), nil)
		must(err)
		still(t, watch, 50*time.Millisecond)
		item = appendItem(t, b, "e", "item")
	}, "first", "item")
	change("one that chose its number", func() { create("n_1500000000") }, "first", "item", "n_1500000000")
	change("one joins in front of it", func() { second = join(t, b, "e", "second") }, "first", "item", "second", "n_1500000000")
	change("the item is removed", func() { must(b.Remove(ctx, item, first)) }, "first", "second", "n_1500000000")

	// One goes and one comes between two calls: there are as many as before, and the last is the same.
	must(b.Leave(ctx, second))
	join(t, b, "e", "third")
	if now, err := a.WatchLine(within(t, time.Minute), "e", seen); err != nil || !reflect.DeepEqual(now, line(t, b, "e")) {
		t.Errorf("after what is over: %+v, %v", now, err)
	}
}

// A line that was deleted has the same numbers again when it is made anew.
func TestWatchLineRecreated(t *testing.T) {
	a := session(t, open(t, zookeeper.Options{}, server(t)))
	b := session(t, open(t, zookeeper.Options{}, server(t)))
	op := raw(t, server(t))
	old := join(t, b, "e", "old")
	seen := line(t, a, "e")
	for _, path := range []string{"/e/" + old.Key, "/e"} {
		if err := op.Delete(chroot(t)+path, -1); err != nil {
			t.Fatal(err)
		}
	}
	anew := join(t, b, "e", "new")
	l, err := a.WatchLine(within(t, time.Minute), "e", seen)
	if err != nil || anew.Key != old.Key || len(l.Members) != 1 || l.Members[0] != anew {
		t.Errorf("after %+v: %+v, %v; want %+v", old, l, err, anew)
	}
}

func TestDenied(t *testing.T) {
	op := raw(t, server(t))
	if _, err := op.Create(chroot(t), []byte{}, 0, zk.WorldACL(zk.PermRead)); err != nil {
		t.Fatal(err)
	}
	s := session(t, open(t, zookeeper.Options{}, server(t)))
	if _, err := s.Join(t.Context(), "e", "", ""); !errors.Is(err, backend.ErrDenied) {
		t.Errorf("Join: %v", err)
	}
	if _, err := s.Put(t.Context(), "r", nil, nil); !errors.Is(err, backend.ErrDenied) {
		t.Errorf("Put: %v", err)
	}
}

func TestInvalid(t *testing.T) {
	s := session(t, open(t, zookeeper.Options{}, server(t)))
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("why")
	cancel(why)
	for name, err := range map[string]error{
		"name":  second(s.Join(t.Context(), "/e", "", "")),
		"value": second(s.Join(t.Context(), "e", "\xff", "")),
		"key":   s.Leave(t.Context(), backend.Member{Line: "e", Key: "a/b", Position: 1}),
	} {
		if !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.Join(ctx, "e", "", ""); !errors.Is(err, why) {
		t.Errorf("context's cause: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }
