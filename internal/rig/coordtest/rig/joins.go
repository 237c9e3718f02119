package rig

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/proxy"
)

// Joins has s join one line after the other, whose names begin with name, until stop is
// called, which returns the members. Each must succeed.
func Joins(t *testing.T, s backend.Session, name string) (stop func() []backend.Member) {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	result := make(chan []backend.Member, 1)
	go func() {
		var members []backend.Member
		for n := 0; ctx.Err() == nil; n++ {
			m, err := s.Join(t.Context(), fmt.Sprintf("%s-%d", name, n), "x", "")
			if err != nil {
				t.Errorf("Join: %v", err)
				break
			}
			members = append(members, m.Member)
			time.Sleep(10 * time.Millisecond) // the pace: the caller looks at every member
		}
		result <- members
	}()
	return func() []backend.Member {
		cancel()
		members := <-result
		t.Logf("%d have joined meanwhile", len(members))
		return members
	}
}

// ShortTries has fifty callers try again and again to join with s, whose way to the coordinator is p, each
// for a shorter time than that takes. Few members may stand meanwhile that nobody waits for, and other, who
// joins when the tries end, is soon first. In the end none of them stands.
func ShortTries(t *testing.T, p *proxy.Proxy, s, other backend.Session, name string) {
	t.Helper()
	const oneWay, patience, tries, most = 100 * time.Millisecond, 150 * time.Millisecond, 3 * time.Second, 100
	standing := func() int {
		l, err := other.Line(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		return len(l.Members)
	}
	if m, err := s.Join(t.Context(), name, "", ""); err != nil { // the first asks more than those that follow
		t.Fatal(err)
	} else if err := s.Leave(t.Context(), m.Member); err != nil {
		t.Fatal(err)
	}
	p.Delay(proxy.ToServer, oneWay)
	p.Delay(proxy.ToClient, oneWay)
	enough := time.Now().Add(tries)
	var trying sync.WaitGroup
	for range 50 {
		trying.Go(func() {
			for time.Now().Before(enough) {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				if m, err := s.Join(ctx, name, "", ""); err == nil {
					s.Leave(t.Context(), m.Member)
				}
				cancel()
			}
		})
	}
	worst := 0
	for time.Now().Before(enough) {
		worst = max(worst, standing())
		time.Sleep(50 * time.Millisecond) // the pace of looking
	}
	within, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	began := time.Now()
	m, err := other.Join(within, name, "", "")
	for first := false; err == nil && !first; {
		var p backend.Place
		if p, err = other.Ahead(within, m.Member); err == nil && !p.First {
			err = other.Gone(within, p.Ahead)
		}
		first = p.First
	}
	if err != nil {
		t.Fatalf("who joins when the tries have ended: %v after %v; up to %d members stood", err, time.Since(began), worst)
	}
	t.Logf("up to %d members stood, and somebody else was first after %v", worst, time.Since(began).Round(time.Millisecond))
	if worst > most {
		t.Errorf("%d members stood that nobody waits for, want at most %d", worst, most)
	}
	trying.Wait()
	for standing() > 1 {
		if within.Err() != nil {
			t.Fatalf("%d members stand, of which one has an owner", standing())
		}
		time.Sleep(50 * time.Millisecond) // the pace of looking
	}
}

// ManyLeave has s, whose way to the coordinator c is, join one line a thousand times and leave all at once. At most
// so many requests remove them, and other, who stands behind them all, is first.
func ManyLeave(t *testing.T, c Client, s, other backend.Session, name string, most int64) {
	t.Helper()
	const n, oneWay = 1000, 20 * time.Millisecond
	members := make([]backend.Member, n)
	each := func(f func(i int) error) {
		var all sync.WaitGroup
		for i := range n {
			all.Go(func() {
				if err := f(i); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
	each(func(i int) error {
		j, err := s.Join(t.Context(), name, "", "")
		members[i] = j.Member
		return err
	})
	last, err := other.Join(t.Context(), name, "", "")
	if err != nil {
		t.Fatal(err)
	}
	c.Proxy().Delay(proxy.ToServer, oneWay)
	c.Proxy().Delay(proxy.ToClient, oneWay)
	sent, began := c.Requests(), time.Now()
	each(func(i int) error { return s.Leave(t.Context(), members[i]) })
	sent = c.Requests() - sent
	t.Logf("%d have left after %v and %d requests", n, time.Since(began).Round(time.Millisecond), sent)
	if sent > most {
		t.Errorf("%d left by %d requests, want at most %d", n, sent, most)
	}
	if p, err := other.Ahead(t.Context(), last.Member); err != nil || !p.First {
		t.Errorf("who stood behind those who have left stands at %+v, %v", p, err)
	}
}
