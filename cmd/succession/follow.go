package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/cmd/succession/internal/connect"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/recipes/record"
)

func newFollow(g *connect.Flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "follow NAME",
		Short: "Print a record, and each change of it",
		Long: `Print the record NAME as it is, and then a line at each change. It runs until it is
interrupted. Where the record changes very fast some states may be left out, never the
last. It never goes back to an earlier state. Control characters in a value, such as the end
of a line, are shown escaped. While the coordinator cannot be reached it prints nothing, and its
last line may be out of date.

With -o json each line is an object as of "succession get -o json", or null while there
is no record.`,
		Example: `  succession follow config/limits
  succession follow config/limits -o json | jq -r '.value // empty'`,
		Args: ui.One("record", "config/limits"),
	}
	out := ui.OutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		g.SayWhere(cmd, args[0])
		return g.WithBackend(args[0], func(ctx, _ context.Context, b backend.Backend) error {
			for e, err := range record.New(b, args[0], record.Bytes()).Follow(ctx) {
				switch {
				case err != nil:
				case *out == ui.AsJSON:
					err = ui.PrintJSON(cmd.OutOrStdout(), entryOf(e))
				default:
					_, err = fmt.Fprintln(cmd.OutOrStdout(), stateLine(e))
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	return cmd
}
