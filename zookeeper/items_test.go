package zookeeper_test

import (
	"errors"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/zookeeper"
)

// Whatever the names of members, an item has the next number, and whoever joins later stands
// behind it.
func TestItems(t *testing.T) {
	op := raw(t, server(t))
	for _, as := range []zookeeper.Format{"", zookeeper.ElectionSupport, zookeeper.CuratorLatch, zookeeper.CuratorSelector, zookeeper.Kazoo} {
		ctx := within(t, time.Minute)
		election := "e-" + string(as)
		s := session(t, open(t, zookeeper.Options{As: as}, server(t)))
		by := join(t, s, "by", "")
		item := appendItem(t, s, election, "value")
		if data, _, err := op.Get(chroot(t) + "/" + election + "/" + item.Key); err != nil || string(data) != "value" {
			t.Errorf("as=%s: strangers read %q, %v", as, data, err)
		}
		behind := join(t, s, election, "")
		if p := ahead(t, s, behind); p.First || p.Ahead.Key != item.Key {
			t.Errorf("as=%s: behind the item: %+v", as, p)
		}
		if names, err := s.List(ctx, election); err != nil || len(names) != 0 {
			t.Errorf("as=%s: records %q, %v", as, names, err)
		}
		if err := s.Remove(ctx, behind, by); !errors.Is(err, backend.ErrDenied) {
			t.Errorf("as=%s: removal of a member that is not pinned: %v", as, err)
		}
		for range 2 {
			if err := s.Remove(ctx, item, by); err != nil {
				t.Errorf("as=%s: %v", as, err)
			}
		}
		if p := ahead(t, s, behind); !p.First {
			t.Errorf("as=%s: after the item: %+v", as, p)
		}
	}
}

// A value may look like the data of a pinned member, and be nothing at all.
func TestItemValues(t *testing.T) {
	s := session(t, open(t, zookeeper.Options{}, server(t)))
	var want []backend.Member
	for _, value := range []string{"", "\x00", "x\x00pinned at 1", "x\x00pinned at ", "x\x00pinned at \x00pinned at 7"} {
		want = append(want, appendItem(t, s, "q", value))
	}
	for i, m := range line(t, s, "q").Members {
		if m != want[i] {
			t.Errorf("item %d: %+v, want %+v", i, m, want[i])
		}
	}
	if names, err := s.List(t.Context(), "q"); err != nil || len(names) != 0 {
		t.Errorf("records %q, %v", names, err)
	}
}

// Remove does not take another's item for its own that has the same key, in a line that was
// deleted and made anew. Nor does it do so if the session has a watch on the item, as who has taken it.
func TestRemoveIsGuarded(t *testing.T) {
	t.Run("an item that was not looked at", func(t *testing.T) { removeIsGuarded(t, false) })
	t.Run("an item with a watch", func(t *testing.T) { removeIsGuarded(t, true) })
}

func removeIsGuarded(t *testing.T, watched bool) {
	s := session(t, open(t, zookeeper.Options{}, server(t)))
	op := raw(t, server(t))
	by := join(t, s, "by", "")
	old := appendItem(t, s, "q", "old")
	if watched {
		if m, err := s.Free(t.Context(), "q", "claims"); err != nil || m != old {
			t.Fatalf("the first that is free is %+v, %v", m, err)
		}
	}
	for _, path := range []string{"/q/" + old.Key, "/q"} {
		if err := op.Delete(chroot(t)+path, -1); err != nil {
			t.Fatal(err)
		}
	}
	anew := appendItem(t, s, "q", "new")
	if err := s.Remove(t.Context(), old, by); err != nil || anew.Key != old.Key {
		t.Errorf("removal of %+v: %v", old, err)
	}
	if l := line(t, s, "q"); len(l.Members) != 1 || l.Members[0] != anew {
		t.Errorf("there is %+v, want %+v", l.Members, anew)
	}
	other := by
	other.Position++
	if err := s.Remove(t.Context(), anew, other); !errors.Is(err, backend.ErrNotMember) {
		t.Errorf("removal by a member that never was: %v", err)
	}
}
