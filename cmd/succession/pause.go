package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/cmd/succession/internal/connect"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
)

func newPause(g *connect.Flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pause NAME",
		Short: "Let nobody lead until resume",
		Long: `Close the election NAME: its leader is asked to resign, and from then on nobody leads,
not even a program of another library, until "succession resume NAME". Candidates go on to
wait in line. The pause stands in the coordinator, whatever becomes of this command.

It puts a gate into the line and waits until that is at the head. Candidates of this
project that stand in front of it go behind it. Those of other libraries lead first, each
in its turn. "leader", "line" and "watch" show who has paused the election, and why.

Exit codes: 0 nobody leads; 1 it was paused already; 124 somebody still stands in front of
the gate after --wait: the election stays paused, and nobody leads once they have gone;
125 it could not be paused, or that is not known.`,
		Example: `  succession pause reports --reason "the disk is moved"
  succession resume reports`,
		Args: ui.OneName,
	}
	f := cmd.Flags()
	wait := f.Duration("wait", 30*time.Second, "how long to wait until nobody leads")
	reason := f.String("reason", "no reason given", "what those are to know who look, in one line")
	by := f.String("by", "", "who pauses it (default user@host)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		name := args[0]
		return g.WithElection(name, func(ctx, opening context.Context, b backend.Backend) error {
			if _, err := elect.New(b, name, nil).State(opening); err != nil { // is the coordinator there?
				return err
			}
			errWait := fmt.Errorf("not within %v", *wait)
			bounded, cancel := context.WithTimeoutCause(ctx, *wait, errWait)
			defer cancel()
			gate, err := operate.New(b, name, cmp.Or(*by, ui.WhoAmI())).Pause(bounded, *reason)
			switch {
			case errors.Is(err, elect.ErrPaused):
				return ui.Exitf(ui.ExitRefused, "%w", err)
			case errors.Is(err, errWait) && gate.Key == "":
				return fmt.Errorf("%w: it is not paused", err)
			case errors.Is(err, errWait):
				return ui.Exitf(ui.ExitTimeout, "%w", err)
			case err == nil:
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "nobody leads %q until: succession resume %s\n", name, name)
			}
			return err
		})
	}
	return cmd
}

func newResume(g *connect.Flags) *cobra.Command {
	return &cobra.Command{
		Use:   "resume NAME",
		Short: "Let somebody lead again after pause",
		Long: `Open the election NAME that "succession pause" has closed: the next in line leads.

Exit codes: 0 it is open again; 1 it was not paused; 125 it could not be opened.`,
		Example: `  succession resume reports`,
		Args:    ui.OneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.WithElection(args[0], func(_, ctx context.Context, b backend.Backend) error {
				gate, err := operate.New(b, args[0], ui.WhoAmI()).Resume(ctx, nil)
				switch {
				case errors.Is(err, operate.ErrNotPaused):
					return ui.Exitf(ui.ExitNobody, "%q is not paused%s", args[0], g.Where())
				case err != nil:
					return err
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%q is open again; it was %s\n", args[0], pausedBy(gate))
				return err
			})
		},
	}
}
