package candidate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/consul/api"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/succession-dev/succession/bench/internal/leases"
)

// Floor is the name of the floors.
const Floor = "floor"

// Floors are the least that a handover can cost on each coordinator: candidates in a line, with the
// coordinator's own client and nothing else. Each watches the key in front of its own; the leader
// deletes its key, and who is notified reads once, and leads. There is no session, no token, no
// deadline and no second try, so nobody could use them. On [Local] they are a lock of the kernel, for
// which there is nothing to read.
var Floors = []Library{
	{Coordinator: Etcd, Name: Floor, Connect: etcdFloor},
	{Coordinator: Consul, Name: Floor, Connect: consulFloor},
	{Coordinator: ZooKeeper, Name: Floor, Connect: zkFloor},
	{Coordinator: Postgres, Name: Floor, Connect: postgresFloor, Unseen: true},
	{Coordinator: Local, Name: Floor, Connect: localFloor, Unseen: true},
	{Coordinator: Kubernetes, Name: Floor, Connect: leasesFloor, Unseen: true},
}

// FloorOf returns the floor of a coordinator.
func FloorOf(coordinator string) Library {
	return Floors[slices.IndexFunc(Floors, func(l Library) bool { return l.Coordinator == coordinator })]
}

// always is what a leader asks that nothing tells.
func always() bool { return true }

// apart names a key that nobody else uses.
func apart() string { return fmt.Sprintf("%016x", rand.Uint64()) }

func etcdFloor(_ context.Context, s Settings) (func(string) Elector, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: s.Addresses})
	if err != nil {
		return nil, err
	}
	return func(election string) Elector {
		return func(ctx context.Context) (Term, error) {
			ctx, cancel := context.WithCancel(ctx)
			key := election + "/" + apart()
			term := Term{Leads: always, Release: func(bool) error {
				defer cancel() // of the watch, which takes no time on the way
				_, err := client.Delete(ctx, key)
				return err
			}}
			put, err := client.Put(ctx, key, "x")
			if err != nil {
				return term, err
			}
			front, err := client.Get(ctx, election+"/", append(clientv3.WithLastCreate(), clientv3.WithMaxCreateRev(put.Header.Revision-1))...)
			if err != nil || len(front.Kvs) == 0 {
				return term, err
			}
			// From now on, and not from a revision: where others have written since, the server would take
			// up to 100 ms to catch up (syncWatchersLoop in server/storage/mvcc). Nobody leaves meanwhile.
			events := client.Watch(ctx, string(front.Kvs[0].Key), clientv3.WithCreatedNotify())
			<-events // it has begun
			if gone := <-events; len(gone.Events) == 0 {
				return term, fmt.Errorf("the watch has ended: %v", gone.Err())
			}
			_, err = client.Get(ctx, key)
			return term, err
		}
	}, nil
}

func consulFloor(_ context.Context, s Settings) (func(string) Elector, error) {
	client, err := api.NewClient(&api.Config{Address: s.Addresses[0]})
	if err != nil {
		return nil, err
	}
	kv := client.KV()
	return func(election string) Elector {
		return func(ctx context.Context) (Term, error) {
			key := election + "/" + apart()
			term := Term{Leads: always, Release: func(bool) error {
				_, err := kv.Delete(key, nil)
				return err
			}}
			if _, err := kv.Put(&api.KVPair{Key: key}, nil); err != nil {
				return term, err
			}
			line, meta, err := kv.List(election+"/", &api.QueryOptions{RequireConsistent: true})
			if err != nil {
				return term, err
			}
			slices.SortFunc(line, func(a, b *api.KVPair) int { return int(a.CreateIndex) - int(b.CreateIndex) })
			i := slices.IndexFunc(line, func(p *api.KVPair) bool { return p.Key == key })
			if i <= 0 {
				return term, nil
			}
			for index, front := meta.LastIndex, line[i-1]; front != nil; index = meta.LastIndex {
				front, meta, err = kv.Get(front.Key, (&api.QueryOptions{WaitIndex: index}).WithContext(ctx))
				if err != nil {
					return term, err
				}
			}
			_, _, err = kv.Get(key, &api.QueryOptions{RequireConsistent: true})
			return term, err
		}
	}, nil
}

func zkFloor(_ context.Context, s Settings) (func(string) Elector, error) {
	conn, err := zkConnect(s, nil)
	if err != nil {
		return nil, err
	}
	return func(election string) Elector {
		return func(context.Context) (Term, error) {
			folder := "/" + election
			if _, err := conn.Create(folder, nil, 0, zk.WorldACL(zk.PermAll)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
				return Term{}, err
			}
			own, err := conn.Create(folder+"/", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
			if err != nil {
				return Term{}, err
			}
			term := Term{Leads: always, Release: func(bool) error { return conn.Delete(own, -1) }}
			line, _, err := conn.Children(folder)
			if err != nil {
				return term, err
			}
			slices.Sort(line)
			i := slices.Index(line, own[len(folder)+1:])
			if i <= 0 {
				return term, nil
			}
			exists, _, gone, err := conn.ExistsW(folder + "/" + line[i-1])
			if err != nil {
				return term, err
			}
			if exists {
				if err := (<-gone).Err; err != nil {
					return term, err
				}
			}
			_, _, err = conn.Exists(own)
			return term, err
		}
	}, nil
}

func localFloor(_ context.Context, s Settings) (func(string) Elector, error) {
	return func(election string) Elector {
		return func(context.Context) (Term, error) {
			f, err := os.OpenFile(filepath.Join(s.Addresses[0], "@"+election), os.O_CREATE|os.O_RDWR, 0o600)
			if err != nil {
				return Term{}, err
			}
			return Term{Leads: always, Release: func(bool) error { return f.Close() }}, syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		}
	}, nil
}

func leasesFloor(_ context.Context, s Settings) (func(string) Elector, error) {
	client := leases.New(s.Addresses[0])
	return func(election string) Elector {
		return func(ctx context.Context) (Term, error) {
			ctx, cancel := context.WithCancel(ctx)
			// The clock of the one machine orders them.
			name := fmt.Sprintf("%s-%019d-%s", election, time.Now().UnixNano(), apart())
			term := Term{Leads: always, Release: func(bool) error {
				defer cancel() // of the watch
				return client.Delete(ctx, name)
			}}
			if err := client.Create(ctx, name); err != nil {
				return term, err
			}
			line, version, err := client.List(ctx, election+"-")
			if err != nil {
				return term, err
			}
			slices.Sort(line)
			i := slices.Index(line, name)
			if i <= 0 {
				return term, nil
			}
			gone, err := client.Watch(ctx, line[i-1], version)
			if err != nil {
				return term, err
			}
			if err := gone(); err != nil {
				return term, err
			}
			_, err = client.Exists(ctx, name)
			return term, err
		}
	}, nil
}
