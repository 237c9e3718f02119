package etcd_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

func appendItem(t *testing.T, s backend.Session, line, value string) backend.Member {
	t.Helper()
	m, err := s.Append(t.Context(), line, value)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestForeignClientWaitsForItem has etcd's own Go client stand behind an item.
func TestForeignClientWaitsForItem(t *testing.T) {
	t.Parallel()
	addr := sharedEtcd(t).Addrs()[0]
	s, name := newClient(t, addr).session(t), coordtest.Name(t)
	guard := join(t, s, name+"-guard", "x")
	item := appendItem(t, s, name, "item")
	if names, err := s.List(t.Context(), name); err != nil || len(names) > 0 {
		t.Errorf("List of the line: %q, %v; want no record", names, err)
	}

	_, leads := foreign(t, admin(t, addr), name, "theirs")
	members := inLine(t, s, name, 2)
	if !members[0].Pinned || members[0] != item || members[1].Value != "theirs" {
		t.Errorf("the line is %+v; want the item %+v and the foreign client", members, item)
	}
	waiting(t, leads, "the foreign client leads")
	if err := s.Remove(t.Context(), item, guard); err != nil {
		t.Fatal(err)
	}
	awaits(t, leads, "the foreign client leads")
	if err := s.Remove(t.Context(), members[1], guard); !errors.Is(err, backend.ErrDenied) {
		t.Errorf("Remove of the foreign client: %v; want ErrDenied", err)
	}
}

// TestRemovePinned removes members that were joined and then pinned, and an item by itself.
func TestRemovePinned(t *testing.T) {
	t.Parallel()
	addr := sharedEtcd(t).Addrs()[0]
	s, other, name := newClient(t, addr).session(t), newClient(t, addr).session(t), coordtest.Name(t)
	guard := join(t, s, name+"-guard", "x")
	for _, by := range []backend.Session{s, other} {
		m := join(t, s, name, "pinned")
		if err := s.Pin(t.Context(), m, backend.Header{}, 0); err != nil {
			t.Fatal(err)
		}
		if err := by.Remove(t.Context(), m, guard); err != nil {
			t.Errorf("Remove of a member that was pinned: %v", err)
		}
	}
	item := appendItem(t, s, name, "item")
	if err := other.Remove(t.Context(), item, item); err != nil {
		t.Errorf("Remove of an item while it stands itself: %v", err)
	}
	if err := other.Remove(t.Context(), item, item); !errors.Is(err, backend.ErrNotMember) {
		t.Errorf("Remove of an item while it stands itself, again: %v; want ErrNotMember", err)
	}
	inLine(t, other, name, 0)
}

// TestWatchLineReads counts the reads of a line that is watched while its members are
// pinned, which changes no line.
func TestWatchLineReads(t *testing.T) {
	t.Parallel()
	addr := sharedEtcd(t).Addrs()[0]
	name := coordtest.Name(t)
	s := newClient(t, addr).session(t)
	var members []backend.Member
	for range 5 {
		members = append(members, join(t, s, name, "x"))
	}

	c := newClient(t, addr)
	watches := c.session(t)
	before, err := watches.Line(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	var reads atomic.Int64
	watch := calm.Start(t)
	began := make(chan struct{}, 100)
	c.meter.steps(func(r *pb.TxnRequest, send func() error) error {
		err := send()
		if read := r.Success[0].GetRequestRange(); err == nil && read != nil && strings.HasSuffix(string(read.Key), name+"/") {
			reads.Add(1)
			began <- struct{}{}
		}
		return err
	})
	type result struct {
		l   backend.Line
		err error
	}
	changed := make(chan result, 1)
	go func() {
		l, err := watches.WatchLine(t.Context(), name, before)
		changed <- result{l, err}
	}()
	<-began
	at := backend.Absent
	for i, m := range members {
		if err := s.Pin(t.Context(), m, backend.Header{Fence: uint64(i + 1)}, at); err != nil {
			t.Fatal(err)
		}
		// The watch of the header is on the same stream, and hears of the pin no earlier.
		r, err := watches.Watch(t.Context(), name, at)
		if err != nil {
			t.Fatal(err)
		}
		at = r.Version
	}
	select {
	case r := <-changed:
		t.Fatalf("WatchLine returned %+v, %v after its members were pinned", r.l.Members, r.err)
	default:
	}
	last := join(t, s, name, "last")
	r := <-changed
	if n := len(r.l.Members); r.err != nil || n != 6 || r.l.Members[5] != last || !r.l.Members[0].Pinned || r.l.Version != at {
		t.Fatalf("WatchLine returned %+v, %v; want five that are pinned, and %+v, with the header at version %d", r.l, r.err, last, at)
	}
	if n := reads.Load(); n != 2 && !watch.NotJudged(2*time.Second, "%d reads", n) {
		t.Errorf("WatchLine has read the line %d times; want once at its beginning, and once after the join", n)
	}
}

// TestFreeInOrder appends items by two clients, of which one has heard nothing of the log since before: the keys are
// not in the order of the items, and Free goes by the items.
func TestFreeInOrder(t *testing.T) {
	t.Parallel()
	addr := sharedEtcd(t).Addrs()[0]
	quiet := newClient(t, addr) // the answer to a heartbeat would tell how far the log is
	fresh, stale, name := newClient(t, addr).session(t), quiet.session(t), coordtest.Name(t)
	want := []backend.Member{appendItem(t, stale, name, "x")}
	for range 5 {
		want = append(want, appendItem(t, fresh, name, "x"))
	}
	last := appendItem(t, stale, name, "x")
	if last.Key >= want[2].Key {
		t.Fatalf("%s was appended last; its key should be less than %s", last.Key, want[2].Key)
	}
	want = append(want, last, appendItem(t, fresh, name, "x"))
	for i, item := range want {
		if free, err := fresh.Free(t.Context(), name, name+"-claims"); err != nil || free != item {
			t.Fatalf("free is %+v, %v; want no. %d, %+v", free, err, i, item)
		}
		if _, err := fresh.Claim(t.Context(), name+"-claims", "x\n"+kit.Subject(item), "", item); err != nil {
			t.Fatal(err)
		}
	}
	if free, err := fresh.Free(t.Context(), name, name+"-claims"); !errors.Is(err, backend.ErrTaken) {
		t.Errorf("when all are claimed: %+v, %v", free, err)
	}
}
