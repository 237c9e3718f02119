package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/succession-dev/succession/cmd/succession/internal/connect"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/recipes/record"
)

func newGet(g *connect.Flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "get NAME",
		Short: "Print a record",
		Long: `Print the value of the record NAME, byte by byte as it was set, and nothing else. At a
terminal control characters are shown escaped, and a newline follows.

Exit codes: 0 it is there; 1 there is no such record; 125 it could not be found out.

With -o json it prints one object, or null where there is no record:

  value    the value, where it is UTF-8
  base64   the value in base64, where it is not
  version  its version, for "succession set --at" and "succession delete --at"`,
		Example: `  succession get config/limits
  succession get config/limits >limits.json
  succession get config/limits -o json | jq .version`,
		Args: ui.One("record", "config/limits"),
	}
	out := ui.OutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return withRecord(g, args[0], func(ctx context.Context, r *record.Value[[]byte]) error {
			e, err := r.Get(ctx)
			if err != nil {
				return err
			}
			if *out == ui.AsJSON {
				err = ui.PrintJSON(cmd.OutOrStdout(), entryOf(e))
			} else if e.Exists() {
				err = ui.PrintBytes(cmd.OutOrStdout(), e.Value)
			}
			if err == nil && !e.Exists() {
				err = noRecord(g, r.Name())
			}
			return err
		})
	}
	return cmd
}
