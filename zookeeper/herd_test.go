package zookeeper_test

import (
	"context"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/lane"
	"github.com/succession-dev/succession/zookeeper"
)

// Two hundred candidates in one line, in forty sessions: each member is watched by
// the one behind it and by nobody else, the first also by itself, and the list of
// children by nobody.
func TestNoHerd(t *testing.T) {
	lane.All(t)
	t.Parallel()
	const candidates, sessions = 200, 40
	z := own(t)
	addr := z.Addrs()[0]
	var all []backend.Session
	for range sessions {
		all = append(all, session(t, open(t, zookeeper.Options{}, addr)))
	}
	type candidate struct {
		s    backend.Session
		m    backend.Member
		pred backend.Member
	}
	var line []candidate
	for i := range candidates {
		s := all[i%sessions]
		line = append(line, candidate{s: s, m: join(t, s, "e", "")})
	}
	woken := make(chan int, candidates)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for i := range line {
		c := &line[i]
		p := ahead(t, c.s, c.m)
		if p.First != (i == 0) || i > 0 && p.Ahead.Key != line[i-1].m.Key {
			t.Fatalf("candidate %d: %+v", i, p)
		}
		c.pred = p.Ahead
		if p.First {
			c.pred = c.m // a leader watches itself
		}
		wait := func() {
			if c.s.Gone(ctx, c.pred) == nil {
				woken <- i
			}
		}
		go wait()
		go wait() // again: nothing piles up
	}
	path := func(m backend.Member) string { return chroot(t) + "/e/" + m.Key }
	var watches coordtest.Watches
	read := func(what string) string {
		t.Helper()
		s, err := coordtest.FourLetter(t.Context(), addr, what)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	eventually(t, 10*time.Second, "all watches", func() bool {
		var err error
		if watches, err = coordtest.ParseWatches(read("wchp")); err != nil {
			t.Fatal(err)
		}
		return len(watches) == candidates-1
	})
	for i, c := range line {
		want := 1
		switch i {
		case 0:
			want = 2 // the heir and itself
		case candidates - 1:
			want = 0
		}
		if got := watches[path(c.m)]; len(got) != want {
			t.Errorf("member %d is watched by sessions %x, want %d", i, got, want)
		}
	}
	summary, err := coordtest.ParseWatchSummary(read("wchs"))
	if err != nil {
		t.Fatal(err)
	}
	mntr, err := coordtest.ParseMonitor(read("mntr"))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("wchs %+v; mntr zk_watch_count %s", summary, mntr["zk_watch_count"])
	if summary.Watches != candidates || mntr["zk_watch_count"] != "200" {
		t.Errorf("want %d watches, and none on children, which only mntr counts", candidates)
	}

	// One leaves from the middle, and one wakes up (by two calls of Gone).
	const middle = 100
	if err := line[middle].s.Leave(t.Context(), line[middle].m); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		watch := calm.Start(t)
		select {
		case i := <-woken:
			watch.Within(5*time.Second, "to wake one")
			if i != middle+1 {
				t.Errorf("candidate %d was woken", i)
			}
		case <-time.After(time.Minute):
			t.Fatal("nobody was woken")
		}
	}
	select {
	case i := <-woken:
		t.Errorf("candidate %d was woken too", i)
	case <-time.After(100 * time.Millisecond):
	}
	if p := ahead(t, line[middle+1].s, line[middle+1].m); p.First || p.Ahead.Key != line[middle-1].m.Key {
		t.Errorf("%+v", p)
	}
}
