package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/succession-dev/succession/cmd/succession/internal/connect"
	"github.com/succession-dev/succession/cmd/succession/internal/page"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/elect"
)

func newWatch(g *connect.Flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "watch NAME",
		Short: "Print each change of the leader",
		Long: `Print who leads the election NAME, and then a line at each change: a new leader,
its acknowledgement that it took up its work, and that nobody leads. That "succession fence"
makes the token of a leader larger is no change. It runs until it is interrupted. Where leaders
change very fast some may be left out, never the last. While the coordinator cannot be reached
it prints nothing, and its last line may be out of date.

With -o json each line is an object:

  event   "elected", "acknowledged", "vacant" or "paused"; the first line says what is
  leader  as in "succession leader -o json"; null where nobody leads
  gate    what stands first and keeps everybody from leading, as in "succession line -o json";
          in "paused" its id says who has paused the election, and its value why; left out
          if there is none
  why     why nobody leads, if there is more to say than that nobody does`,
		Example: `  succession watch reports
  succession watch reports -o json | jq -r 'select(.event == "elected") | .leader.id'`,
		Args: ui.OneName,
	}
	out := ui.OutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		show := func(c change) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s  %s\n", time.Now().Format(time.TimeOnly), c)
			return err
		}
		if *out == ui.AsJSON {
			show = func(c change) error { return ui.PrintJSON(cmd.OutOrStdout(), c) }
		}
		g.SayWhere(cmd, args[0])
		return watch(g, args[0], show)
	}
	return cmd
}

// change is one line of watch.
type change struct {
	Event  string  `json:"event"`
	Leader *member `json:"leader"`
	Gate   *member `json:"gate,omitempty"`
	Why    string  `json:"why,omitempty"` // nobody leads
}

func changeTo(s elect.State) change {
	switch {
	case s.Paused:
		return change{Event: "paused", Gate: gateOf(s), Why: whyVacant(s.Err())}
	case s.Vacant():
		return change{Event: "vacant", Gate: gateOf(s), Why: whyVacant(s.Err())}
	case s.Leader.Acknowledged:
		return change{Event: "acknowledged", Leader: leaderOf(s)}
	}
	return change{Event: "elected", Leader: leaderOf(s)}
}

func (c change) String() string {
	switch c.Event {
	case "acknowledged":
		return fmt.Sprintf("%s is at work, token %d", c.Leader.name(), c.Leader.Token)
	case "elected":
		return fmt.Sprintf("%s leads, token %d", c.Leader.name(), c.Leader.Token)
	}
	if c.Why != "" {
		return "nobody leads: " + c.Why
	}
	return "nobody leads"
}

// watch calls show with each change, until a signal or an error comes. --timeout
// bounds the connecting only.
func watch(g *connect.Flags, name string, show func(change) error) error {
	return g.With(name, func(ctx, _ context.Context, e *elect.Election) error {
		var last elect.State
		for s, err := range e.Observe(ctx) {
			if err != nil {
				return err
			}
			goes := !s.Vacant() && page.SameTerm(s.Leader, last.Leader) && s.Leader.Acknowledged == last.Leader.Acknowledged
			if last = s; goes {
				continue
			}
			if err := show(changeTo(s)); err != nil {
				return err
			}
		}
		return nil
	})
}
