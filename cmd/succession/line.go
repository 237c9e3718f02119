package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/cmd/succession/internal/connect"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/elect"
)

func newLine(g *connect.Flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "line NAME",
		Short: "Print all candidates in order",
		Long: `Print all who stand in line for the election NAME, the leader first.

  TOKEN  the fencing token that the candidate has when it leads
  STATE  leader        first in line
         acknowledged  first in line, and said that it took up its work
         waiting       waits for the one in front of it; or nobody leads, as the election
                       has moved from here, or is about to be paused or to move here
         present       in a line of which several can hold at once, such as that of a shared
                       lock, of slots, or of a group: it holds, or is there
         not ready     waits, and gives way when it comes first: the reason follows
         pinned        stands for ever: nobody behind it leads
         paused        the same, by "succession pause": the reason follows

If any candidate has a priority or a site, there are columns for these.

Of a long line it prints the first 1000, and of a long text the beginning, and says so.

With -o json it prints all, as an array of objects as of "succession leader -o json", and
in each of them

  state      as in the table
  not_ready  why it is not ready; left out otherwise
  pinned     true for a member that stands for ever; left out otherwise
  paused     true if that is a pause: id says by whom, and value why; left out otherwise

An empty line is no error.`,
		Example: `  succession line reports
  succession line reports -o json | jq length`,
		Args: ui.OneName,
	}
	out := ui.OutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return g.Look(args[0], func(ctx context.Context, e *elect.Election) error {
			now, line, err := e.Line(ctx)
			switch {
			case err != nil:
				return err
			case *out == ui.AsJSON:
				return ui.PrintJSON(cmd.OutOrStdout(), placesOf(now, line))
			case len(line) == 0:
				fmt.Fprintf(cmd.ErrOrStderr(), "succession: nobody stands in line for %q%s\n", args[0], g.Where())
				return nil
			}
			return printLine(cmd.OutOrStdout(), placesOf(now, line))
		})
	}
	return cmd
}

// place is one candidate in the output of line.
type place struct {
	member
	State string `json:"state"`
}

func placesOf(now elect.State, line []elect.Candidate) []place {
	places := make([]place, len(line))
	for i, c := range line {
		p := place{member: memberOf(c)}
		if i == 0 && !now.Vacant() {
			p.Acknowledged = now.Leader.Acknowledged
		}
		p.Paused = now.Paused && c == now.Gate
		present := c.Shared && !now.Vacant() && kit.Awaited(i, func(i int) bool { return line[i].Shared }) < 0
		p.State = p.state(i == 0 && !now.Vacant(), present)
		places[i] = p
	}
	return places
}

func (p place) state(leads, present bool) string {
	switch {
	case p.Paused:
		return "paused"
	case p.Pinned:
		return "pinned"
	case p.NotReady != "":
		return "not ready"
	case present:
		return "present"
	case !leads:
		return "waiting"
	case p.Acknowledged:
		return "acknowledged"
	}
	return "leader"
}

func (p place) pauseReason() string {
	if p.Paused {
		return p.Value
	}
	return ""
}

func printLine(w io.Writer, places []place) error {
	ranked := slices.ContainsFunc(places, func(p place) bool { return p.Priority != 0 || p.Site != "" })
	titles := []string{"#", "ID", "KEY", "TOKEN"}
	if ranked {
		titles = append(titles, "PRIORITY", "SITE")
	}
	t := ui.NewTable(w, append(titles, "STATE")...)
	for i, p := range places {
		cells := []any{i + 1, p.ID, p.Key, p.Token}
		if ranked {
			cells = append(cells, p.Priority, p.Site)
		}
		state := p.State
		if why := cmp.Or(p.NotReady, p.pauseReason()); why != "" {
			state += ": " + ui.OneLine(why)
		}
		t.Row(append(cells, state)...)
	}
	return t.Flush()
}
