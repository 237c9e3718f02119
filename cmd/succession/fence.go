package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/cmd/succession/internal/connect"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/elect/operate"
)

func newFence(g *connect.Flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "fence NAME --at-least N",
		Short: "Make every later token larger than N",
		Long: `Make every token of the election NAME from now on larger than N. It never makes
tokens smaller, and repeating it changes nothing.

A token grows from leader to leader because the coordinator's log grows. If a
coordinator was rebuilt, or restored from a backup, its log has gone back, and tokens
would be smaller than those which have been used. Resources that refuse small tokens
would then refuse every new leader. Before the first candidate joins the rebuilt
coordinator, give the largest token that was ever seen.

N is at most 2^62 = 4611686018427387904, so that no token is too large for a database. A fence
is never lowered: look at N twice.

A leader that was elected before keeps the token that it has. The other commands show the
larger one that it would get now, and "resign --token" wants that.

With -o json it prints an object with the election, and above, which is N.`,
		Example: `  succession fence reports --at-least 81604378626`,
		Args:    ui.OneName,
	}
	out := ui.OutputFlag(cmd)
	floor := cmd.Flags().Uint64("at-least", 0, "the largest token that was ever seen")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *floor == 0 {
			return errors.New("say which tokens have been used, as in: succession fence reports --at-least 81604378626")
		}
		g.SayWhere(cmd, args[0])
		return g.WithElection(args[0], func(_, ctx context.Context, b backend.Backend) error {
			if err := operate.New(b, args[0], ui.WhoAmI()).RaiseFence(ctx, *floor); err != nil {
				return err
			}
			if *out == ui.AsJSON {
				return ui.PrintJSON(cmd.OutOrStdout(), struct {
					Election string `json:"election"`
					Above    uint64 `json:"above"`
				}{args[0], *floor})
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "every later token of %q is larger than %d\n", args[0], *floor)
			return err
		})
	}
	return cmd
}
