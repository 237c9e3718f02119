package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/cmd/succession/internal/connect"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/internal/naming"
)

func newGhosts(g *connect.Flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ghosts [--remove] [NAME...]",
		Short: "Find what a restore has put into lines, and remove it",
		Long: `Print the members that no session has ever joined. They have come with a restore that
brings keys without their sessions, such as "consul kv import", or somebody has written
them by hand, and they stand for ever: nobody behind them leads. Of lines that are not named, it leaves out those with the items of queues
and tasks, as items are kept without a session.

With --remove it removes them, but not from an election that has moved or is moving to
another coordinator: what stands there may be what keeps it closed. Stop the candidates
before that, and raise the fence after it.

Only Consul and PostgreSQL tell such members from others.

Exit codes: 0 there are none, or they were removed; 1 there are some; 125 failed.

With -o json it prints an array of objects, or nothing if it failed before it knew of any line:

  line     the line
  key      its place, as the coordinator names it
  value    what it says of itself
  removed  whether it was removed`,
		Example: `  succession ghosts
  succession ghosts --remove reports`,
	}
	remove := cmd.Flags().Bool("remove", false, "remove them")
	out := ui.OutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		return g.WithAll(func(_, ctx context.Context, b backend.Backend) error {
			s, err := b.Session(ctx)
			if err != nil {
				return err
			}
			found, err := ghostsOf(ctx, s, names, *remove)
			if errors.Is(err, errors.ErrUnsupported) {
				return fmt.Errorf("%s cannot tell members that no session has joined from others: %w", g.Coordinator(), err)
			}
			err = errors.Join(printGhosts(cmd.OutOrStdout(), *out, found), err)
			if err == nil && len(found) > 0 && !*remove {
				err = ui.Exitf(ui.ExitRefused, "%s stand%s in line that no session has joined: \"succession ghosts --remove\" removes them", ui.Count(len(found), "member"), third(len(found)))
			}
			return err
		})
	}
	return cmd
}

func third(n int) string {
	if n == 1 {
		return "s"
	}
	return ""
}

// A ghost is a member in the output of ghosts.
type ghost struct {
	Line    string `json:"line"`
	Key     string `json:"key"`
	Value   string `json:"value"`
	Removed bool   `json:"removed"`
}

// ghostsOf returns those in the lines, or in all lines but those of items if none are named.
func ghostsOf(ctx context.Context, s backend.Session, names []string, remove bool) (found []ghost, err error) {
	if len(names) == 0 {
		if _, err := s.Imported(ctx, "any"); errors.Is(err, errors.ErrUnsupported) { // also if there is no line
			return nil, err
		}
		all, err := s.Lines(ctx)
		if err != nil {
			return nil, err
		}
		names = slices.DeleteFunc(slices.Sorted(maps.Keys(all)), hasItems)
	}
	found = []ghost{}
	var errs error
	for _, name := range names {
		members, err := s.Imported(ctx, name)
		if err != nil {
			return found, err
		}
		removes := remove
		if remove && len(members) > 0 {
			l, err := s.Line(ctx, name)
			if err != nil {
				return found, err
			}
			h, err := header.Of(l.Header)
			if err != nil {
				return found, err
			}
			if h.Sealed != "" || h.Migration != (header.Migration{}) {
				removes = false
				errs = errors.Join(errs, fmt.Errorf("%q has moved, or is moving, to another coordinator: \"succession migrate status %s\" says what its members are for", name, name))
			}
		}
		for _, m := range members {
			if removes {
				if err := s.Leave(ctx, m); err != nil {
					return found, err
				}
			}
			found = append(found, ghost{name, m.Key, m.Value, removes})
		}
	}
	return found, errs
}

// hasItems reports whether a line with this name has the items of a queue or of a pool of tasks.
func hasItems(line string) bool {
	return slices.ContainsFunc(naming.Table, func(r naming.Row) bool { return r.Use == naming.Items && strings.HasSuffix(line, r.Suffix) })
}

// printGhosts prints them all, of which nil says that it is not known whether there are any.
func printGhosts(w io.Writer, as ui.Format, all []ghost) error {
	switch {
	case all == nil || as != ui.AsJSON && len(all) == 0:
		return nil
	case as == ui.AsJSON:
		return ui.PrintJSON(w, all)
	}
	t := ui.NewTable(w, "LINE", "KEY", "VALUE", "STATE")
	for _, m := range all {
		state := "stands"
		if m.Removed {
			state = "removed"
		}
		t.Row(m.Line, m.Key, ui.OneLine(m.Value), state)
	}
	return t.Flush()
}
