package etcd_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// foreign joins an election by etcd's own Go client and returns a channel that is
// closed when it leads.
func foreign(t *testing.T, c *clientv3.Client, name, value string) (e *concurrency.Election, leads <-chan struct{}) {
	t.Helper()
	s, err := concurrency.NewSession(c, concurrency.WithTTL(30))
	if err != nil {
		t.Fatal(err)
	}
	e = concurrency.NewElection(s, name)
	won := make(chan struct{})
	go func() {
		if e.Campaign(t.Context(), value) == nil {
			close(won)
		}
	}()
	t.Cleanup(func() { s.Close() })
	return e, won
}

// inLine waits until the line holds n members, and returns them.
func inLine(t *testing.T, s backend.Session, name string, n int) []backend.Member {
	t.Helper()
	ctx := within(t, time.Minute)
	l, err := s.Line(ctx, name)
	for err == nil && len(l.Members) != n {
		l, err = s.WatchLine(ctx, name, l)
	}
	if err != nil {
		t.Fatalf("waiting for %d members of %s: %v", n, name, err)
	}
	return l.Members
}

func awaits(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(time.Minute):
		t.Fatalf("%s: not after a minute", what)
	}
}

func waiting(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
		t.Fatalf("%s too early", what)
	default:
	}
}

// TestForeignClients has etcdctl, etcd's Go client and ours stand in one line, and
// lead in turns.
func TestForeignClients(t *testing.T) {
	t.Parallel()
	server := sharedEtcd(t)
	binary, err := coordtest.ServerBinary(t.Context(), "etcdctl")
	if err != nil {
		t.Fatal(err)
	}
	addr := server.Addrs()[0]
	name := coordtest.Name(t)
	s := newClient(t, addr).session(t)
	first := join(t, s, name, "ours-1")
	if want := regexp.MustCompile(`^[0-9a-f]{16}$`); !want.MatchString(first.Key) {
		t.Errorf("key %q is not a lease ID in hexadecimal", first.Key)
	}

	cmd := exec.Command(binary, "--endpoints="+addr, "elect", name, "etcdctl-value")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cmd.Process.Kill() // does nothing where it has ended as it should
		cmd.Wait()
	}()
	ctlLeads := make(chan struct{})
	var printed []string
	go func() {
		lines := bufio.NewScanner(out)
		for len(printed) < 2 && lines.Scan() {
			printed = append(printed, lines.Text())
		}
		close(ctlLeads)
	}()
	inLine(t, s, name, 2)

	e, goLeads := foreign(t, admin(t, addr), name, "go-value")
	inLine(t, s, name, 3)
	last := join(t, s, name, "ours-2")
	members := inLine(t, s, name, 4)
	for i, want := range []string{"ours-1", "etcdctl-value", "go-value", "ours-2"} {
		if members[i].Value != want || members[i].Pinned {
			t.Errorf("member %d is %+v; want value %s", i, members[i], want)
		}
	}
	if p, err := s.Ahead(t.Context(), last); err != nil || p.First || p.Ahead.Position != members[2].Position || p.Ahead.Key != members[2].Key {
		t.Errorf("in front of the last stands %+v, %v", p, err)
	}

	waiting(t, ctlLeads, "etcdctl leads")
	if err := s.Leave(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	awaits(t, ctlLeads, "etcdctl leads")
	if len(printed) != 2 || printed[0] != name+"/"+members[1].Key || printed[1] != "etcdctl-value" {
		t.Errorf("etcdctl printed %q", printed)
	}

	waiting(t, goLeads, "etcd's Go client leads")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	awaits(t, goLeads, "etcd's Go client leads")
	if resp, err := e.Leader(t.Context()); err != nil || string(resp.Kvs[0].Value) != "go-value" {
		t.Errorf("Leader: %v, %v", resp, err)
	}

	gone := make(chan error, 1)
	go func() { gone <- s.Gone(t.Context(), members[2]) }()
	if err := e.Resign(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-gone; err != nil {
		t.Fatal(err)
	}
	if p, err := s.Ahead(t.Context(), last); err != nil || !p.First || p.Token != last.Position {
		t.Errorf("after all others have gone, Ahead says %+v, %v", p, err)
	}
	resp, err := e.Leader(t.Context())
	if err != nil || string(resp.Kvs[0].Value) != "ours-2" || uint64(resp.Kvs[0].CreateRevision) != last.Position {
		t.Errorf("etcd's Go client sees the leader %v, %v; want ours-2", resp, err)
	}
}

// TestGate has foreign clients wait behind a pinned member until another session
// removes it.
func TestGate(t *testing.T) {
	t.Parallel()
	addr := sharedEtcd(t).Addrs()[0]
	name := coordtest.Name(t)
	a, b := newClient(t, addr), newClient(t, addr).session(t)
	s := a.session(t)
	gate := join(t, s, name, "gate")
	if err := s.Pin(t.Context(), gate, backend.Header{Fence: 7}, backend.Absent); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Close(t.Context()), a.Close()); err != nil {
		t.Fatal(err)
	}
	ctlLeads := make(chan struct{})
	ctl := etcdctl(t, addr, name, "etcdctl-value", false)
	ctl.stands(func() { close(ctlLeads) })
	inLine(t, b, name, 2)
	_, goLeads := foreign(t, admin(t, addr), name, "go-value")
	members := inLine(t, b, name, 3)
	if !members[0].Pinned || members[0].Value != "gate" || members[0].Position != gate.Position {
		t.Fatalf("the gate is %+v; joined was %+v", members[0], gate)
	}
	if err := b.Leave(t.Context(), members[1]); err == nil {
		t.Error("a member of another session, which is not pinned, could be removed")
	}
	waiting(t, ctlLeads, "etcdctl leads behind a gate")
	if err := b.Leave(t.Context(), members[0]); err != nil {
		t.Fatal(err)
	}
	awaits(t, ctlLeads, "etcdctl leads without the gate")
	waiting(t, goLeads, "the Go client leads behind etcdctl")
	ctl.ends()
	awaits(t, goLeads, "the Go client leads without the gate")
}

// TestNesting opens elections of which one would stand in the line of the other. They are
// refused, and our clients are not deceived by what comes later.
func TestNesting(t *testing.T) {
	t.Parallel()
	addr := sharedEtcd(t).Addrs()[0]
	operator := admin(t, addr)
	tests := []struct {
		exists, joins string
		refused       bool
	}{
		{"a", "a/b", true},
		{"a", "a/b/c", true},
		{"a/b", "a", true},
		{"a/b/c", "a", true},
		{"a", "ab", false},
		{"a/b", "a/c", false},
		{"a/b", "a/bc", false},
	}
	for i, tt := range tests {
		for _, other := range []string{"ours", "foreign"} {
			t.Run(other+" "+tt.exists+" then "+tt.joins, func(t *testing.T) {
				root := coordtest.Name(t)[:12] + strconv.Itoa(i) + other + "/"
				s := newClient(t, addr).session(t)
				if other == "ours" {
					join(t, s, root+tt.exists, "x")
				} else {
					_, leads := foreign(t, operator, root+tt.exists, "x")
					awaits(t, leads, "the foreign client leads")
				}
				_, err := s.Join(t.Context(), root+tt.joins, "y", "")
				if tt.refused && !isInvalid(err) || !tt.refused && err != nil {
					t.Errorf("Join: %v; want refused %v", err, tt.refused)
				}
			})
		}
	}

	// Keys of an application, whose names look like those of members: the address of a network card, an instant, a container.
	granted, err := operator.Grant(t.Context(), 60)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"001a2b3c4d5e", "1764490251000", "3f4e8b2a9c1d", "1764490251000000"} {
		for _, lease := range []clientv3.LeaseID{0, granted.ID} {
			root := fmt.Sprintf("%s-%s-%t", coordtest.Name(t), name, lease != 0)
			for _, key := range []string{"/all/" + name, "/some/deep/" + name} {
				if _, err := operator.Put(t.Context(), root+key, "x", clientv3.WithLease(lease)); err != nil {
					t.Fatal(err)
				}
			}
			s := newClient(t, addr).session(t)
			for _, line := range []string{"/all/leader", "/some"} {
				if _, err := s.Join(t.Context(), root+line, "y", ""); err != nil {
					t.Errorf("Join beside %s: %v", name, err)
				}
			}
		}
	}

	root := coordtest.Name(t)
	s := newClient(t, addr).session(t)
	first := join(t, s, root, "first")
	for _, name := range []string{"config", "001a2b3c4d5e", "1764490251000000"} {
		if _, err := operator.Put(t.Context(), root+"/"+name, "a record in the wrong place"); err != nil {
			t.Fatal(err)
		}
	}
	foreign(t, operator, root+"/deeper", "x")
	inLine(t, s, root+"/deeper", 1)
	second := join(t, s, root, "second")
	if p, err := s.Ahead(t.Context(), second); err != nil || p.First || p.Ahead.Position != first.Position {
		t.Errorf("in front of the second stands %+v, %v; want the first", p, err)
	}
	if err := s.Leave(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if p, err := s.Ahead(t.Context(), second); err != nil || !p.First {
		t.Errorf("in front of the second stands %+v, %v; want nobody", p, err)
	}
	inLine(t, s, root, 1)
}

// TestStray puts a key into the line that is no member, so that Ahead asks twice.
// Something happens between the two requests.
func TestStray(t *testing.T) {
	t.Parallel()
	addr := sharedEtcd(t).Addrs()[0]
	operator := admin(t, addr)
	const fence = 1000
	tests := []struct {
		meanwhile string
		do        func(ctx context.Context, front backend.Session, first, m backend.Member) error
		want      func(p backend.Place, m backend.Member, err error) bool
	}{
		{"the first raises the fence and leaves", func(ctx context.Context, front backend.Session, first, _ backend.Member) error {
			_, err := front.Put(ctx, first.Line, backend.Header{Fence: fence}.Encode(), nil)
			return errors.Join(err, front.Leave(ctx, first))
		}, func(p backend.Place, m backend.Member, err error) bool {
			return err == nil && p.First && p.Token == fence+m.Position
		}},
		{"the first seals, and its member is removed", func(ctx context.Context, front backend.Session, first, _ backend.Member) error {
			return errors.Join(front.Pin(ctx, first, backend.Header{Sealed: "memory:other"}, 0), front.Leave(ctx, first))
		}, func(_ backend.Place, _ backend.Member, err error) bool { return errors.Is(err, backend.ErrSealed) }},
		{"both are removed", func(ctx context.Context, front backend.Session, first, m backend.Member) error {
			_, err := operator.Delete(ctx, m.Line+"/"+m.Key)
			return errors.Join(err, front.Leave(ctx, first))
		}, func(_ backend.Place, _ backend.Member, err error) bool { return errors.Is(err, backend.ErrNotMember) }},
	}
	for _, tt := range tests {
		t.Run(tt.meanwhile, func(t *testing.T) {
			name := coordtest.Name(t)
			front, c := newClient(t, addr).session(t), newClient(t, addr)
			s := c.session(t)
			first := join(t, front, name, "first")
			if _, err := operator.Put(t.Context(), name+"/config", "a record in the wrong place"); err != nil {
				t.Fatal(err)
			}
			m := join(t, s, name, "x")
			var reads atomic.Int64
			c.meter.steps(func(_ *pb.TxnRequest, send func() error) error {
				err := send()
				if reads.Add(1) == 1 {
					err = errors.Join(err, tt.do(t.Context(), front, first, m))
				}
				return err
			})
			p, err := s.Ahead(t.Context(), m)
			c.meter.steps(nil)
			if !tt.want(p, m, err) {
				t.Errorf("in front of %+v stands %+v, %v", m, p, err)
			}
			if reads.Load() < 2 {
				t.Error("Ahead has not asked twice")
			}
		})
	}
}

// TestRecordsAndMembers has records and members in one folder, which must not be
// confused.
func TestRecordsAndMembers(t *testing.T) {
	t.Parallel()
	addr := sharedEtcd(t).Addrs()[0]
	name := coordtest.Name(t)
	s := newClient(t, addr).session(t)
	m := join(t, s, name, "x")
	if _, err := s.Put(t.Context(), name+"/"+m.Key, []byte("y"), nil); !isInvalid(err) {
		t.Errorf("Put on a member's key: %v; want ErrInvalid", err)
	}
	if err := s.Delete(t.Context(), name+"/"+m.Key, nil); !isInvalid(err) {
		t.Errorf("Delete of a member's key: %v; want ErrInvalid", err)
	}
	if _, err := s.Put(t.Context(), name+"/694d", []byte("y"), nil); err != nil {
		t.Error(err)
	}
	if err := s.Pin(t.Context(), m, backend.Header{}, 0); err != nil {
		t.Fatal(err)
	}
	names, err := s.List(t.Context(), name)
	if err != nil || len(names) != 1 || names[0] != name+"/694d" {
		t.Errorf("List is %q, %v; want the record alone", names, err)
	}
	if err := s.Leave(context.Background(), m); err != nil {
		t.Error(err)
	}
}

// A foreign member stays in line when the election moves. So whoever of ours stands behind it is told by
// the header, and not by what is written there in every term.
func TestSealedBehindForeign(t *testing.T) {
	t.Parallel()
	addr, name := sharedEtcd(t).Addrs()[0], coordtest.Name(t)
	b, sent := wired(t, addr, patient)
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	first := join(t, s, name, "ours, in front")
	foreign(t, admin(t, addr), name, "foreign")
	inLine(t, s, name, 2)
	m := join(t, s, name, "ours, behind")
	w := sent.watches(t, s, m, 3) // of the header too
	// What woke at one of many would look before the seal, and return.
	for _, h := range append(slices.Repeat([]header.Header{{Acknowledged: first.Position}}, 10), header.Header{Sealed: "consul://h1"}) {
		w.rests(t)
		if _, err := s.Put(t.Context(), name, h.Encode(), nil); err != nil {
			t.Fatal(err)
		}
	}
	if w.returns(t, 10*time.Second); !errors.Is(w.err, backend.ErrSealed) {
		t.Errorf("WatchPlace: %+v, %v; want ErrSealed", w.place, w.err)
	}
}
