package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/consul/api"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/succession-dev/succession/backend"
	_ "github.com/succession-dev/succession/consul"
	"github.com/succession-dev/succession/elect"
	_ "github.com/succession-dev/succession/etcd"
	"github.com/succession-dev/succession/lock"
	_ "github.com/succession-dev/succession/zookeeper"
)

// session is long: no session is to end while a machine is busy with a thousand candidates.
const session = time.Minute

// titles are the coordinators' names for people.
var titles = map[string]string{"etcd": "etcd", "consul": "Consul", "zookeeper": "ZooKeeper"}

// A library makes lines on a coordinator.
type library struct {
	coordinator, name string

	open func(ctx context.Context, addr, election string) (*line, error)
}

var libraries = []library{
	{"etcd", "succession", succession("etcd", election)},
	{"etcd", "concurrency.Election", concurrencyLine(concurrencyElection)},
	{"etcd", "succession, Mutex", succession("etcd", mutex)},
	{"etcd", "concurrency.Mutex", concurrencyLine(concurrencyMutex)},
	{"consul", "succession", succession("consul", election)},
	{"consul", "succession, Mutex", succession("consul", mutex)},
	{"consul", "api.Lock", consulLine},
	{"zookeeper", "succession", succession("zookeeper", election)},
	{"zookeeper", "succession, Mutex", succession("zookeeper", mutex)},
	{"zookeeper", "zk.Lock", zkLine},
	{"zookeeper", "Curator InterProcessMutex", curatorLine},
}

// A campaign blocks until it has a term.
type campaign func(context.Context) (*elect.Term, error)

func election(b backend.Backend, name string, o *elect.Options) campaign {
	return elect.New(b, name, o).Campaign
}

func mutex(b backend.Backend, name string, o *elect.Options) campaign {
	return func(ctx context.Context) (*elect.Term, error) {
		held, err := lock.NewMutex(b, name, o).Lock(ctx)
		if err != nil {
			return nil, err
		}
		return held.Term, nil
	}
}

func succession(scheme string, ask func(backend.Backend, string, *elect.Options) campaign) func(context.Context, string, string) (*line, error) {
	return func(ctx context.Context, addr, name string) (*line, error) {
		b, err := backend.Open(ctx, fmt.Sprintf("%s://%s?ttl=%v", scheme, addr, session))
		if err != nil {
			return nil, err
		}
		stand := func(ctx context.Context) (candidate, error) {
			var once sync.Once
			joined := make(chan struct{})
			wins := ask(b, name, &elect.Options{Trace: func(ev elect.Event) {
				if ev.Kind == elect.Waiting || ev.Kind == elect.Elected {
					once.Do(func() { close(joined) })
				}
			}})
			var t *elect.Term
			return candidate{
				campaign: after(func() (err error) {
					t, err = wins(ctx)
					return err
				}),
				joined: func() error {
					select {
					case <-joined:
					case <-ctx.Done():
					}
					return context.Cause(ctx)
				},
				resign: before(func() error { return t.Resign(ctx) }),
			}, nil
		}
		return &line{stand: stand, close: func() { b.Close() }}, nil
	}
}

// concurrencyLine returns what makes lines of etcd's package concurrency. Each candidate has a
// session.
func concurrencyLine(stand func(s *concurrency.Session, name string) (campaign, resign func(context.Context) error)) func(context.Context, string, string) (*line, error) {
	return func(_ context.Context, addr, name string) (*line, error) {
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}})
		if err != nil {
			return nil, err
		}
		return &line{
			stand: func(ctx context.Context) (candidate, error) {
				s, err := concurrency.NewSession(client, concurrency.WithTTL(int(session/time.Second)))
				if err != nil {
					return candidate{}, err
				}
				campaign, resign := stand(s, name)
				return candidate{
					campaign: after(func() error { return campaign(ctx) }),
					joined:   func() error { return stands(ctx, client, name, s) },
					resign:   before(func() error { return resign(ctx) }),
				}, nil
			},
			close: func() { client.Close() },
		}, nil
	}
}

func concurrencyElection(s *concurrency.Session, name string) (campaign, resign func(context.Context) error) {
	e := concurrency.NewElection(s, name)
	return func(ctx context.Context) error { return e.Campaign(ctx, "x") }, e.Resign
}

func concurrencyMutex(s *concurrency.Session, name string) (campaign, resign func(context.Context) error) {
	m := concurrency.NewMutex(s, name)
	return m.Lock, m.Unlock
}

// stands waits until the key of the session is in the line.
func stands(ctx context.Context, client *clientv3.Client, name string, s *concurrency.Session) error {
	return poll(ctx, func() (bool, error) {
		r, err := client.Get(ctx, fmt.Sprintf("%s/%x", name, s.Lease()), clientv3.WithCountOnly())
		return err == nil && r.Count == 1, err
	})
}

func consulLine(_ context.Context, addr, election string) (*line, error) {
	client, err := api.NewClient(&api.Config{Address: addr})
	if err != nil {
		return nil, err
	}
	stand := func(ctx context.Context) (candidate, error) {
		lock, err := client.LockOpts(&api.LockOptions{Key: election, SessionTTL: session.String()})
		return candidate{
			campaign: after(func() error {
				_, err := lock.Lock(ctx.Done())
				return err
			}),
			joined: func() error { return nil }, // there is no line: all who wait are woken
			resign: before(lock.Unlock),
		}, err
	}
	return &line{stand: stand, close: func() {}}, nil
}

func zkLine(ctx context.Context, addr, election string) (*line, error) {
	conn, _, err := zk.Connect([]string{addr}, session, zk.WithLogInfo(false))
	if err != nil {
		return nil, err
	}
	if _, err := conn.Create("/"+election, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		return nil, err
	}
	n := 0
	stand := func(ctx context.Context) (candidate, error) {
		lock := zk.NewLock(conn, "/"+election, zk.WorldACL(zk.PermAll))
		n++
		return candidate{
			campaign: after(lock.Lock),
			joined:   func() error { return joins(ctx, conn, election, n) },
			resign:   before(lock.Unlock),
		}, nil
	}
	return &line{stand: stand, close: conn.Close}, nil
}

// joins waits until n have joined the line since it was made.
func joins(ctx context.Context, conn *zk.Conn, election string, n int) error {
	return poll(ctx, func() (bool, error) {
		// Each join and each leave counts.
		_, stat, err := conn.Exists("/" + election)
		return err == nil && int(stat.Cversion+stat.NumChildren)/2 == n, err
	})
}

// poll asks until the answer is yes.
func poll(ctx context.Context, ask func() (bool, error)) error {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		if yes, err := ask(); yes || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
