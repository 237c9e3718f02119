package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/cmd/succession/internal/connect"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/consul"
	"github.com/succession-dev/succession/etcd"
	"github.com/succession-dev/succession/zookeeper"
)

// policies are what a coordinator must be told to grant for one election, by scheme.
var policies = map[string]func(u *backend.URL, election string) string{
	"consul":    consul.Rights,
	"etcd":      etcd.Rights,
	"zookeeper": zookeeper.Rights,
}

func newRights(g *connect.Flags) *cobra.Command {
	return &cobra.Command{
		Use:   "rights NAME",
		Short: "Print the rights to grant for an election",
		Long: `Print what an administrator grants for the election NAME, and for no other, on the coordinator
of --url: commands of etcdctl, ACL policies of Consul, or commands of ZooKeeper's shell. There
are a candidate, who only looks, and an operator, who raises fences as well. Nothing is sent
anywhere: the URL says which coordinator, which prefix and, on Consul, which node.

A page for each coordinator says what each right gives: docs/zookeeper.md, docs/etcd.md,
docs/consul.md.`,
		Example: `  succession rights --url etcd://h1:2379/app reports
  succession rights --url consul:///app reports`,
		Args: ui.OneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := backend.CheckName(args[0]); err != nil {
				return err
			}
			u, err := backend.ParseURL(g.URL)
			if err != nil {
				return err
			}
			policy, ok := policies[u.Scheme]
			if !ok {
				return fmt.Errorf("%w URL: %s has no rights of its own; name ZooKeeper, etcd or Consul with --url", backend.ErrInvalid, u.Scheme)
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), policy(u, args[0]))
			return err
		},
	}
}
