package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/succession-dev/succession/cmd/succession/internal/connect"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/elect"
)

func newWatch(g *connect.Flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "watch NAME",
		Short: "Print each change of the leader",
		Long: `Print who leads the election NAME, and then a line at each change: a new leader,
its acknowledgement that it took up its work, and that nobody leads. It runs until it
is interrupted. Where leaders change very fast some may be left out, never the last.

With -o json each line is an object:

  event   "elected", "acknowledged", "vacant" or "paused"; the first line says what is
  leader  as in "succession leader -o json"; null where nobody leads`,
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
	Event  string        `json:"event"`
	Leader *elect.Leader `json:"leader"`
}

func changeTo(l elect.Leader) change {
	switch {
	case l.Paused:
		return change{"paused", &l}
	case l.Vacant():
		return change{Event: "vacant"}
	case l.Acknowledged:
		return change{"acknowledged", &l}
	}
	return change{"elected", &l}
}

func (c change) String() string {
	if c.Leader == nil {
		return "nobody leads"
	}
	id := ui.Visible(c.Leader.ID)
	switch {
	case c.Leader.Paused:
		return "nobody leads: " + pausedBy(*c.Leader)
	case c.Leader.Pinned:
		return fmt.Sprintf("closed: %s stands first and for ever, token %d", id, c.Leader.Token)
	case c.Event == "acknowledged":
		return fmt.Sprintf("%s is at work, token %d", id, c.Leader.Token)
	}
	return fmt.Sprintf("%s leads, token %d", id, c.Leader.Token)
}

// watch calls show with each change, until a signal or an error comes. --timeout
// bounds the connecting only.
func watch(g *connect.Flags, name string, show func(change) error) error {
	return g.With(name, func(ctx, _ context.Context, e *elect.Election) error {
		for l, err := range e.Observe(ctx) {
			if err != nil {
				return err
			}
			if err := show(changeTo(l)); err != nil {
				return err
			}
		}
		return nil
	})
}
