package run

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/cmd/succession/internal/connect"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/recipes/group"
)

// JoinCommand returns the subcommand group join.
func JoinCommand(g *connect.Flags) *cobra.Command {
	o := runOptions{right: right{take: join, won: "joined"}}
	cmd := &cobra.Command{
		Use:   "join [flags] NAME [-- CMD [ARG...]]",
		Short: "Be present in a group while a command runs",
		Long: `Join the group NAME and be present as long as CMD runs, or without CMD until interrupted.
In all other respects it is like "succession run": see there for signals, the environment of
CMD, and what happens to CMD when the presence is lost. Nobody waits for another here.

Exit codes:

  CMD's own  CMD ended while this process was present
  128+n      signal n ended CMD, or interrupted a presence without CMD
  75         the presence was lost and CMD has been stopped (without --restart)
  125        succession itself failed
  126        CMD cannot be executed
  127        CMD was not found`,
		Example: `  succession group join collectors -- ./collect
  succession group join --id "$(hostname)" --value 10.0.0.7:80 --restart collectors
  succession group join --value 10.0.0.7:80 web -- ./serve`,
	}
	o.flags(cmd)
	o.valueFlag(cmd)
	cmd.Flags().BoolVar(&o.restart, "restart", false, "join again when the presence was lost, instead of exiting with 75")
	takesCommand(cmd, g, &o, func(cmd *cobra.Command, name string) error {
		return runElected(g, o, name, "", nil, cmd.ErrOrStderr())
	})
	return cmd
}

// join joins the group. As the presence never sets another value, its term is all there is to end.
func join(ctx context.Context, b backend.Backend, name string, o *elect.Options, _ bool) (held, error) {
	p, err := group.New(b, name, o).Join(ctx)
	if err != nil {
		return held{}, err
	}
	return held{Term: p.Term()}, nil
}
