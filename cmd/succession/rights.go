package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/cmd/succession/internal/connect"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
)

func newRights(g *connect.Flags) *cobra.Command {
	return &cobra.Command{
		Use:   "rights NAME",
		Short: "Print the rights to grant for an election",
		Long: `Print what an administrator grants for the election NAME on the coordinator of --url. On etcd (commands
of etcdctl), Consul (ACL policies) and ZooKeeper (commands of its shell) that is for this election and
those below it, and for no other: for a candidate, for who only looks, and for an operator, who raises
fences as well. On PostgreSQL (SQL) it is for a candidate of all elections of the schema, and on
Kubernetes (a Role) of all elections of the namespace. Nothing is sent anywhere: the URL says which
coordinator, which prefix and, on Consul, which node.

A page for each coordinator says what each right gives: docs/zookeeper.md, docs/etcd.md,
docs/consul.md, docs/postgres.md, docs/kubernetes.md.`,
		Example: `  succession rights --url etcd://h1:2379/app reports
  succession rights --url consul:///app reports`,
		Args: ui.OneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := backend.CheckName(args[0]); err != nil {
				return err
			}
			u, err := coordinator.ParseURL(g.URL)
			if err != nil {
				return err
			}
			d, err := coordinator.DefaultMux.Driver(u)
			if err != nil {
				return err
			}
			if d.Rights == nil {
				return fmt.Errorf("%w URL: %s has no rights of its own; name one of these with --url: %s", backend.ErrInvalid, d.Title, strings.Join(withRights(), ", "))
			}
			// What is printed is to be pasted. In etcdctl, "a b" would be all keys from a to b.
			if prefix := strings.Trim(u.Path, "/"); prefix != "" {
				if err := backend.CheckName(prefix); err != nil {
					return fmt.Errorf("the prefix of --url: %w", err)
				}
			}
			text, err := d.Rights(u, args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), text)
			return err
		},
	}
}

// withRights are the coordinators that have rights to grant.
func withRights() (titles []string) {
	for _, d := range coordinator.DefaultMux.Drivers() {
		if d.Rights != nil {
			titles = append(titles, d.Title)
		}
	}
	return slices.Compact(titles) // a driver may have two schemes
}
