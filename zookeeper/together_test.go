package zookeeper_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig/zookeeperrig"
	"github.com/succession-dev/succession/internal/rig/lane"
	"github.com/succession-dev/succession/zookeeper"
)

// Many members of one line look at the same time: most share readings of it.
func TestLookTogether(t *testing.T) {
	t.Parallel()
	const n = 300
	c, err := zookeeperrig.Start(server(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	s := session(t, open(t, zookeeper.Options{Dialer: c.Dial}, c.Addr()))
	var members []backend.Member
	for range n {
		members = append(members, join(t, s, "e", "x"))
	}
	if _, err := s.Put(t.Context(), "e", backend.Header{Fence: 7}.Encode(), nil); err != nil {
		t.Fatal(err)
	}
	gone := members[n/2]
	if err := s.Leave(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	before := c.Requests()
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
				if p.First || p.Ahead.Key != want.Key || p.Header.Fence != 7 {
					t.Errorf("Ahead of member %d says %+v; want %+v in front", i, p, want)
				}
			}
		})
	}
	all.Wait()
	sent := c.Requests() - before
	t.Logf("%d looks took %d requests", n, sent)
	if sent > n/2 {
		t.Errorf("%d looks took %d requests", n, sent)
	}
}

// Many join at the same time, and connections break with answers on their way, again and again.
// Each join has one member, with its value, and there are no others.
func TestJoinTogether(t *testing.T) {
	lane.All(t)
	t.Parallel()
	const joins, values, breaks = 400, 7, 12
	sab := new(saboteur)
	s := session(t, open(t, zookeeper.Options{Dialer: sab.dial}, server(t)))
	other := session(t, open(t, zookeeper.Options{}, server(t)))
	join(t, s, "e", "first") // the line is there
	joined := make([]backend.Member, joins)
	var all, breaking sync.WaitGroup
	done := make(chan struct{})
	breaking.Go(func() {
		for i := range breaks {
			select {
			case <-sab.arm(opCreate, -1, 7*i):
			case <-done:
				return
			}
		}
	})
	for i := range joins {
		all.Go(func() {
			j, err := s.Join(t.Context(), "e", fmt.Sprint(i%values), "")
			if err != nil {
				t.Error(err)
			}
			joined[i] = j.Member
		})
	}
	all.Wait()
	close(done)
	breaking.Wait()
	if s.Err() != nil {
		t.Fatal("it must have been one session throughout: ", s.Err())
	}
	standing := make(map[backend.Member]bool)
	for _, m := range line(t, other, "e").Members[1:] {
		standing[m] = true
	}
	if len(standing) != joins {
		t.Errorf("%d members stand, and %d joined", len(standing), joins)
	}
	for i, m := range joined {
		if m.Value != fmt.Sprint(i%values) || !standing[m] {
			t.Errorf("join %d has returned %+v, which does not stand", i, m)
		}
		delete(standing, m) // it is nobody else's
	}
}
