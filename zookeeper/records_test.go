package zookeeper_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/zookeeper"
)

func TestRecords(t *testing.T) {
	s := session(t, open(t, zookeeper.Options{}, server(t)))
	ctx := within(t, time.Minute)
	var versions []backend.Version
	put := func(name, value string, cond *backend.If, want error) {
		t.Helper()
		v, err := s.Put(ctx, name, []byte(value), cond)
		if !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Fatalf("put %s %q: %v, want %v", name, value, err, want)
		}
		if err != nil {
			return
		}
		if slices.Contains(versions, v) || v <= 0 {
			t.Fatalf("version %d again, after %v", v, versions)
		}
		versions = append(versions, v)
		r, err := s.Get(ctx, name)
		if err != nil || r.Version != v || string(r.Value) != value || r.Name != name {
			t.Fatalf("put %q, version %d; got %+v, %v", value, v, r, err)
		}
	}
	last := func() backend.Version { return versions[len(versions)-1] }

	if r, err := s.Get(ctx, "a/b"); err != nil || r.Version != backend.Absent || r.Value != nil {
		t.Fatalf("%+v, %v", r, err)
	}
	put("a/b", "1", &backend.If{Version: 77}, backend.ErrVersion)
	put("a/b", "1", &backend.If{Version: backend.Absent}, nil)
	put("a/b", "2", &backend.If{Version: backend.Absent}, backend.ErrVersion)
	put("a/b", "2", &backend.If{Version: last()}, nil)
	put("a/b", "3", &backend.If{Version: versions[0]}, backend.ErrVersion)
	put("a/b", "3", nil, nil)
	for _, v := range []string{"", "\x00", "\x00\x00", "\x00x", "x\x00"} {
		put("a/b", v, nil, nil)
	}
	// The parent is not a record, and becomes one.
	put("a", "parent", &backend.If{Version: backend.Absent}, nil)
	put("z", "", nil, nil)
	if err := s.Delete(ctx, "z", nil); err != nil {
		t.Fatal(err)
	}
	// A deleted record gets a version that it never had.
	if err := s.Delete(ctx, "a/b", &backend.If{Version: versions[0]}); !errors.Is(err, backend.ErrVersion) {
		t.Fatal(err)
	}
	b, _ := s.Get(ctx, "a/b")
	if err := s.Delete(ctx, "a/b", &backend.If{Version: b.Version}); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(ctx, "a/b", nil); err != nil {
		t.Fatal("delete again: ", err)
	}
	if err := s.Delete(ctx, "a/b", &backend.If{Version: b.Version}); !errors.Is(err, backend.ErrVersion) {
		t.Fatal(err)
	}
	put("a/b", "1", &backend.If{Version: backend.Absent}, nil)

	// One with others beneath it.
	put("a/c/d", "", nil, nil)
	if err := s.Delete(ctx, "a", nil); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Get(ctx, "a"); err != nil || r.Version != backend.Absent {
		t.Fatalf("%+v, %v", r, err)
	}
	join(t, s, "a", "a member is not a record")
	for dir, want := range map[string]string{"a": "[a/b]", "a/c": "[a/c/d]", "none": "[]"} {
		names, err := s.List(ctx, dir)
		if err != nil || fmt.Sprint(names) != want {
			t.Errorf("list %q: %v, %v; want %s", dir, names, err, want)
		}
	}
	if _, err := s.Put(ctx, "big", make([]byte, backend.MaxRecord+1), nil); !errors.Is(err, backend.ErrInvalid) {
		t.Error(err)
	}
	big := bytes.Repeat([]byte("x"), backend.MaxRecord)
	put("big", string(big), nil, nil)
}

// Records may be called like members: the znode tells which it is.
func TestListNumbers(t *testing.T) {
	s := session(t, open(t, zookeeper.Options{}, server(t)))
	ctx := within(t, time.Minute)
	want := []string{"jobs/1700000000", "jobs/backup-20261122103000", "jobs/n_-000000001", "jobs/n_0000000007"}
	for _, name := range want {
		if _, err := s.Put(ctx, name, []byte("x"), nil); err != nil {
			t.Fatal(err)
		}
	}
	if names, err := s.List(ctx, "jobs"); err != nil || !slices.Equal(names, want) {
		t.Errorf("records: %q, %v; want %q", names, err, want)
	}
	m := join(t, s, "e", "pinned")
	join(t, s, "e", "ephemeral")
	if err := s.Pin(ctx, m, backend.Header{}, backend.Absent); err != nil {
		t.Fatal(err)
	}
	if names, err := s.List(ctx, "e"); err != nil || len(names) != 0 {
		t.Errorf("members: %q, %v", names, err)
	}
}

func TestGuardedWrite(t *testing.T) {
	s := session(t, open(t, zookeeper.Options{}, server(t)))
	ctx := within(t, time.Minute)
	m := join(t, s, "e", "")
	cond := &backend.If{Member: m}
	for _, name := range []string{"r", "e", "new/one"} {
		if _, err := s.Put(ctx, name, []byte("x"), cond); err != nil {
			t.Errorf("%s, while the member stands: %v", name, err)
		}
	}
	if err := s.Leave(ctx, m); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"r", "e", "newer"} {
		if _, err := s.Put(ctx, name, []byte("y"), cond); !errors.Is(err, backend.ErrNotMember) {
			t.Errorf("%s, after it left: %v", name, err)
		}
		if err := s.Delete(ctx, name, cond); !errors.Is(err, backend.ErrNotMember) {
			t.Errorf("delete %s, after it left: %v", name, err)
		}
	}
	if r, err := s.Get(ctx, "r"); err != nil || string(r.Value) != "x" {
		t.Errorf("%+v, %v", r, err)
	}
}

// If the member goes between the reads and the write of a record that does not exist yet, the write says so, and not that a right is
// missing which it does not need.
func TestGuardedWriteWhenTheMemberGoes(t *testing.T) {
	admin := raw(t, server(t))
	for _, path := range []string{chroot(t), chroot(t) + "/app"} {
		if _, err := admin.Create(path, []byte{}, 0, zk.WorldACL(zk.PermAll)); err != nil && err != zk.ErrNodeExists {
			t.Fatal(err)
		}
	}
	var before atomic.Pointer[func()] // what happens before the next transaction is sent
	s := session(t, open(t, zookeeper.Options{Prefix: chroot(t) + "/app", Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		return &delayed{conn, &before}, err
	}}, server(t)))
	m := join(t, s, "e", "")
	t.Cleanup(func() { admin.SetACL(chroot(t), zk.WorldACL(zk.PermAll), -1) })
	if _, err := admin.SetACL(chroot(t), zk.WorldACL(zk.PermAll&^zk.PermCreate), -1); err != nil {
		t.Fatal(err)
	}
	gone := errors.New("no transaction was sent")
	leaves := func() { gone = admin.Delete(chroot(t)+"/app/e/"+m.Key, -1) }
	before.Store(&leaves)
	if _, err := s.Put(within(t, time.Minute), "r", []byte("x"), &backend.If{Member: m}); !errors.Is(err, backend.ErrNotMember) {
		t.Error(err)
	}
	if gone != nil {
		t.Error(gone)
	}
}

// delayed is a connection on which something happens before a transaction is sent, once.
type delayed struct {
	net.Conn
	before *atomic.Pointer[func()]
}

func (d *delayed) Write(b []byte) (int, error) {
	if len(b) >= 12 && binary.BigEndian.Uint32(b[8:]) == opMulti {
		if f := d.before.Swap(nil); f != nil {
			(*f)()
		}
	}
	return d.Conn.Write(b)
}

func TestFence(t *testing.T) {
	s := session(t, open(t, zookeeper.Options{}, server(t)))
	ctx := within(t, time.Minute)
	m := join(t, s, "e", "")
	if _, err := s.Put(ctx, "e", backend.Header{Fence: 1000}.Encode(), nil); err != nil {
		t.Fatal(err)
	}
	if p := ahead(t, s, m); p.Token != 1000+m.Position {
		t.Errorf("%+v", p)
	}
	if l := line(t, s, "e"); l.Header.Fence != 1000 || l.Token(m) != 1000+m.Position {
		t.Errorf("%+v", l)
	}
	if _, err := s.Put(ctx, "e", []byte(`{"succession":2,"fence":-1}`), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Ahead(ctx, m); !errors.Is(err, backend.ErrHeader) {
		t.Error(err)
	}
}

func TestWatch(t *testing.T) {
	a := session(t, open(t, zookeeper.Options{}, server(t)))
	b := session(t, open(t, zookeeper.Options{}, server(t)))
	ctx := within(t, time.Minute)
	after := backend.Version(0)
	next := func() <-chan error {
		return background(func() error {
			r, err := a.Watch(ctx, "d/r", after)
			after = r.Version
			return err
		})
	}
	if err := result(t, next(), time.Second); err != nil || after != backend.Absent {
		t.Fatal(after, err)
	}
	steps := []func() error{
		func() error { _, err := b.Put(ctx, "d/r", nil, nil); return err },
		func() error { _, err := b.Put(ctx, "d/r", []byte("x"), nil); return err },
		func() error { return b.Delete(ctx, "d/r", nil) },
		func() error { _, err := b.Put(ctx, "d/r", []byte("y"), nil); return err },
		func() error { _, err := b.Put(ctx, "d/r", []byte("y"), nil); return err },
	}
	for i, step := range steps {
		w := next()
		still(t, w, 20*time.Millisecond)
		if err := step(); err != nil {
			t.Fatal(err)
		}
		if err := result(t, w, time.Second); err != nil {
			t.Fatal(err)
		}
		if r, err := b.Get(ctx, "d/r"); err != nil || r.Version != after {
			t.Errorf("step %d: watched version %d, got %+v, %v", i, after, r, err)
		}
	}
}
