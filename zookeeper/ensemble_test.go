package zookeeper_test

import (
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/zookeeper"
)

// A follower that is cut off from its leader goes on to answer pings and reads for
// syncLimit ticks, here 2 s, while the leader ends the session after 1 s. The
// session's own deadline must come before that.
func TestIsolatedFollower(t *testing.T) {
	t.Parallel()
	z := coordtest.NewZooKeeper(t, &coordtest.ZooKeeperOptions{Nodes: 3, Links: true, NoSync: true})
	follower, err := z.Follower(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	leader, err := z.Leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b := session(t, open(t, zookeeper.Options{TTL: time.Second}, leader.Addr()))
	for round := range 3 {
		a := session(t, open(t, zookeeper.Options{TTL: time.Second}, follower.Addr()))
		ma, mb := join(t, a, "e", ""), join(t, b, "e", "")
		ahead(t, a, ma)
		p := ahead(t, b, mb)
		time.Sleep(600*time.Millisecond + time.Duration(round)*70*time.Millisecond)
		if err := z.Isolate(follower); err != nil {
			t.Fatal(err)
		}
		cut := time.Now()
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
			case <-time.After(10 * time.Second):
				t.Fatal("neither lost nor won")
			}
		}
		if !lost.Before(won) {
			t.Errorf("two leaders for %v", lost.Sub(won))
		}
		t.Logf("cut off: told after %v, heir's turn after %v", lost.Sub(cut), won.Sub(cut))
		z.Heal()
		if err := follower.Ready(within(t, 20*time.Second)); err != nil {
			t.Fatal(err)
		}
		if err := b.Leave(t.Context(), mb); err != nil {
			t.Fatal(err)
		}
	}
}

// A version, or a member, that somebody has from another server is no reason to refuse a
// write, or to say that it has gone, where the client's own server has not heard of it yet.
func TestServerThatIsBehind(t *testing.T) {
	t.Parallel()
	z := coordtest.NewZooKeeper(t, &coordtest.ZooKeeperOptions{Nodes: 3, Links: true, NoSync: true})
	follower, err := z.Follower(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	leader, err := z.Leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a := session(t, open(t, zookeeper.Options{}, leader.Addr()))
	b := session(t, open(t, zookeeper.Options{}, follower.Addr()))
	if err := z.Isolate(follower); err != nil {
		t.Fatal(err)
	}
	ctx := within(t, 20*time.Second)
	at, err := a.Put(ctx, "r", []byte("a"), nil)
	if err != nil {
		t.Fatal(err)
	}
	m := join(t, a, "e", "")
	gone := background(func() error { return b.Gone(ctx, m) })
	done := background(func() error {
		_, err := b.Put(ctx, "r", []byte("b"), &backend.If{Version: at})
		return err
	})
	still(t, done, 300*time.Millisecond) // of the 2 s for which the follower serves alone
	z.Heal()
	if err := <-done; err != nil {
		t.Errorf("Put at the version that the record has: %v", err)
	}
	still(t, gone, 100*time.Millisecond)
	if err := a.Leave(ctx, m); err != nil {
		t.Fatal(err)
	}
	if err := <-gone; err != nil {
		t.Errorf("Gone of a member that has left: %v", err)
	}
}
