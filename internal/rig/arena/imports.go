//go:build linux

package arena

import (
	"context"
	"errors"
	"path"
	"sync"

	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/consul/api"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Import brings back members of an election, as who restores a copy of the keys into a cluster in use does: it copies the line, waits until
// some have left, one of its own among them, and writes the copy. What was written then stands for ever, and nobody may pass it: it is a ghost, which
// belongs to no session. After another wait Import removes the ghosts, as an operator does. It returns how many there were.
//
// On Consul everything is written, as "consul kv import" does, also what still stands, and the mark of the line. Elsewhere only what has gone is
// written: what stands would be taken from its session.
func (c *Coordinator) Import(ctx context.Context, election string, wait func(context.Context)) (ghosts int, err error) {
	s, err := c.Session(ctx)
	if err != nil {
		return 0, err
	}
	own, err := s.Join(ctx, election, "imported", "")
	if err != nil {
		return 0, err
	}
	leave := sync.OnceFunc(func() { _ = s.Leave(ctx, own.Member) })
	defer leave()
	others := wait
	wait = func(ctx context.Context) {
		leave()
		others(ctx)
	}
	ghosts, err = c.imports(ctx, election, wait)
	if err == nil && ghosts == 0 {
		err = errors.New("nothing was imported that had left")
	}
	return ghosts, err
}

func (c *Coordinator) importEtcd(ctx context.Context, election string, wait func(context.Context)) (ghosts int, err error) {
	err = c.etcd(ctx, "root", root, c.Cluster.Addrs(), func(client *clientv3.Client) error {
		ghosts, err = importKeys(ctx, client, election, wait)
		return err
	})
	return ghosts, err
}

func importKeys(ctx context.Context, client *clientv3.Client, election string, wait func(context.Context)) (ghosts int, err error) {
	copied, err := client.Get(ctx, path.Join(folder, election)+"/", clientv3.WithPrefix())
	if err != nil {
		return 0, err
	}
	wait(ctx)
	var undo []clientv3.Op
	for _, kv := range copied.Kvs {
		key := string(kv.Key)
		put, perr := client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).Then(clientv3.OpPut(key, string(kv.Value))).Commit()
		if perr != nil {
			err = perr
			break
		}
		if put.Succeeded {
			undo = append(undo, clientv3.OpDelete(key))
		}
	}
	wait(ctx)
	for _, op := range undo { // nobody else makes such a key again
		_, derr := client.Do(ctx, op)
		err = errors.Join(err, derr)
	}
	return len(undo), err
}

func (c *Coordinator) importZooKeeper(ctx context.Context, election string, wait func(context.Context)) (ghosts int, err error) {
	var passwords []string
	if c.guard != nil {
		passwords = []string{c.guard.secret}
	}
	err = c.zookeeper(ctx, passwords, func(conn *zk.Conn) error {
		ghosts, err = importZnodes(ctx, conn, election, wait)
		return err
	})
	return ghosts, err
}

func importZnodes(ctx context.Context, conn *zk.Conn, election string, wait func(context.Context)) (ghosts int, err error) {
	line := "/" + path.Join(folder, election)
	names, _, err := conn.Children(line)
	if err != nil {
		return 0, err
	}
	copied := make(map[string][]byte)
	for _, name := range names {
		data, _, err := conn.Get(line + "/" + name)
		if err == nil {
			copied[line+"/"+name] = data
		} else if !errors.Is(err, zk.ErrNoNode) {
			return 0, err
		}
	}
	wait(ctx)
	var made []string
	for name, data := range copied {
		_, cerr := conn.Create(name, data, zk.FlagPersistent, zk.WorldACL(zk.PermAll))
		if cerr == nil {
			made = append(made, name)
		} else if !errors.Is(cerr, zk.ErrNodeExists) {
			err = cerr
			break
		}
	}
	wait(ctx)
	for _, name := range made {
		if derr := conn.Delete(name, -1); !errors.Is(derr, zk.ErrNoNode) {
			err = errors.Join(err, derr)
		}
	}
	return len(made), err
}

func (c *Coordinator) importConsul(ctx context.Context, election string, wait func(context.Context)) (ghosts int, err error) {
	var copied api.KVPairs
	name := path.Join(folder, election)
	err = c.try(func(i int, _ []string) error {
		client, err := c.consul(c.Cluster.Addrs()[i], root)
		if err != nil {
			return err
		}
		query := (&api.QueryOptions{RequireConsistent: true}).WithContext(ctx)
		if copied, _, err = client.KV().List(name+"/", query); err != nil {
			return err
		}
		mark, _, err := client.KV().Get(name+"~", query)
		if err == nil && mark != nil {
			copied = append(copied, mark)
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	wait(ctx)
	err = c.try(func(i int, _ []string) error {
		client, err := c.consul(c.Cluster.Addrs()[i], root)
		for _, pair := range copied {
			if err == nil {
				_, err = client.KV().Put(&api.KVPair{Key: pair.Key, Flags: pair.Flags, Value: pair.Value}, (&api.WriteOptions{}).WithContext(ctx))
			}
		}
		return err
	})
	wait(ctx)
	s, serr := c.Session(ctx)
	if serr != nil {
		return 0, errors.Join(err, serr)
	}
	found, serr := s.Imported(ctx, election)
	for _, m := range found {
		serr = errors.Join(serr, s.Leave(ctx, m))
	}
	return len(found), errors.Join(err, serr)
}
