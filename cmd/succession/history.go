package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/cmd/succession/internal/connect"
	"github.com/succession-dev/succession/cmd/succession/internal/page"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
)

func newHistory(g *connect.Flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "history NAME",
		Short: "Print who led when, and why it ended",
		Long: `Print the newest terms of the election NAME, the oldest first: who led, since when, for
how long, and why that ended. Leaders under "succession run" write this (its --history), and
programs that ask for it; terms of others are missing.

  FROM  by the clock of the leader's machine
  FOR   "at most" for a leader that did not say that its term has ended: the time until the
        next term began
  END   why the term ended; "did not say why": it was killed, or cut off from the coordinator

With -o json it prints an array of objects:

  id     who led
  token  its fencing token
  began  when, as in 2026-11-24T14:26:00.123Z
  ended  when; left out if that is not known
  why    why it ended; left out if it did not say
  leads  true for the present leader; left out otherwise

An election without a history is no error.`,
		Example: `  succession history reports
  succession history reports -o json | jq -r 'last.why'`,
		Args: ui.OneName,
	}
	out := ui.OutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return g.WithElection(args[0], func(_, ctx context.Context, b backend.Backend) error {
			terms, err := pastOf(ctx, b, args[0])
			switch {
			case err != nil:
				return err
			case *out == ui.AsJSON:
				return ui.PrintJSON(cmd.OutOrStdout(), terms)
			case len(terms) == 0:
				fmt.Fprintf(cmd.ErrOrStderr(), "succession: there is no history of %q%s\n", args[0], g.Where())
				return nil
			}
			return printHistory(cmd.OutOrStdout(), terms, time.Now())
		})
	}
	return cmd
}

// past is one term in the output of history.
type past struct {
	operate.Past
	Leads bool `json:"leads,omitempty"`
}

func pastOf(ctx context.Context, b backend.Backend, name string) ([]past, error) {
	terms, err := operate.New(b, name, "").History(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]past, len(terms))
	for i, t := range terms {
		all[i].Past = t
	}
	if i := len(all) - 1; i >= 0 && all[i].Ended.IsZero() {
		l, err := elect.New(b, name, nil).Leader(ctx)
		if err != nil && !errors.Is(err, elect.ErrNoLeader) {
			return nil, err
		}
		all[i].Leads = err == nil && (l.Token == all[i].Token || page.LedBy(all[i].Past, l.ID))
	}
	return all, nil
}

func printHistory(w io.Writer, terms []past, now time.Time) error {
	t := ui.NewTable(w, "ID", "TOKEN", "FROM", "FOR", "END")
	earlier := len(terms) - ui.MaxRows
	for _, p := range terms[max(0, earlier):] {
		lasted, why := p.Ended.Sub(p.Began), p.Why
		switch {
		case p.Leads:
			lasted, why = now.Sub(p.Began), "leads"
		case why == "":
			why = "did not say why"
		}
		span := max(0, lasted).Round(time.Millisecond).String()
		switch {
		case p.Ended.IsZero() && !p.Leads:
			span = "?"
		case p.Why == "" && !p.Leads:
			span = "at most " + span
		}
		t.Row(p.ID, p.Token, p.Began.Local().Format(time.DateTime), span, why)
	}
	if err := t.Flush(); err != nil || earlier <= 0 {
		return err
	}
	_, err := fmt.Fprintln(w, ui.And(earlier, "they were earlier; -o json prints all"))
	return err
}
