package coordtest_test

import (
	"context"
	"testing"
	"time"

	"github.com/succession-dev/succession/internal/rig/coordtest"
)

func TestEnsembleSurvivesItsLeader(t *testing.T) {
	z := coordtest.NewZooKeeper(t, &coordtest.ZooKeeperOptions{Nodes: 3})
	old := leader(t, z, nil)
	write(t, old.Addr(), "/kept")
	old.Kill()
	now := leader(t, z, old)
	if !exists(t, now.Addr(), "/kept") {
		t.Error("the new leader has lost a write")
	}
	if err := old.Wipe(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !exists(t, old.Addr(), "/kept") {
		t.Error("a wiped member has not got the data back from the others")
	}
	if err := z.Wipe(t.Context()); err != nil {
		t.Fatal(err)
	}
	if exists(t, leader(t, z, nil).Addr(), "/kept") {
		t.Error("the wiped ensemble still has the data")
	}
}

func TestIsolatedLeaderLosesItsQuorum(t *testing.T) {
	z := coordtest.NewZooKeeper(t, &coordtest.ZooKeeperOptions{Nodes: 3, Links: true})
	old := leader(t, z, nil)
	if err := z.Isolate(old); err != nil {
		t.Fatal(err)
	}
	now := leader(t, z, old)
	write(t, now.Addr(), "/after")

	const refusal = "This ZooKeeper instance is not currently serving requests\n"
	eventually(t, "the isolated server stops serving", func(context.Context) bool {
		return fourLetter(t, old.Addr(), "srvr") == refusal
	})
	z.Heal()
	if err := old.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !exists(t, old.Addr(), "/after") {
		t.Error("the healed server has missed a write")
	}
}

// leader waits for a leader other than not.
func leader(t *testing.T, z *coordtest.ZooKeeper, not *coordtest.Server) *coordtest.Server {
	t.Helper()
	var found *coordtest.Server
	eventually(t, "another server leads", func(ctx context.Context) bool {
		s, err := z.Leader(ctx)
		found = s
		return err == nil && s != not
	})
	return found
}

// eventually waits until cond is true of a server, which no event tells.
func eventually(t *testing.T, what string, cond func(context.Context) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !cond(ctx) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited in vain until %s", what)
		}
	}
}
