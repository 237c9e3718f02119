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
	"github.com/succession-dev/succession/cmd/succession/internal/page"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
)

func newResign(g *connect.Flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "resign NAME",
		Short: "Ask the leader to resign, and wait until it has",
		Long: `Ask whoever leads the election NAME to resign, wait until another leads or nobody
does, and say what happened. The leader ends its work first: under "succession run" its
command gets TERM, and KILL after the grace time.

Only leaders that use this project's library or command hear the request. Candidates
of other programs that stand in the same line do not.

The leader's log and the history say who has asked, and the --reason.

With --to the candidate with that id or key is to lead next: those of this project that
stand in front of it go to the end of the line. The wish lapses when --wait is over. Nobody
is asked if no candidate, or not the one of --to, is ready. With --token nobody is asked
unless that term still leads, so that a request that comes late does no harm. After
"succession fence" it is the token that "succession leader -o json" shows.

Exit codes: 0 it has resigned; 1 nobody led, or another than --token; 124 it still led after --wait, and is still
asked to resign; 125 it could not be asked, as nobody can while the election is paused.

With -o json it prints one object, or null with exit code 1 where nobody led:

  resigned  who led, as in "succession leader -o json"
  next      who leads now, or null where nobody does`,
		Example: `  succession resign reports
  succession resign reports --wait 2m
  succession resign reports --to web-2 --reason "web-1 gets a new disk"
  succession resign reports --token "$SUCCESSION_TOKEN"
  succession resign reports -o json | jq -r .next.id`,
		Args: ui.OneName,
	}
	out := ui.OutputFlag(cmd)
	wait := cmd.Flags().Duration("wait", 30*time.Second, "how long to wait until another leads or nobody does")
	to := cmd.Flags().String("to", "", "id or key of the candidate that is to lead next")
	term := cmd.Flags().Uint64("token", 0, "ask only the leader with this token")
	reason := cmd.Flags().String("reason", "", "what the leader and those are to know who look at the history, in one line")
	by := cmd.Flags().String("by", "", "who asks (default user@host)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		name := args[0]
		return g.WithElection(name, func(ctx, opening context.Context, b backend.Backend) error {
			old, err := operate.New(b, name, cmp.Or(*by, ui.WhoAmI())).AskToResign(opening, &operate.ResignOptions{
				Token: *term, To: *to, Within: min(*wait, 24*time.Hour), Reason: *reason,
			})
			if errors.Is(err, operate.ErrOtherLeader) {
				return ui.Exitf(ui.ExitNobody, "%w", err)
			}
			if errors.Is(err, elect.ErrNoLeader) && !errors.Is(err, elect.ErrPaused) {
				if *out == ui.AsJSON {
					fmt.Fprintln(cmd.OutOrStdout(), "null")
				}
				return nobodyLeads(g, name, err)
			}
			if err != nil {
				return err
			}
			e := elect.New(b, name, nil)
			next, err := successor(ctx, e, old, *wait, true)
			if err != nil {
				return err
			}
			r := resignation{Resigned: leaderOf(elect.State{Leader: old})}
			if *out == ui.AsJSON {
				if !next.Vacant() {
					r.Next = leaderOf(next)
				}
				return ui.PrintJSON(cmd.OutOrStdout(), r)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s resigned (token %d); %s\n", r.Resigned.name(), old.Token, changeTo(next))
			return err
		})
	}
	return cmd
}

// resignation is what resign prints.
type resignation struct {
	Resigned *member `json:"resigned"`
	Next     *member `json:"next"`
}

// successor waits until another than old, who was asked to resign, leads, or if orNobody, nobody does.
func successor(ctx context.Context, e *elect.Election, old elect.Leader, wait time.Duration, orNobody bool) (elect.State, error) {
	who := ui.NameOf(old.ID, old.Key)
	late := ui.Exitf(ui.ExitTimeout,
		"%s was asked to resign %v ago and was not seen to resign from %q; it may be busy stopping, or be no program of this project: wait longer with --wait, or look at it", who, wait, e.Name())
	ctx, cancel := context.WithTimeoutCause(ctx, wait, late)
	defer cancel()
	resigned := false
	for s, err := range e.Observe(ctx) {
		switch {
		case errors.Is(err, late) && resigned:
			return elect.State{}, ui.Exitf(ui.ExitRefused, "%s resigned from %q, and nobody was seen to lead since", who, e.Name())
		case errors.Is(err, late):
			return elect.State{}, err
		case err != nil:
			return elect.State{}, fmt.Errorf("%s is still asked to resign from %q: %w", who, e.Name(), err)
		}
		if resigned = !page.SameTerm(s.Leader, old); resigned && (orNobody || !s.Vacant()) {
			return s, nil
		}
	}
	return elect.State{}, context.Cause(ctx)
}
