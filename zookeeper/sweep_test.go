package zookeeper_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/zookeeper"
)

// A session deletes the znodes of lines that it has made and nobody uses, and no other. Who joins
// such a line again has a larger position than all before.
func TestSweep(t *testing.T) {
	t.Parallel()
	const ttl, names = 5 * time.Second, 50
	b := open(t, zookeeper.Options{TTL: ttl}, server(t))
	s := session(t, b)
	other := session(t, open(t, zookeeper.Options{}, server(t)))
	op := raw(t, server(t))
	leave := func(s backend.Session, m backend.Member) {
		t.Helper()
		if err := s.Leave(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := op.Create(chroot(t), nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	if _, err := op.Create(chroot(t)+"/anothers", nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	leave(s, join(t, s, "anothers", ""))
	leave(s, join(t, s, "raised", ""))
	if _, err := s.Put(t.Context(), "raised", backend.Header{Fence: 5}.Encode(), nil); err != nil {
		t.Fatal(err)
	}
	stands := join(t, s, "emptied", "") // so that the header goes, and not the znode
	if _, err := s.Put(t.Context(), "emptied", []byte("x"), nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), "emptied", nil); err != nil {
		t.Fatal(err)
	}
	leave(s, stands)
	join(t, s, "led", "")
	leave(s, join(t, s, "waited", ""))
	waits := join(t, other, "waited", "")
	item := appendItem(t, s, "queue", "item")
	before := zookeeper.Remembered(s)
	var last backend.Member
	for i := range names {
		term, err := elect.New(b, fmt.Sprintf("locks/%d", i), nil).Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		last = term.Member()
		if err := term.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	seen := make(chan error, 1)
	go func() { // who watches an empty line does not care whether it has a znode
		l, err := other.WatchLine(t.Context(), "locks/0", backend.Line{Version: backend.Absent})
		if err == nil && len(l.Members) == 0 {
			err = fmt.Errorf("woken with %+v", l)
		}
		seen <- err
	}()

	left := func() []string {
		all, _, err := op.Children(chroot(t))
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(all)
		return all
	}
	want := []string{"anothers", "emptied", "led", "queue", "raised", "waited"}
	for end := time.Now().Add(20 * ttl); !slices.Equal(left(), want); time.Sleep(ttl / 20) {
		if time.Now().After(end) {
			t.Fatalf("these znodes are left: %v, want %v", left(), want)
		}
	}
	if n := zookeeper.Remembered(s); n > before {
		t.Errorf("the session remembers %d things, and did %d before it used %d names", n, before, names)
	}
	if l := line(t, s, "queue"); len(l.Members) != 1 || l.Members[0] != item {
		t.Errorf("the queue has %+v", l.Members)
	}
	if p := ahead(t, other, waits); !p.First {
		t.Errorf("who waited stands at %+v", p)
	}
	if p := ahead(t, s, join(t, s, "raised", "")); !p.First || p.Header.Fence != 5 {
		t.Errorf("a line with a fence: %+v", p)
	}
	m := join(t, s, "locks/0", "")
	if p := ahead(t, s, m); !p.First || m.Position <= last.Position {
		t.Errorf("who joins anew has position %d and stands at %+v; the last had %d", m.Position, p, last.Position)
	}
	if err := <-seen; err != nil {
		t.Errorf("who watches a line: %v", err)
	}
}
