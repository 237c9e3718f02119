package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/succession-dev/succession/cmd/succession/internal/connect"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/spread"
)

// A residence is what "spread where" prints.
type residence struct {
	At      string `json:"at,omitempty"`
	To      string `json:"to,omitempty"`
	FallsTo string `json:"falls_to"`
}

func newSpread(g *connect.Flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "spread",
		Short: "Say on which of several clusters an election lives, and move it",
		Long: `With --url spread:FILE, or spread:?to=NAME=URL&to=NAME=URL, each election lives on one of
several clusters, by its name.

  where    say on which
  put      put an election there that was in use on that cluster alone before
  move     move it to another cluster while it is led; no process is restarted
  finish   end the move: the old cluster is not needed any more
  abort    take a move back that has not been made
  replace  put an empty cluster in the place of a founder that is lost for good

What leaders have written moves with the election. If other records stand beside it, such as
NAME-position, move and finish refuse, and name them: say --carry for those that go with it, and
--leave-records where the others may stay.

Exit codes: 0 done; 1 refused as things are, and why; 124 not done within --wait, and the
move goes on when "move" is called again; 125 it could not be found out, or not be done.`,
		Example: `  succession --url spread:/etc/app/clusters.json spread where reports
  succession --url spread:/etc/app/clusters.json spread move reports west`,
		Args: ui.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("say what, as in: succession --url spread:FILE spread where NAME")
		},
	}
	cmd.AddCommand(
		newWhere(g),
		newSpreadStep(g, "put NAME CLUSTER", "put reports west", "Say on which cluster an election has been in use", (*spread.Backend).Put),
		newRecordStep(g, "move NAME CLUSTER", "move reports west", "Move an election to another cluster", (*spread.Backend).Move),
		newRecordStep(g, "finish NAME", "finish reports", "End the move of an election", func(b *spread.Backend, ctx context.Context, name, _ string, o *spread.MoveOptions) error {
			return b.Finish(ctx, name, o)
		}),
		newSpreadStep(g, "abort NAME", "abort reports", "Take the move of an election back", func(b *spread.Backend, ctx context.Context, name, _ string) error { return b.Abort(ctx, name) }),
		newReplace(g),
	)
	return cmd
}

// newRecordStep is newSpreadStep for a step that refuses where it is not known what becomes of records.
func newRecordStep(g *connect.Flags, use, example, short string, do func(*spread.Backend, context.Context, string, string, *spread.MoveOptions) error) *cobra.Command {
	var o spread.MoveOptions
	cmd := newSpreadStep(g, use, example, short, func(b *spread.Backend, ctx context.Context, name, cluster string) error {
		return do(b, ctx, name, cluster, &o)
	})
	cmd.Flags().StringSliceVar(&o.Carry, "carry", nil, "a record that goes with the election, though no leader has written it through its term; can be given again")
	cmd.Flags().BoolVar(&o.Leave, "leave-records", false, "leave other records that stand beside the election where they are")
	return cmd
}

func newWhere(g *connect.Flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "where NAME",
		Short: "Say on which cluster an election lives",
		Long: `Print the cluster that the election NAME lives on. It changes nothing: an election that was
never used gets its home when the first candidate joins.

With -o json it prints one object:

  at        the cluster; left out if the election was never used
  to        the cluster that it is being moved to; left out if it is not being moved
  falls_to  the cluster of the list that its name falls to`,
		Example: "  succession --url spread:/etc/app/clusters.json spread where reports",
		Args:    ui.OneName,
	}
	out := ui.OutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return g.WithClusters(args[0], func(_, opening context.Context, b *spread.Backend) error {
			h, fallsTo, err := b.Where(opening, args[0])
			switch {
			case err != nil:
			case *out == ui.AsJSON:
				err = ui.PrintJSON(cmd.OutOrStdout(), residence{h.At, h.To, fallsTo})
			case h.At == "":
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "nowhere yet; it falls to %s\n", ui.Visible(fallsTo))
			case h.To != "":
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s, and is being moved to %s\n", ui.Visible(h.At), ui.Visible(h.To))
			default:
				_, err = fmt.Fprintln(cmd.OutOrStdout(), ui.Visible(h.At))
			}
			return err
		})
	}
	return cmd
}

func newReplace(g *connect.Flags) *cobra.Command {
	cmd := newSpreadStep(g, "replace CLUSTER", "replace east", "Put an empty cluster in the place of a founder that is lost for good", func(b *spread.Backend, ctx context.Context, founder, _ string) error {
		return b.Replace(ctx, founder)
	})
	cmd.Long = `Put an empty cluster in the place of the founder CLUSTER, which is lost for good. The empty one
is there already, under the URL that the list has for CLUSTER. If the lost one could be used
again, elections would be led on both.

With a founder the homes are lost that it kept. "spread where NAME" says "nowhere yet" of such an
election afterwards, and whoever uses it first gives it a home on any cluster. So if elections
were moved, or the list has grown: stop all processes; replace; look on each other cluster which
elections are led there (ls), and put those that are nowhere (spread put NAME CLUSTER); start the
processes. Otherwise restart those that have used the lost cluster.

Tokens on the empty cluster begin anew: raise the fences of the elections that lived there
(succession fence) before anybody leads them.`
	return cmd
}

// newSpreadStep returns the subcommand of a step, which do takes, with the one or two names that use has.
func newSpreadStep(g *connect.Flags, use, example, short string, do func(*spread.Backend, context.Context, string, string) error) *cobra.Command {
	cmd := &cobra.Command{
		Use:     use,
		Short:   short,
		Long:    short + ". See \"succession spread --help\" for all steps and the exit codes.",
		Example: "  succession --url spread:/etc/app/clusters.json spread " + example,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == strings.Count(use, " ") {
				return nil
			}
			return fmt.Errorf("want %s, as in: %s", use, example)
		},
	}
	wait := cmd.Flags().Duration("wait", time.Minute, "how long to wait until it is done")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return g.WithClusters(args[0], func(ctx, _ context.Context, b *spread.Backend) error {
			late := fmt.Errorf("not done within %v", *wait)
			ctx, cancel := context.WithTimeoutCause(ctx, *wait, late)
			defer cancel()
			err := do(b, ctx, args[0], append(args, "")[1])
			switch {
			case errors.Is(err, late):
				return &ui.ExitError{Code: ui.ExitTimeout, Err: err}
			case errors.Is(err, spread.ErrRefused):
				return &ui.ExitError{Code: ui.ExitRefused, Err: err}
			}
			return err
		})
	}
	return cmd
}
