package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/succession-dev/succession/cmd/succession/internal/connect"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/elect"
)

func newLine(g *connect.Flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "line NAME",
		Short: "Print all candidates in order",
		Long: `Print all who stand in line for the election NAME, the leader first.

  TOKEN  the fencing token that the candidate has when it leads
  STATE  leader        first in line
         acknowledged  first in line, and said that it took up its work
         waiting       waits for the one in front of it
         pinned        stands for ever: nobody behind it leads

With -o json it prints an array of objects as of "succession leader -o json", with
the state beside. An empty line is no error.`,
		Example: `  succession line reports
  succession line reports -o json | jq length`,
		Args: ui.OneName,
	}
	out := ui.OutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return g.Look(args[0], func(ctx context.Context, e *elect.Election) error {
			line, err := e.Line(ctx)
			switch {
			case err != nil:
				return err
			case *out == ui.AsJSON:
				return ui.PrintJSON(cmd.OutOrStdout(), placesOf(line))
			case len(line) == 0:
				fmt.Fprintf(cmd.ErrOrStderr(), "succession: nobody stands in line for %q%s\n", args[0], g.Where())
				return nil
			}
			return printLine(cmd.OutOrStdout(), placesOf(line))
		})
	}
	return cmd
}

// place is one candidate in the output of line.
type place struct {
	elect.Leader
	State string `json:"state"`
}

func placesOf(line []elect.Leader) []place {
	places := make([]place, len(line))
	for i, l := range line {
		places[i] = place{l, stateOf(i, l)}
	}
	return places
}

func stateOf(i int, l elect.Leader) string {
	switch {
	case l.Pinned:
		return "pinned"
	case i > 0:
		return "waiting"
	case l.Acknowledged:
		return "acknowledged"
	}
	return "leader"
}

func printLine(w io.Writer, places []place) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "#\tID\tKEY\tTOKEN\tSTATE")
	for i, p := range places {
		fmt.Fprintf(t, "%d\t%s\t%s\t%d\t%s\n", i+1, ui.Visible(p.ID), ui.Visible(p.Key), p.Token, p.State)
	}
	return t.Flush()
}
