package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/succession-dev/succession/cmd/succession/internal/connect"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/elect"
)

func newLeader(g *connect.Flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "leader NAME",
		Short: "Print who leads",
		Long: `Print the id of the leader of the election NAME, and nothing else: its key, if it is of another
program and has no id.

Exit codes: 0 somebody leads; 1 nobody does; 125 it could not be found out.

With -o json it prints one object, or null where nobody leads; "line" shows what keeps everybody
from leading:

  id            who leads
  value         what it says of itself beside its id; left out if nothing
  key           its place, as the coordinator names it
  token         its fencing token
  acknowledged  whether it has said that it took up its work
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
			s, err := e.State(ctx)
			if err != nil {
				return err
			}
			if *out == ui.AsJSON {
				if err := ui.PrintJSON(cmd.OutOrStdout(), leaderOf(s)); err != nil {
					return err
				}
			}
			if s.Vacant() {
				return nobodyLeads(g, name, s.Err())
			}
			if *out != ui.AsJSON {
				_, err = fmt.Fprintln(cmd.OutOrStdout(), leaderOf(s).name())
			}
			return err
		})
	}
	return cmd
}

// nobodyLeads is the result where err, an [elect.ErrNoLeader], says that nobody does.
func nobodyLeads(g *connect.Flags, name string, err error) error {
	if why := whyVacant(err); why != "" {
		return ui.Exitf(ui.ExitNobody, "nobody leads %q: %s%s", name, why, g.Where())
	}
	return ui.Exitf(ui.ExitNobody, "nobody leads %q%s", name, g.Where())
}

// whyVacant says why nobody leads, if it is not only that nobody stands in line.
func whyVacant(err error) string {
	_, why, _ := strings.Cut(err.Error(), elect.ErrNoLeader.Error()+": ")
	return ui.Visible(why)
}
