package zookeeper_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/zookeeper"
)

const (
	// fleetSession is the session time of all participants: with ticks of 200 ms,
	// and enough for processes on a busy machine.
	fleetSession = 6 * time.Second

	// fleetPatience is for what takes no session time.
	fleetPatience = time.Minute
)

// How a participant goes.
type exit string

const (
	leaves exit = "leaves"
	killed exit = "killed"
)

// A fleet is a line of participants of several libraries.
type fleet struct {
	t      *testing.T
	as     zookeeper.Format
	root   string // the chroot
	us     backend.Session
	raw    *zk.Conn
	dir    string
	events chan coordtest.PeerEvent
	peers  []*coordtest.Peer // in the order of joining
	watch  *calm.Stopwatch   // from when the first are ready

	ready map[*coordtest.Peer]bool
	gone  map[*coordtest.Peer]bool // killed, or has said that it left
	terms []*fleetTerm             // in the order in which they were reported
}

// A fleetTerm is one leadership, as the leader itself has seen it.
type fleetTerm struct {
	of         *coordtest.Peer
	begin, end time.Time
}

const fleetElection = "e"

func newFleet(t *testing.T, as zookeeper.Format) *fleet {
	root := "/" + coordtest.Name(t)
	b := open(t, zookeeper.Options{As: as, Prefix: root}, server(t))
	f := &fleet{
		t: t, as: as, root: root, us: session(t, b), raw: raw(t, server(t)), dir: t.TempDir(),
		events: make(chan coordtest.PeerEvent, 100), ready: make(map[*coordtest.Peer]bool),
		gone: make(map[*coordtest.Peer]bool),
	}
	// LeaderElectionSupport does not create the election's znode.
	if err := f.us.Leave(t.Context(), join(t, f.us, fleetElection, "")); err != nil {
		t.Fatal(err)
	}
	return f
}

// start starts participants of these kinds, all at a time, and waits until they are
// ready to join.
func (f *fleet) start(kinds ...string) []*coordtest.Peer {
	f.t.Helper()
	var started []*coordtest.Peer
	for _, kind := range kinds {
		o := coordtest.PeerOptions{
			Kind:    kind,
			Address: server(f.t),
			Path:    f.root + "/" + fleetElection,
			ID:      fmt.Sprintf("%d-%s", len(f.peers)+len(started)+1, kind),
			Session: fleetSession,
			Events:  f.events,
			Dir:     f.dir,
		}
		var p *coordtest.Peer
		var err error
		if strings.HasPrefix(kind, ours) {
			url := fmt.Sprintf("zookeeper://%s%s?ttl=%v&connect=20s&as=%s", server(f.t), f.root, fleetSession, f.as)
			p, err = startOurs(o, url, fleetElection)
		} else {
			p, err = coordtest.StartPeer(o)
		}
		if err != nil {
			f.t.Fatal(err)
		}
		started = append(started, p)
		f.t.Cleanup(func() {
			p.Kill()
			if f.t.Failed() {
				f.t.Logf("%s wrote: %s", p.ID, p.Log())
			}
		})
	}
	f.await("all ready", func() bool {
		return !slices.ContainsFunc(started, func(p *coordtest.Peer) bool { return !f.ready[p] })
	})
	if f.watch == nil {
		f.watch = calm.Start(f.t)
	}
	return started
}

// join makes the participants join, one after the other.
func (f *fleet) join(peers ...*coordtest.Peer) {
	f.t.Helper()
	for _, p := range peers {
		f.send(p, "join")
		f.peers = append(f.peers, p)
		f.await(p.ID+" joins", func() bool { return slices.Contains(f.line(), p.ID) })
		f.settle()
	}
}

// settle waits until everybody in line watches the member just in front; a reader, the
// nearest writer. Only then may the next one go: LeaderElectionSupport fails for good when a
// member goes while it looks at the line.
func (f *fleet) settle() {
	f.t.Helper()
	at := f.root + "/" + fleetElection
	f.await("all watches", func() bool {
		text, err := coordtest.FourLetter(f.t.Context(), server(f.t), "wchp")
		if err != nil {
			f.t.Fatal(err)
		}
		watches, err := coordtest.ParseWatches(text)
		if err != nil {
			f.t.Fatal(err)
		}
		members := line(f.t, f.us, fleetElection).Members
		for i := range members {
			front := kit.Awaited(i, func(i int) bool { return members[i].Shared })
			if front < 0 {
				continue
			}
			ok, self, err := f.raw.Exists(at + "/" + members[i].Key)
			if err == nil && ok && self.EphemeralOwner == 0 {
				continue // an item waits for nobody
			}
			if err != nil || !ok || !slices.Contains(watches[at+"/"+members[front].Key], self.EphemeralOwner) {
				return false
			}
		}
		return true
	})
}

// line returns who stands in line.
func (f *fleet) line() []string {
	f.t.Helper()
	var ids []string
	for _, m := range line(f.t, f.us, fleetElection).Members {
		ids = append(ids, m.Value)
	}
	return ids
}

func (f *fleet) send(p *coordtest.Peer, command string) {
	f.t.Helper()
	if err := p.Send(command); err != nil {
		f.t.Fatalf("%s: %v", p.ID, err)
	}
}

// await takes events until cond holds.
func (f *fleet) await(what string, cond func() bool) {
	f.t.Helper()
	limit := time.NewTimer(fleetPatience + fleetSession)
	defer limit.Stop()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for !cond() {
		select {
		case ev := <-f.events:
			f.took(ev)
		case <-poll.C:
		case <-limit.C:
			f.t.Fatalf("%s: not within %v; in line stand %q, terms were %v", what, fleetPatience+fleetSession, f.line(), f.story())
		}
	}
}

func (f *fleet) took(ev coordtest.PeerEvent) {
	f.t.Helper()
	switch {
	case ev.What == "ready":
		f.ready[ev.Peer] = true
	case ev.What == "elected":
		f.terms = append(f.terms, &fleetTerm{of: ev.Peer, begin: ev.At})
	case ev.What == "leaving":
		f.ends(ev.Peer, ev.At)
	case ev.What == "left":
		f.gone[ev.Peer] = true
	default:
		if ev.What == "lost" {
			f.orStalled("%s has lost its leadership", ev.Peer.ID)
		}
		f.t.Errorf("%s: %s", ev.Peer.ID, ev.What)
	}
}

// orStalled ends the test if the machine was too busy for sessions to live. What has gone wrong then is that one has ended.
func (f *fleet) orStalled(format string, args ...any) {
	f.t.Helper()
	if f.watch.NotJudged(fleetSession/4, format, args...) {
		f.t.SkipNow()
	}
}

func (f *fleet) ends(p *coordtest.Peer, at time.Time) {
	for _, t := range f.terms {
		if t.of == p && t.end.IsZero() {
			t.end = at
		}
	}
}

// leader returns who leads, or nil.
func (f *fleet) leader() *coordtest.Peer {
	for _, t := range f.terms {
		if t.end.IsZero() {
			return t.of
		}
	}
	return nil
}

// exits makes a participant go, and waits until it stands in line no more.
func (f *fleet) exits(p *coordtest.Peer, how exit) {
	f.t.Helper()
	if how == killed {
		p.Kill()
		f.drain()
		f.ends(p, time.Now())
		f.gone[p] = true
	} else {
		f.send(p, "leave")
	}
	f.await(p.ID+" "+string(how), func() bool { return f.gone[p] && !slices.Contains(f.line(), p.ID) })
	f.settle()
}

func (f *fleet) drain() {
	for {
		select {
		case ev := <-f.events:
			f.took(ev)
		default:
			return
		}
	}
}

// succeeds waits until p leads.
func (f *fleet) succeeds(p *coordtest.Peer) {
	f.t.Helper()
	f.await(p.ID+" is elected", func() bool { return f.leader() != nil })
	if got := f.leader(); got != p {
		f.orStalled("%s leads, and it is the turn of %s", got.ID, p.ID)
		f.t.Fatalf("%s leads, and it is the turn of %s; terms were %v", got.ID, p.ID, f.story())
	}
}

// check tells whether terms came in this order and did not overlap.
func (f *fleet) check(want ...*coordtest.Peer) {
	f.t.Helper()
	f.drain()
	slices.SortStableFunc(f.terms, func(a, b *fleetTerm) int { return a.begin.Compare(b.begin) })
	for i, t := range f.terms {
		if i > 0 && (f.terms[i-1].end.IsZero() || f.terms[i-1].end.After(t.begin)) {
			f.t.Errorf("%s and %s led at the same time: %v", f.terms[i-1].of.ID, t.of.ID, f.story())
		}
		if i >= len(want) || t.of != want[i] {
			f.t.Errorf("term %d is that of %s: %v", i+1, t.of.ID, f.story())
		}
	}
	if len(f.terms) != len(want) {
		f.t.Errorf("%d terms, want %d: %v", len(f.terms), len(want), f.story())
	}
	f.t.Log(f.story())
}

func (f *fleet) story() string {
	var b strings.Builder
	for i, t := range f.terms {
		fmt.Fprintf(&b, " %s", t.of.ID)
		if i > 0 && !f.terms[i-1].end.IsZero() {
			fmt.Fprintf(&b, " (%v after)", t.begin.Sub(f.terms[i-1].end).Round(time.Millisecond))
		}
	}
	return b.String()
}

// One after the other goes from the head of the line.
func TestMixedFleet(t *testing.T) {
	const foreign = "foreign"
	type member struct {
		kind string
		exit exit
	}
	six := []member{{ours, leaves}, {ours, killed}, {foreign, leaves}, {foreign, killed}, {ours, leaves}, {foreign, leaves}}
	four := []member{{foreign, leaves}, {ours, killed}, {foreign, killed}, {ours, leaves}}
	for _, test := range []struct {
		as            zookeeper.Format
		ours, foreign string
		members       []member
	}{
		{zookeeper.CuratorLatch, ours, coordtest.PeerCuratorLatch, six},
		{zookeeper.CuratorSelector, ours, coordtest.PeerCuratorSelector, four},
		{zookeeper.CuratorSelector, oursLock, coordtest.PeerCuratorMutex, four},
		{zookeeper.ElectionSupport, ours, coordtest.PeerElectionSupport, four},
		{zookeeper.Kazoo, ours, coordtest.PeerKazoo, four},
		{zookeeper.Kazoo, oursLock, coordtest.PeerKazooLock, four},
	} {
		t.Run(test.foreign, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, test.as)
			var kinds []string
			for _, m := range test.members {
				kinds = append(kinds, map[string]string{ours: test.ours, foreign: test.foreign}[m.kind])
			}
			peers := f.start(kinds...)
			f.join(peers...)
			for i, m := range test.members {
				f.succeeds(peers[i])
				f.exits(peers[i], m.exit)
			}
			f.check(peers...)
		})
	}
}

// One goes from the middle, of either side and in either way, and those behind it
// keep their order.
func TestMixedFleetMiddle(t *testing.T) {
	for _, kind := range []string{
		coordtest.PeerCuratorLatch, coordtest.PeerCuratorSelector, coordtest.PeerElectionSupport, coordtest.PeerKazoo,
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, zookeeper.Format(kind))
			p := f.start(ours, kind, ours, kind, ours)
			f.join(p...)
			f.succeeds(p[0])
			f.exits(p[1], killed) // whom one of ours watched
			f.exits(p[2], leaves) // whom a foreign one watched
			f.exits(p[0], leaves)
			f.succeeds(p[3])
			f.exits(p[3], leaves)
			f.succeeds(p[4])
			f.check(p[0], p[3], p[4])
		})
	}
}

// A pinned member at the head of the line blocks foreign candidates as it blocks
// ours, and outlives its session. So does an item.
func TestGateBlocksPeers(t *testing.T) {
	for _, kind := range []string{
		coordtest.PeerCuratorLatch, coordtest.PeerCuratorSelector, coordtest.PeerElectionSupport, coordtest.PeerKazoo,
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, zookeeper.Format(kind))
			joiner := session(t, open(t, zookeeper.Options{As: zookeeper.Format(kind), Prefix: f.root}, server(t)))
			gate := join(t, joiner, fleetElection, "gate")
			p := f.start(kind, ours)
			f.join(p...)
			// Those behind it watch the member when it is pinned.
			if err := joiner.Pin(t.Context(), gate, backend.Header{}, backend.Absent); err != nil {
				t.Fatal(err)
			}
			if err := joiner.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			item := appendItem(t, f.us, fleetElection, "item")
			late := f.start(kind) // and this one comes upon a gate and an item
			f.join(late...)
			blocked := func(by string) {
				t.Helper()
				time.Sleep(2 * time.Second)
				f.drain()
				if l := f.leader(); l != nil {
					t.Fatalf("%s leads past the %s", l.ID, by)
				}
			}
			blocked("gate")
			if err := f.us.Leave(t.Context(), gate); err != nil {
				t.Fatal(err)
			}
			for _, p := range p {
				f.succeeds(p)
				f.exits(p, leaves)
			}
			blocked("item")
			if err := f.us.Remove(t.Context(), item, join(t, f.us, "guard", "")); err != nil {
				t.Fatal(err)
			}
			f.succeeds(late[0])
			f.exits(late[0], leaves)
			f.check(append(p, late...)...)
		})
	}
}
