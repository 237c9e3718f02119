package zookeeper_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/recipes/lock"
	"github.com/succession-dev/succession/zookeeper"
)

// holds waits until these participants, and no others, hold the lock.
func (f *fleet) holds(want ...*coordtest.Peer) {
	f.t.Helper()
	held := func() []*coordtest.Peer {
		var held []*coordtest.Peer
		for _, t := range f.terms {
			if t.end.IsZero() {
				held = append(held, t.of)
			}
		}
		return held
	}
	f.await("the lock is held by "+strings.Join(ids(want), " and "), func() bool { return len(held()) >= len(want) })
	f.drain()
	got, wanted := ids(held()), ids(want)
	slices.Sort(got)
	slices.Sort(wanted)
	if !slices.Equal(got, wanted) {
		f.orStalled("the lock is held by %q, want %q", got, wanted)
		f.t.Fatalf("the lock is held by %q, want %q; terms were %v", got, wanted, f.story())
	}
}

func ids(peers []*coordtest.Peer) (ids []string) {
	for _, p := range peers {
		ids = append(ids, p.ID)
	}
	return ids
}

// apart checks that nobody held the lock together with a writer.
func (f *fleet) apart() {
	f.t.Helper()
	reads := func(t *fleetTerm) bool { return strings.HasSuffix(t.of.ID, "-read") }
	for i, a := range f.terms {
		for _, b := range f.terms[i+1:] {
			if !(reads(a) && reads(b)) && a.begin.Before(b.end) && b.begin.Before(a.end) {
				f.t.Errorf("%s and %s held the lock at the same time: %v", a.of.ID, b.of.ID, f.story())
			}
		}
	}
	f.t.Log(f.story())
}

// Readers and writers of ours and of another library hold a lock by the same rules: each waits
// for those of the other, readers hold it together, and none passes a writer that waits.
//
// No foreign reader has a writer behind it while it waits: a reader of kazoo before 2.9.0 then
// waits for that one, too, which waits for the reader (kazoo/recipe/lock.py, _get_predecessor).
// And none has two in front: Curator's waits for the first, ours for the nearest.
func TestMixedReaders(t *testing.T) {
	for _, test := range []struct {
		as          zookeeper.Format
		write, read string
	}{
		{zookeeper.CuratorReadWrite, coordtest.PeerCuratorWrite, coordtest.PeerCuratorRead},
		{zookeeper.KazooReadWrite, coordtest.PeerKazooWrite, coordtest.PeerKazooRead},
	} {
		t.Run(string(test.as), func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, test.as)
			p := f.start(oursWrite, test.read, oursRead, test.write, oursRead, test.read, oursWrite, test.read)
			w0, r1, r2, w3, r4, r5, w6, r7 := p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7]
			f.join(w0, r1, r2)
			f.holds(w0)
			f.exits(w0, leaves)
			f.holds(r1, r2)
			f.join(w3, r4)
			f.holds(r1, r2)
			f.exits(r1, leaves)
			f.holds(r2)
			f.exits(r2, killed)
			f.holds(w3)
			f.join(r5)
			f.exits(w3, leaves)
			f.holds(r4, r5)
			f.join(w6, r7)
			f.holds(r4, r5)
			f.exits(r4, leaves)
			f.holds(r5)
			f.exits(r5, killed)
			f.holds(w6)
			f.exits(w6, killed)
			f.holds(r7)
			f.exits(r7, leaves)
			f.apart()
		})
	}
}

// Our Mutex and the Lock of go-zookeeper wait for each other.
func TestMixedWithZKLock(t *testing.T) {
	t.Parallel()
	b := open(t, zookeeper.Options{As: zookeeper.CuratorSelector}, server(t))
	s := session(t, b)
	stand := func(n int) {
		t.Helper()
		for ctx := within(t, fleetPatience); len(line(t, s, "e").Members) != n; {
			select {
			case <-time.After(5 * time.Millisecond): // nothing tells of a foreign client's arrival
			case <-ctx.Done():
				t.Fatalf("in line stand %+v, want %d", line(t, s, "e").Members, n)
			}
		}
	}
	theirs := func() *zk.Lock { return zk.NewLock(raw(t, server(t)), chroot(t)+"/e", zk.WorldACL(zk.PermAll)) }
	first, last := theirs(), theirs()
	if err := first.Lock(); err != nil {
		t.Fatal(err)
	}
	var held *lock.Held
	ours := background(func() (err error) {
		held, err = lock.NewMutex(b, "e", nil).Lock(within(t, fleetPatience))
		return err
	})
	stand(2)
	waits := background(last.Lock)
	stand(3)
	still(t, ours, 100*time.Millisecond)
	if err := first.Unlock(); err != nil {
		t.Fatal(err)
	}
	if err := result(t, ours, fleetPatience); err != nil {
		t.Fatal(err)
	}
	still(t, waits, 100*time.Millisecond)
	if err := held.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := result(t, waits, fleetPatience); err != nil {
		t.Fatal(err)
	}
	if err := last.Unlock(); err != nil {
		t.Fatal(err)
	}
}
