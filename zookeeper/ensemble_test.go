package zookeeper_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/recipes/group"
	"github.com/succession-dev/succession/recipes/queue"
	"github.com/succession-dev/succession/recipes/record"
	"github.com/succession-dev/succession/recipes/task"
	"github.com/succession-dev/succession/zookeeper"
)

// A follower that is cut off from its leader goes on to answer pings and reads for
// syncLimit ticks, here 6 s, while the leader ends the session after 3 s. The
// session's own deadline must come before that.
func TestIsolatedFollower(t *testing.T) {
	t.Parallel()
	const ttl = 3 * time.Second
	z := coordtest.NewZooKeeper(t, &coordtest.ZooKeeperOptions{Nodes: 3, Links: true, SyncLimit: 30})
	follower, err := z.Follower(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	leader, err := z.Leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b := session(t, open(t, zookeeper.Options{}, leader.Addr()))
	for round := range 3 {
		a := session(t, open(t, zookeeper.Options{TTL: ttl}, follower.Addr()))
		ma, mb := join(t, a, "e", ""), join(t, b, "e", "")
		ahead(t, a, ma)
		p := ahead(t, b, mb)
		time.Sleep(ttl/2 + time.Duration(round)*ttl/14)
		if err := z.Isolate(follower); err != nil {
			t.Fatal(err)
		}
		cut, watch := time.Now(), calm.Start(t)
		gone := make(chan time.Time, 1)
		go func() {
			if err := b.Gone(t.Context(), p.Ahead); err != nil {
				t.Error(err)
			}
			gone <- time.Now()
		}()
		var lost, won time.Time
		for lost.IsZero() || won.IsZero() {
			select {
			case <-a.Done():
				if lost.IsZero() {
					lost = time.Now()
				}
				if won.IsZero() {
					won = <-gone
				}
			case won = <-gone:
			case <-time.After(time.Minute):
				t.Fatal("neither lost nor won")
			}
		}
		if deadline := a.Deadline(); won.Before(deadline) {
			t.Errorf("heir's turn came %v before the leader's deadline", deadline.Sub(won))
		}
		if !lost.Before(won) && !watch.NotJudged(0, "two leaders for %v", lost.Sub(won)) {
			t.Errorf("two leaders for %v", lost.Sub(won))
		}
		t.Logf("cut off: told after %v, heir's turn after %v", lost.Sub(cut), won.Sub(cut))
		z.Heal()
		if err := follower.Ready(within(t, time.Minute)); err != nil {
			t.Fatal(err)
		}
		if err := b.Leave(t.Context(), mb); err != nil {
			t.Fatal(err)
		}
	}
}

// What says what is now does not say what was, where the client's own server has not heard of it yet. What is to change something
// does not find it done.
func TestFreshReads(t *testing.T) {
	t.Parallel()
	z := coordtest.NewZooKeeper(t, &coordtest.ZooKeeperOptions{Nodes: 3, Links: true})
	follower, err := z.Follower(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	leader, err := z.Leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx := within(t, 60*time.Second)
	writer, behind := open(t, zookeeper.Options{}, leader.Addr()), open(t, zookeeper.Options{}, follower.Addr())
	value := func(b backend.Backend) *record.Value[int] { return record.New(b, "r", record.JSON[int]()) }
	election := func(b backend.Backend) *elect.Election { return elect.New(b, "e", &elect.Options{ID: "x"}) }
	standby := func(b backend.Backend) *task.Standby { return task.NewStandby(b, "s", nil) }
	deleted := func(b backend.Backend) *record.Value[int] { return record.New(b, "d", record.JSON[int]()) }
	owner := func(b backend.Backend) *record.Value[group.Owner] {
		return record.New(b, "g-owners/x", record.JSON[group.Owner]())
	}
	var term *elect.Term
	for _, test := range []struct {
		name string
		do   func() error
		look func() (bool, error)
	}{
		{"Get", func() error { _, err := value(writer).Set(ctx, 1); return err }, func() (bool, error) {
			e, err := value(behind).Get(ctx)
			return e.Value == 1, err
		}},
		{"Leader", func() (err error) { term, err = election(writer).Campaign(ctx); return err }, func() (bool, error) {
			l, err := election(behind).Leader(ctx)
			return l.ID == "x", err
		}},
		{"Line", func() error { return term.Resign(ctx) }, func() (bool, error) {
			_, l, err := election(behind).Line(ctx)
			return len(l) == 0, err
		}},
		{"Status", func() error { return standby(writer).Start(ctx, "t") }, func() (bool, error) {
			all, err := standby(behind).Status(ctx)
			return len(all) == 1, err
		}},
		{"Start", func() error { return standby(writer).Stop(ctx, "t") }, func() (bool, error) {
			if err := standby(behind).Start(ctx, "t"); err != nil {
				return false, err
			}
			all, err := standby(writer).Status(ctx)
			return len(all) == 1 && all[0].State == task.Started, err
		}},
		{"Delete", func() error { _, err := deleted(writer).Set(ctx, 1); return err }, func() (bool, error) {
			if err := deleted(behind).Delete(ctx, backend.Any); err != nil {
				return false, err
			}
			e, err := deleted(writer).Get(ctx)
			return !e.Exists(), err
		}},
		{"List", func() error { _, err := record.New(writer, "l/x", record.Text()).Set(ctx, "x"); return err }, func() (bool, error) {
			all, err := record.List(ctx, behind, "l", record.Text())
			return len(all) == 1, err
		}},
		{"TryTake", func() error { _, err := queue.New(writer, "q", nil).Put(ctx, "x"); return err }, func() (bool, error) {
			item, err := queue.New(behind, "q", nil).TryTake(ctx)
			if err != nil {
				return false, err
			}
			return true, item.Done(ctx)
		}},
		{"Owners", func() error { _, err := owner(writer).Set(ctx, group.Owner{Item: "x", ID: "x"}); return err }, func() (bool, error) {
			all, err := group.New(behind, "g", nil).Owners(ctx)
			return len(all) == 1, err
		}},
	} {
		session(t, behind)
		if err := z.Isolate(follower); err != nil {
			t.Fatal(err)
		}
		if err := test.do(); err != nil {
			t.Fatal(err)
		}
		var right bool
		done := background(func() (err error) { right, err = test.look(); return err })
		time.AfterFunc(300*time.Millisecond, z.Heal) // of the 2 s for which the follower serves alone
		if err := <-done; err != nil || !right {
			t.Errorf("%s goes by what was before: %v", test.name, err)
		}
		z.Heal()
		if err := follower.Ready(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

// named returns nil if err is.
func named(what string, err error) error {
	if err != nil {
		err = fmt.Errorf("%s: %w", what, err)
	}
	return err
}

// A version, or a member, that somebody has from another server, or what has become of one, is no reason to refuse what is asked, or
// to say that it is done, where the client's own server has not heard of it yet.
func TestServerThatIsBehind(t *testing.T) {
	t.Parallel()
	z := coordtest.NewZooKeeper(t, &coordtest.ZooKeeperOptions{Nodes: 3, Links: true})
	follower, err := z.Follower(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	leader, err := z.Leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx := within(t, 60*time.Second)
	a, b := session(t, open(t, zookeeper.Options{}, leader.Addr())), session(t, open(t, zookeeper.Options{}, follower.Addr()))
	pin := func(s backend.Session, m backend.Member) error {
		l, err := a.Line(ctx, m.Line)
		if err != nil {
			return err
		}
		return s.Pin(ctx, m, l.Header, l.Version)
	}
	appended := func(line string) backend.Member {
		item, err := a.Append(ctx, line, "")
		if err != nil {
			t.Fatal(err)
		}
		return item
	}
	pinned, removed, by, own := join(t, a, "pinned", ""), join(t, a, "removed", ""), join(t, b, "removed", ""), join(t, b, "own", "")
	appended("items")
	if err := b.Refresh(ctx); err != nil {
		t.Fatal(err)
	}
	if err := z.Isolate(follower); err != nil {
		t.Fatal(err)
	}

	// What b does not know of.
	at, err := a.Put(ctx, "r", []byte("a"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []backend.Member{pinned, removed, join(t, a, "own", "")} {
		if err := pin(a, m); err != nil {
			t.Fatal(err)
		}
	}
	item, joined := appended("items"), join(t, a, "e", "")
	for _, name := range []string{"deleted", "guarded"} {
		if _, err := a.Put(ctx, name, []byte("a"), nil); err != nil {
			t.Fatal(err)
		}
	}

	calls := map[string]func() error{
		"Put at the version that the record has": func() error {
			_, err := b.Put(ctx, "r", []byte("b"), &backend.If{Version: at})
			return err
		},
		"Pin at the version that the header has": func() error { return pin(b, own) },
		"Leave of a member that was pinned":      func() error { return b.Leave(ctx, pinned) },
		"Leave of an item":                       func() error { return b.Leave(ctx, item) },
		"Remove of a member that was pinned":     func() error { return b.Remove(ctx, removed, by) },
		"Delete":                                 func() error { return b.Delete(ctx, "deleted", nil) },
		"Delete under guard":                     func() error { return b.Delete(ctx, "guarded", &backend.If{Member: own}) },
		"Ahead of another's member": func() error {
			p, err := b.Ahead(ctx, joined)
			if err == nil && !p.First {
				err = fmt.Errorf("it stands behind %+v", p.Ahead)
			}
			return err
		},
	}
	returned := make(chan error, len(calls))
	for what, call := range calls {
		go func() { returned <- named(what, call()) }()
	}
	gone := background(func() error { return b.Gone(ctx, joined) })
	watched := background(func() error { return b.WatchPlace(ctx, joined, &backend.Place{First: true, Token: joined.Position}) })
	still(t, returned, 300*time.Millisecond) // of the 2 s for which the follower serves alone
	z.Heal()
	for range calls {
		if err := <-returned; err != nil {
			t.Error(err)
		}
	}
	if err := a.Refresh(ctx); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]int{"pinned": 0, "items": 1, "removed": 1} {
		if l, err := a.Line(ctx, line); err != nil || len(l.Members) != want {
			t.Errorf("the line %s has %d members, want %d: %v", line, len(l.Members), want, err)
		}
	}
	for _, name := range []string{"deleted", "guarded"} {
		if r, err := a.Get(ctx, name); err != nil || r.Version != backend.Absent {
			t.Errorf("the record %q is still there: %v", name, err)
		}
	}
	still(t, gone, 100*time.Millisecond)
	still(t, watched, 100*time.Millisecond)
	if err := a.Leave(ctx, joined); err != nil {
		t.Fatal(err)
	}
	if err := <-gone; err != nil {
		t.Errorf("Gone of a member that has left: %v", err)
	}
	if err := <-watched; !errors.Is(err, backend.ErrNotMember) {
		t.Errorf("WatchPlace of a member that has left: %v", err)
	}
}
