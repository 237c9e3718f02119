package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/succession-dev/succession/elect"
)

func newLeader(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "leader NAME",
		Short: "Print who leads",
		Long: `Print the id of the leader of the election NAME, and nothing else.

Exit codes: 0 somebody leads; 1 nobody does; 125 it could not be found out.

With -o json it prints one object, or null where nobody leads:

  id            who leads
  value         what it says of itself beside its id; left out if nothing
  key           its place, as the coordinator names it
  token         its fencing token
  acknowledged  whether it has said that it took up its work
  pinned        true for a member that stands for ever; left out otherwise`,
		Example: `  succession leader reports
  if who=$(succession leader reports); then echo "$who leads"; fi
  succession leader reports -o json | jq .token`,
		Args: oneName,
	}
	out := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		name := args[0]
		return g.look(name, func(ctx context.Context, e *elect.Election) error {
			l, err := e.Leader(ctx)
			if err != nil {
				return err
			}
			switch {
			case *out == asJSON && l.Vacant():
				fmt.Fprintln(cmd.OutOrStdout(), "null")
			case *out == asJSON:
				return printJSON(cmd.OutOrStdout(), l)
			case !l.Vacant():
				fmt.Fprintln(cmd.OutOrStdout(), visible(l.ID))
				return nil
			}
			return g.nobodyLeads(name)
		})
	}
	return cmd
}

func (g *globals) nobodyLeads(name string) error {
	return exitf(exitNobody, "nobody leads %q%s", name, g.where())
}
