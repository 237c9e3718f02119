package zookeeperrig

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// SetClock sets the wall clock of the servers forth by shift, and checks that it shows the
// time by what they write down as a node's time of creation.
func SetClock(z *coordtest.ZooKeeper, shift time.Duration) error {
	if err := z.SetClock(shift); err != nil {
		return err
	}
	return operate(z.Addrs(), func(c *zk.Conn) error {
		want := time.Now().Add(shift)
		at, err := c.Create("/clock", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
		if err != nil {
			return err
		}
		_, stat, err := c.Exists(at)
		if err != nil {
			return err
		}
		if got := time.UnixMilli(stat.Ctime); got.Sub(want).Abs() > time.Minute {
			return fmt.Errorf("the servers' clock shows %v, and was set to %v", got, want)
		}
		return nil
	})
}

// operate does what an operator does, with a connection of its own: one that lasts
// would not outlive a reset.
func operate(addrs []string, do func(*zk.Conn) error) error {
	c, _, err := zk.Connect(addrs, 10*time.Second, zk.WithLogger(quiet{}))
	if err != nil {
		return err
	}
	defer c.Close()
	return do(c)
}

// Reference starts a ZooKeeper for the test, and returns a [conformance.Harness] Reference to it: it deletes a
// znode that is not there.
func Reference(t testing.TB) func(context.Context) error {
	t.Helper()
	c, _, err := zk.Connect(coordtest.NewZooKeeper(t, nil).Addrs(), 10*time.Second, zk.WithLogger(quiet{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return func(ctx context.Context) error {
		done := make(chan error, 1)
		go func() { done <- c.Delete("/nobody", -1) }() // it ends when c is closed
		select {
		case err := <-done:
			if err == zk.ErrNoNode {
				return nil
			}
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}
