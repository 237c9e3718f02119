//go:build linux

package arena

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

func startConsul(ctx context.Context, _ string, n int, secured bool) (*Coordinator, error) {
	config := []string{
		"limits{http_max_conns_per_client=4000}", // all clients have one address
		// See coordtest.Consul; and a server that replaces another votes soon.
		"autopilot{cleanup_dead_servers=false server_stabilization_time=\"1s\"}",
		"performance{raft_multiplier=2}", // a busy machine is no reason for another leader
	}
	if secured {
		config = append(config, fmt.Sprintf("acl{enabled=true default_policy=\"deny\" tokens{initial_management=%q agent=%q}}", root, root))
	}
	c, err := coordtest.StartConsul(ctx, &coordtest.ConsulOptions{Nodes: n, Durable: true, Links: n > 1 && Links(), Config: config})
	if err != nil {
		return nil, err
	}
	const ttl = 3 * time.Second
	made := &Coordinator{
		Cluster: &c.Cluster,
		rejoin:  c.Rejoin,
		TTL:     ttl,
		Crash:   2*ttl + time.Second, // it ends a session after twice its time
		URL: func(i int, addrs []string) string {
			return fmt.Sprintf("consul://%s/%s?ttl=%v", addrs[i%len(addrs)], folder, ttl)
		},
	}
	made.End = made.endConsul
	made.secures, made.replace, made.imports = made.secureConsul, made.replaceConsul, made.importConsul
	return made, nil
}

func (c *Coordinator) secureConsul(_ context.Context, g *guard) error {
	g.login, g.protocols, g.change, g.refused = "token-file=", []string{"http/1.1"}, c.changeConsul, c.refusedByConsul
	g.form = func(text string) string {
		return fmt.Sprintf("%x-%x-%x-%x-%x", text[:4], text[4:6], text[6:8], text[8:10], text[10:16])
	}
	return nil
}

func (c *Coordinator) endConsul(ctx context.Context, m backend.Member) error {
	return c.try(func(i int, _ []string) error {
		client, err := c.consul(c.Cluster.Addrs()[i], root)
		if err != nil {
			return err
		}
		pair, _, err := client.KV().Get(path.Join(folder, m.Line, m.Key), (&api.QueryOptions{}).WithContext(ctx))
		if err == nil && pair != nil && pair.Session != "" {
			_, err = client.Session().Destroy(pair.Session, (&api.WriteOptions{}).WithContext(ctx))
		}
		return err
	})
}

// consul returns a client of a server, past the fronts.
func (c *Coordinator) consul(addr, token string) (*api.Client, error) {
	cfg := &api.Config{Address: addr, Transport: &http.Transport{DisableKeepAlives: true}}
	if c.guard != nil {
		cfg.Token = token
	}
	return api.NewClient(cfg)
}

func (c *Coordinator) changeConsul(ctx context.Context, next string, tell func() error) error {
	write := (&api.WriteOptions{}).WithContext(ctx)
	return c.try(func(i int, _ []string) error {
		client, err := c.consul(c.Cluster.Addrs()[i], root)
		if err != nil {
			return err
		}
		acl := client.ACL()
		if c.guard.secret == "" {
			rules := fmt.Sprintf("key_prefix %q { policy = \"write\" } session_prefix \"\" { policy = \"write\" } node_prefix \"\" { policy = \"write\" }", folder+"/")
			if _, _, err := acl.PolicyCreate(&api.ACLPolicy{Name: user, Rules: rules}, write); err != nil {
				return err
			}
		}
		made, _, err := acl.TokenCreate(&api.ACLToken{SecretID: next, Policies: []*api.ACLLink{{Name: user}}}, write)
		if err != nil {
			return err
		}
		was := c.guard.accessor
		if c.guard.accessor = made.AccessorID; was == "" {
			return tell()
		}
		if err := tell(); err != nil {
			return err
		}
		_, err = acl.TokenDelete(was, write)
		return err
	})
}

func (c *Coordinator) refusedByConsul(ctx context.Context, secret string) (bool, error) {
	client, err := c.consul(c.Cluster.Addrs()[0], secret)
	if err != nil {
		return false, err
	}
	_, _, err = client.KV().Get(folder+"/x", (&api.QueryOptions{RequireConsistent: true}).WithContext(ctx))
	var status api.StatusError
	if errors.As(err, &status) && status.Code == http.StatusForbidden {
		return true, nil
	}
	return false, err
}

// ImportMark writes the mark of an election as "consul kv import" does that has been exported from a cluster with a
// longer log: it names a position that nobody has reached here.
func (c *Coordinator) ImportMark(ctx context.Context, election string) error {
	return c.try(func(i int, _ []string) error {
		client, err := c.consul(c.Cluster.Addrs()[i], root)
		if err == nil {
			_, err = client.KV().Put(&api.KVPair{Key: folder + "/" + election + "~", Flags: 999_999_999}, (&api.WriteOptions{}).WithContext(ctx))
		}
		return err
	})
}

func (c *Coordinator) replaceConsul(ctx context.Context, s *coordtest.Server) error {
	client, err := c.consul(s.Addr(), root)
	if err != nil {
		return err
	}
	var self map[string]map[string]any
	err = insist(ctx, func(context.Context) error { // a server that has just started knows no tokens yet
		self, err = client.Agent().Self()
		return err
	})
	if err != nil {
		return err
	}
	id, name := fmt.Sprint(self["Config"]["NodeID"]), fmt.Sprint(self["Config"]["NodeName"])
	s.Kill()
	other, err := c.LeaderAfter(ctx, s)
	if err != nil {
		return err
	}
	if client, err = c.consul(other.Addr(), root); err != nil {
		return err
	}
	voters := func() (n int, old bool, err error) {
		now, err := client.Operator().RaftGetConfiguration((&api.QueryOptions{}).WithContext(ctx))
		if err != nil {
			return 0, false, err
		}
		for _, member := range now.Servers {
			old = old || member.ID == id
			if member.Voter {
				n++
			}
		}
		return n, old, nil
	}
	err = insist(ctx, func(context.Context) error {
		_, old, err := voters()
		if err == nil && old {
			err = client.Operator().RaftRemovePeerByID(id, nil)
		}
		return err
	})
	if err == nil {
		err = insist(ctx, func(context.Context) error { return client.Agent().ForceLeavePrune(name) })
	}
	if err == nil {
		err = c.rejoin(ctx, s)
	}
	if err != nil {
		return err
	}
	return insist(ctx, func(context.Context) error { // autopilot lets it vote when it has been well for some time
		n, old, err := voters()
		if err == nil && (n < len(c.Servers()) || old) {
			err = fmt.Errorf("%d servers vote, and the one that was replaced is among them: %t", n, old)
		}
		return err
	})
}
