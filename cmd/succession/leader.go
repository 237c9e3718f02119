package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/succession-dev/succession/cmd/succession/internal/connect"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/elect"
)

func newLeader(g *connect.Flags) *cobra.Command {
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
  pinned        true for a member that stands for ever, behind which nobody leads; left
                out otherwise
  paused        true if the election is paused: id says by whom, and value why
  priority      left out if 0
  site          left out if none`,
		Example: `  succession leader reports
  if who=$(succession leader reports); then echo "$who leads"; fi
  succession leader reports -o json | jq .token`,
		Args: ui.OneName,
	}
	out := ui.OutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		name := args[0]
		return g.Look(name, func(ctx context.Context, e *elect.Election) error {
			l, err := e.Leader(ctx)
			if err != nil {
				return err
			}
			switch {
			case l.Pinned:
				if *out == ui.AsJSON {
					if err := ui.PrintJSON(cmd.OutOrStdout(), l); err != nil {
						return err
					}
				}
				why := pausedBy(l)
				if !l.Paused {
					why = fmt.Sprintf("%s stands first for ever: the election has moved, or is moving, to another coordinator, or its members were restored without their sessions", ui.Visible(l.ID))
				}
				return ui.Exitf(ui.ExitNobody, "nobody leads %q: %s%s", name, why, g.Where())
			case *out == ui.AsJSON && l.Vacant():
				fmt.Fprintln(cmd.OutOrStdout(), "null")
			case *out == ui.AsJSON:
				return ui.PrintJSON(cmd.OutOrStdout(), l)
			case !l.Vacant():
				fmt.Fprintln(cmd.OutOrStdout(), ui.Visible(l.ID))
				return nil
			}
			return nobodyLeads(g, name)
		})
	}
	return cmd
}

func nobodyLeads(g *connect.Flags, name string) error {
	return ui.Exitf(ui.ExitNobody, "nobody leads %q%s", name, g.Where())
}
