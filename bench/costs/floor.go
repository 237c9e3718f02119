package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/consul/api"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// A floor is the least that a handover can cost on a coordinator.
type floor struct {
	// once deletes a key that is watched, waits for the notification, and reads once. It
	// settles first, as a line does: what has just been busy is quicker.
	once  func(ctx context.Context) (time.Duration, error)
	close func()
}

// floors connects to a coordinator.
var floors = map[string]func(ctx context.Context, addr string) (*floor, error){
	"etcd":      etcdFloor,
	"consul":    consulFloor,
	"zookeeper": zkFloor,
}

// apart names a key that nobody else uses.
func apart() string { return fmt.Sprintf("floor-%08x", rand.Uint32()) }

func etcdFloor(_ context.Context, addr string) (*floor, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}})
	if err != nil {
		return nil, err
	}
	once := func(ctx context.Context) (time.Duration, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		key := apart()
		put, err := client.Put(ctx, key, "x")
		if err != nil {
			return 0, err
		}
		events := client.Watch(ctx, key, clientv3.WithRev(put.Header.Revision+1), clientv3.WithCreatedNotify())
		<-events // it has begun
		time.Sleep(settle)
		begin := time.Now()
		done := make(chan error, 1)
		go func() {
			_, err := client.Delete(ctx, key)
			done <- err
		}()
		<-events
		_, err = client.Get(ctx, key)
		took := time.Since(begin)
		if err == nil {
			err = <-done
		}
		return took, err
	}
	return &floor{once, func() { client.Close() }}, nil
}

func consulFloor(_ context.Context, addr string) (*floor, error) {
	client, err := api.NewClient(&api.Config{Address: addr})
	if err != nil {
		return nil, err
	}
	kv := client.KV()
	once := func(ctx context.Context) (time.Duration, error) {
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
		time.Sleep(settle) // nothing tells that it waits, and as before a handover
		begin := time.Now()
		done := make(chan error, 1)
		go func() {
			_, err := kv.Delete(key, nil)
			done <- err
		}()
		if err := <-gone; err != nil {
			return 0, err
		}
		_, _, err = kv.Get(key, &api.QueryOptions{RequireConsistent: true})
		took := time.Since(begin)
		if err == nil {
			err = <-done
		}
		return took, err
	}
	return &floor{once, func() {}}, nil
}

func zkFloor(_ context.Context, addr string) (*floor, error) {
	conn, _, err := zk.Connect([]string{addr}, session, zk.WithLogInfo(false))
	if err != nil {
		return nil, err
	}
	once := func(context.Context) (time.Duration, error) {
		path, err := conn.Create("/"+apart(), nil, 0, zk.WorldACL(zk.PermAll))
		if err != nil {
			return 0, err
		}
		_, _, gone, err := conn.GetW(path)
		if err != nil {
			return 0, err
		}
		time.Sleep(settle)
		begin := time.Now()
		done := make(chan error, 1)
		go func() { done <- conn.Delete(path, -1) }()
		<-gone
		_, _, err = conn.Exists(path)
		took := time.Since(begin)
		if err == nil {
			err = <-done
		}
		return took, err
	}
	return &floor{once, conn.Close}, nil
}
