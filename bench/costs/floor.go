package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/consul/api"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/succession-dev/succession/bench/internal/leases"
)

// A floor is the least that a handover can cost on a coordinator: it deletes a key that is
// watched, waits for the notification, and reads once. It settles first, as a line does: what has
// just been busy is quicker.

// apart names a key that nobody else uses.
func apart() string { return fmt.Sprintf("floor-%08x", rand.Uint32()) }

// passes measures from leave, which runs beside, until wait and read have returned.
func passes(leave, wait, read func() error) (time.Duration, error) {
	time.Sleep(settle) // nothing tells a blocking query waits, and as before a handover
	begin := time.Now()
	left := make(chan error, 1)
	go func() { left <- leave() }()
	if err := wait(); err != nil {
		return 0, err
	}
	err := read()
	took := time.Since(begin)
	return took, errors.Join(err, <-left)
}

func etcdFloor(ctx context.Context, client *clientv3.Client) (time.Duration, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	key := apart()
	if _, err := client.Put(ctx, key, "x"); err != nil {
		return 0, err
	}
	// From now on, and not from the put's revision: where others have written since, the server
	// would take up to 100 ms to catch up (syncWatchersLoop in server/storage/mvcc).
	events := client.Watch(ctx, key, clientv3.WithCreatedNotify())
	<-events // it has begun
	return passes(
		func() error { _, err := client.Delete(ctx, key); return err },
		func() error { r := <-events; return r.Err() },
		func() error { _, err := client.Get(ctx, key); return err },
	)
}

func consulFloor(ctx context.Context, kv *api.KV) (time.Duration, error) {
	key := apart()
	if _, err := kv.Put(&api.KVPair{Key: key}, nil); err != nil {
		return 0, err
	}
	_, meta, err := kv.Get(key, nil)
	if err != nil {
		return 0, err
	}
	gone := make(chan error, 1)
	go func() {
		_, _, err := kv.Get(key, (&api.QueryOptions{WaitIndex: meta.LastIndex}).WithContext(ctx))
		gone <- err
	}()
	return passes(
		func() error { _, err := kv.Delete(key, nil); return err },
		func() error { return <-gone },
		func() error { _, _, err := kv.Get(key, &api.QueryOptions{RequireConsistent: true}); return err },
	)
}

func zkFloor(conn *zk.Conn) (time.Duration, error) {
	path, err := conn.Create("/"+apart(), nil, 0, zk.WorldACL(zk.PermAll))
	if err != nil {
		return 0, err
	}
	_, _, gone, err := conn.GetW(path)
	if err != nil {
		return 0, err
	}
	return passes(
		func() error { return conn.Delete(path, -1) },
		func() error { return (<-gone).Err },
		func() error { _, _, err := conn.Exists(path); return err },
	)
}

func leasesFloor(ctx context.Context, client *leases.Client) (time.Duration, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	name := apart()
	version, err := client.Create(ctx, name)
	if err != nil {
		return 0, err
	}
	gone, err := client.Watch(ctx, name, version)
	if err != nil {
		return 0, err
	}
	return passes(
		func() error { return client.Delete(ctx, name) },
		gone,
		func() error { _, err := client.Exists(ctx, name); return err },
	)
}

// localFloor passes a lock of the kernel on: there is nothing to read.
func localFloor(dir string) (time.Duration, error) {
	path := filepath.Join(dir, "@"+apart())
	holder, err := flock(path)
	if err != nil {
		return 0, err
	}
	held := make(chan error, 1)
	go func() {
		waiter, err := flock(path)
		if err == nil {
			err = waiter.Close()
		}
		held <- err
	}()
	return passes(holder.Close, func() error { return <-held }, func() error { return nil })
}

// flock opens a file and blocks until it holds its lock, which closing gives up.
func flock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	return f, syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
}
