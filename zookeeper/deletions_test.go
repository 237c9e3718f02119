package zookeeper_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/proxy"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/zookeeper"
)

// Between the read and the write of a client whose requests are slow, another one deletes the record, and makes
// and writes it as often as it was written before. Of the two that act on the old version only one may succeed.
func TestRecordMadeAnew(t *testing.T) {
	front := coordtest.NewProxy(t, server(t))
	slow := session(t, open(t, zookeeper.Options{}, front.Addr()))
	fast := session(t, open(t, zookeeper.Options{}, server(t)))
	ctx := within(t, 30*time.Second)
	for round := range 6 {
		at, err := fast.Put(ctx, "d/r", []byte("old"), &backend.If{Version: backend.Absent})
		if err != nil {
			t.Fatal(err)
		}
		front.Delay(proxy.ToServer, 200*time.Millisecond)
		before := front.Stats()
		late := background(func() error {
			if round%2 == 0 {
				return slow.Delete(ctx, "d/r", &backend.If{Version: at})
			}
			_, err := slow.Put(ctx, "d/r", []byte("late"), &backend.If{Version: at})
			return err
		})
		if err := front.Wait(ctx, func(s proxy.Stats) bool { return s.ToClient > before.ToClient }); err != nil {
			t.Fatal(err)
		}
		won := fast.Delete(ctx, "d/r", &backend.If{Version: at})
		if won == nil {
			if _, err := fast.Put(ctx, "d/r", []byte("new"), &backend.If{Version: backend.Absent}); err != nil {
				t.Error(err)
			}
		}
		lost := <-late
		if won == nil && !errors.Is(lost, backend.ErrVersion) || won != nil && (!errors.Is(won, backend.ErrVersion) || lost != nil) {
			t.Errorf("round %d: two acted on version %d: %v, %v", round, at, won, lost)
		}
		front.Delay(proxy.ToServer, 0)
		if err := fast.Delete(ctx, "d/r", nil); err != nil {
			t.Fatal(err)
		}
	}
}

// Who may not count a deletion empties the znode, which then goes on to count its own writes. Who may not
// begin to count writes nevertheless.
func TestUncountedDeletion(t *testing.T) {
	op := raw(t, server(t))
	if _, err := op.Create(chroot(t), nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	if _, err := op.Create(chroot(t)+"/d", nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	a := session(t, open(t, zookeeper.Options{Auth: alice}, server(t)))
	b := session(t, open(t, zookeeper.Options{Auth: bob}, server(t)))
	ctx := within(t, 20*time.Second)
	for _, s := range []backend.Session{a, b} { // alice begins to count, and bob may not
		v, err := s.Put(ctx, "d/r", []byte("x"), &backend.If{Version: backend.Absent})
		if err == nil {
			v, err = s.Put(ctx, "d/r", []byte("y"), &backend.If{Version: v})
		}
		if err == nil {
			err = s.Delete(ctx, "d/r", &backend.If{Version: v})
		}
		if err != nil {
			t.Fatal(err)
		}
		if r, err := a.Get(ctx, "d/r"); err != nil || r.Version != backend.Absent {
			t.Errorf("after the deletion: %+v, %v", r, err)
		}
	}
	if names, err := a.List(ctx, "d"); err != nil || len(names) != 0 {
		t.Errorf("List: %q, %v", names, err)
	}
	if names, _, err := op.Children(chroot(t) + "/d"); err != nil || !slices.Contains(names, "r") {
		t.Errorf("bob, who may not count, has deleted the znode: %q, %v", names, err)
	}

	// Nobody may make anything in the folder.
	if _, err := op.Create(chroot(t)+"/e", nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	if _, err := op.SetACL(chroot(t), zk.WorldACL(zk.PermRead|zk.PermAdmin), -1); err != nil {
		t.Fatal(err)
	}
	v, err := a.Put(ctx, "e", []byte("x"), nil)
	if err == nil {
		_, err = a.Put(ctx, "e", []byte("y"), &backend.If{Version: v})
	}
	if err != nil {
		t.Errorf("a write of a znode in a folder in which nothing may be made: %v", err)
	}
}
