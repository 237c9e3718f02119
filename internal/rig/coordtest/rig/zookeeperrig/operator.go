package zookeeperrig

import (
	"context"
	"fmt"
	"path"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
)

// An Operator is a [rig.Operator].
type Operator struct {
	ZooKeeper *coordtest.ZooKeeper
	Root      string // the chroot of the backends
}

var _ rig.Operator = Operator{}

// Remove implements [rig.Operator].
func (o Operator) Remove(_ context.Context, m backend.Member) error {
	return Operate(o.ZooKeeper.Addrs(), func(c *zk.Conn) error {
		if err := c.Delete(path.Join(o.Root, m.Line, m.Key), -1); err != zk.ErrNoNode {
			return err
		}
		return nil
	})
}

// Drop implements [rig.Operator]: it deletes a znode and its children in one step.
func (o Operator) Drop(_ context.Context, line string) error {
	at := path.Join(o.Root, line)
	return Operate(o.ZooKeeper.Addrs(), func(c *zk.Conn) error {
		for {
			names, _, err := c.Children(at)
			if err == zk.ErrNoNode { // nobody has used it here
				return nil
			}
			if err != nil {
				return err
			}
			var ops []any
			for _, name := range append(names, "") {
				ops = append(ops, &zk.DeleteRequest{Path: path.Join(at, name), Version: -1})
			}
			_, err = c.Multi(ops...)
			if err != zk.ErrNoNode && err != zk.ErrNotEmpty { // somebody joined or left meanwhile
				return err
			}
		}
	})
}

// Backup implements [rig.Operator].
func (o Operator) Backup(context.Context) (restore func(context.Context) error, err error) {
	return o.ZooKeeper.Backup()
}

// SetClock sets the wall clock of the servers forth by shift, and checks that it shows the
// time by what they write down as a node's time of creation.
func (o Operator) SetClock(shift time.Duration) error {
	if err := o.ZooKeeper.SetClock(shift); err != nil {
		return err
	}
	return Operate(o.ZooKeeper.Addrs(), func(c *zk.Conn) error {
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

// Operate does what an operator does, with a connection of its own: one that lasts
// would not outlive a reset.
func Operate(addrs []string, do func(*zk.Conn) error) error {
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
	c, _, err := zk.Connect(coordtest.NewZooKeeper(t, &coordtest.ZooKeeperOptions{NoSync: true}).Addrs(), 10*time.Second, zk.WithLogger(quiet{}))
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
