package zookeeper_test

import (
	"errors"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig/zookeeperrig"
	"github.com/succession-dev/succession/zookeeper"
)

// rest is a session time in which a test ends before a ping or another heartbeat is due.
const rest = 10 * time.Minute

// What a handover and rest cost, in requests of each participant, as the
// documentation says it.
func TestCost(t *testing.T) {
	t.Parallel()
	const ttl = 12 * time.Second
	type standing struct {
		c *zookeeperrig.Client
		s backend.Session
		m backend.Member
	}
	var line []*standing
	for range 4 {
		c, err := zookeeperrig.Start(server(t))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		s := session(t, open(t, zookeeper.Options{TTL: ttl, Dialer: c.Dial}, c.Addr()))
		line = append(line, &standing{c, s, join(t, s, "e", "")})
	}
	places := make([]backend.Place, len(line))
	moved := make([]<-chan error, len(line))
	for i, x := range line {
		places[i] = ahead(t, x.s, x.m)
		moved[i] = background(func() error { return x.s.WatchPlace(t.Context(), x.m, &places[i]) })
	}
	count := func() (n []int64) {
		for _, x := range line {
			n = append(n, x.c.Requests())
		}
		return n
	}

	time.Sleep(ttl / 10) // the watches are set
	watch := calm.Start(t)
	before, began := count(), time.Now()
	time.Sleep(ttl / 2)
	for i, n := range count() {
		ttls := float64(time.Since(began)) / float64(ttl)
		most := 3*ttls + 1 // a ping in each third of the session's time
		if i < 3 {
			most += 6*ttls + 1 // and a heartbeat in each sixth
		}
		if n -= before[i]; float64(n) > most && !watch.NotJudged(ttl/4, "participant %d sent %d requests", i, n) {
			t.Errorf("at rest, participant %d sent %d requests in %.1f session times; want %.1f at most", i, n, ttls, most)
		}
	}

	before, began = count(), time.Now()
	if err := line[0].s.Leave(t.Context(), line[0].m); err != nil {
		t.Fatal(err)
	}
	if err := result(t, moved[0], 5*time.Second); !errors.Is(err, backend.ErrNotMember) {
		t.Errorf("the leader has left, and watches: %v", err)
	}
	if err := result(t, moved[1], 5*time.Second); err != nil || !places[1].First {
		t.Fatalf("%+v, %v", places[1], err)
	}
	// The leader deletes its member, and looks what the notice of that means; the heir, which
	// knows the header, reads the list. Pings and heartbeats may come in between.
	after, between := count(), 2+int64(9*time.Since(began)/ttl)
	for i, want := range []int64{2, 1, 0, 0} {
		if n := after[i] - before[i]; n < want || n > want+between {
			t.Errorf("a handover cost participant %d %d requests, want %d", i, n, want)
		}
	}
	t.Logf("a handover: %d and %d requests", after[0]-before[0], after[1]-before[1])
}

// In a line of five, who joined last and was woken once, when it had become first, read the list
// alone: the header it knew.
func TestCostInAShortLine(t *testing.T) {
	t.Parallel()
	const candidates, handovers, ttl = 5, 10, 20 * time.Second
	type candidate struct {
		c     *zookeeperrig.Client
		s     backend.Session
		m     backend.Member
		place backend.Place
		moved <-chan error
	}
	stand := func(x *candidate) {
		x.m = join(t, x.s, "e", "")
		x.place = ahead(t, x.s, x.m)
		x.moved = background(func() error { return x.s.WatchPlace(t.Context(), x.m, &x.place) })
		still(t, x.moved, 50*time.Millisecond) // the watches are set
	}
	var line []*candidate
	for range candidates {
		c, err := zookeeperrig.Start(server(t))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		x := &candidate{c: c, s: session(t, open(t, zookeeper.Options{TTL: ttl, Dialer: c.Dial}, c.Addr()))}
		stand(x)
		line = append(line, x)
	}
	var reads int64
	began := time.Now()
	for i := range candidates - 1 + handovers {
		leader, next := line[0], line[1]
		before := next.c.Requests()
		if err := leader.s.Leave(t.Context(), leader.m); err != nil {
			t.Fatal(err)
		}
		if err := result(t, next.moved, 5*time.Second); err != nil || !next.place.First {
			t.Fatalf("%+v, %v", next.place, err)
		}
		if i >= candidates-1 { // from then on, all have joined as the fifth
			reads += next.c.Requests() - before
		}
		stand(leader)
		line = append(line[1:], leader)
	}
	if reads > handovers+2+int64(9*time.Since(began)/ttl) { // pings and heartbeats may come in between
		t.Errorf("%d handovers cost those who were next %d requests, want one for each", handovers, reads)
	}
}

// Whoever watches a line of twenty reads, after a join, the list, the new member and the header,
// and after an exit the list and the header.
func TestCostOfWatchLine(t *testing.T) {
	t.Parallel()
	c, err := zookeeperrig.Start(server(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	watcher := session(t, open(t, zookeeper.Options{TTL: rest, Dialer: c.Dial}, c.Addr()))
	s := session(t, open(t, zookeeper.Options{}, server(t)))
	for range 20 {
		join(t, s, "e", "")
	}
	l := line(t, watcher, "e")
	costs := func(want int64, what string, change func()) {
		t.Helper()
		before := c.Requests()
		watch := background(func() (err error) {
			l, err = watcher.WatchLine(t.Context(), "e", l)
			return err
		})
		for c.Requests() == before { // the list, with a watch
			time.Sleep(time.Millisecond)
		}
		// ZooKeeper answers a client's requests in order: with this one, the watch is set.
		if _, err := watcher.Get(t.Context(), "nothing"); err != nil {
			t.Fatal(err)
		}
		before = c.Requests()
		change()
		if err := result(t, watch, time.Second); err != nil {
			t.Fatal(err)
		}
		if n := c.Requests() - before; n != want {
			t.Errorf("%s cost %d requests, want %d", what, n, want)
		}
	}
	var m backend.Member
	costs(3, "a join", func() { m = join(t, s, "e", "") })
	costs(2, "an exit", func() {
		if err := s.Leave(t.Context(), m); err != nil {
			t.Error(err)
		}
	})
}

// counted returns a session, and a client that counts what it sends.
func counted(t *testing.T) (backend.Session, *zookeeperrig.Client) {
	t.Helper()
	c, err := zookeeperrig.Start(server(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return session(t, open(t, zookeeper.Options{TTL: rest, Dialer: c.Dial}, c.Addr())), c
}

// A write on condition of a member reads the record, and the member too unless a watch shows that it stands, as that of
// whoever was told its place does. What the watch shows is looked at when the record has been read.
func TestCostOfGuardedWrite(t *testing.T) {
	t.Parallel()
	s, c := counted(t)
	watched, err := s.Join(t.Context(), "e", "", "e.fence")
	if err != nil {
		t.Fatal(err)
	}
	put := func(m backend.Member) error {
		_, err := s.Put(t.Context(), "r", []byte("x"), &backend.If{Member: m})
		return err
	}
	unwatched := join(t, s, "e", "")
	if err := put(unwatched); err != nil { // it makes the record
		t.Fatal(err)
	}
	for _, tt := range []struct {
		what string
		m    backend.Member
		want int64
	}{{"one that is watched", watched.Member, 2}, {"one that is not", unwatched, 3}} {
		before := c.Requests()
		if err := put(tt.m); err != nil {
			t.Fatal(err)
		}
		if n := c.Requests() - before; n != tt.want {
			t.Errorf("a write on condition of %s took %d requests, want %d", tt.what, n, tt.want)
		}
	}
	for _, m := range []backend.Member{watched.Member, unwatched} {
		if err := raw(t, server(t)).Delete(chroot(t)+"/e/"+m.Key, -1); err != nil {
			t.Fatal(err)
		}
		if err := put(m); !errors.Is(err, backend.ErrNotMember) {
			t.Errorf("a write on condition of a member that was removed: %v", err)
		}
	}
}

// Whether there is a record of the fence is asked once, as long as the header stands as it was.
func TestFenceIsAskedForOnce(t *testing.T) {
	t.Parallel()
	s, c := counted(t)
	other, op := session(t, open(t, zookeeper.Options{}, server(t))), raw(t, server(t))
	fence := backend.Header{Fence: 1000}.Encode()
	raise := func() {
		for _, name := range []string{"e.fence", "e"} {
			if _, err := other.Put(t.Context(), name, fence, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, tt := range []struct {
		what  string
		first func()
		want  int64 // requests: the create, the member and the list, at least; 0 for any number
		known bool  // that there is no such record
	}{
		{"the first join", func() {}, 0, true},
		{"the next one, with a watch on the header", func() {
			if _, err := s.Watch(t.Context(), "e", 0); err != nil {
				t.Fatal(err)
			}
		}, 4, true},
		{"one more", func() {}, 3, true},
		{"one after the fence was raised", raise, 0, false},
		{"one after the line was deleted", func() {
			if err := op.Delete(chroot(t)+"/e", -1); err != nil {
				t.Fatal(err)
			}
		}, 0, false},
	} {
		tt.first()
		if err := s.Refresh(t.Context()); err != nil { // what others have done is known
			t.Fatal(err)
		}
		before := c.Requests()
		j, err := s.Join(t.Context(), "e", "", "e.fence")
		if err != nil {
			t.Fatal(err)
		}
		if n := c.Requests() - before; tt.want != 0 && n != tt.want {
			t.Errorf("%s took %d requests, want %d", tt.what, n, tt.want)
		}
		if known := j.Record != nil && j.Record.Version == backend.Absent; known != tt.known || j.Place == nil || !j.Place.First {
			t.Errorf("%s is told %+v, %+v", tt.what, j.Place, j.Record)
		}
		if err := s.Leave(t.Context(), j.Member); err != nil {
			t.Fatal(err)
		}
	}
}
