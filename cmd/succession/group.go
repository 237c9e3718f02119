package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/cmd/succession/internal/connect"
	"github.com/succession-dev/succession/cmd/succession/internal/run"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/recipes/group"
)

func newGroup(g *connect.Flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "group",
		Short: "Be present in a group, and see who else is",
		Long: `A group says who is present: processes that have joined it, and neither left nor died.
Each has an id and a small value, such as an address.`,
		Example: `  succession group join --value 10.0.0.7:80 web -- ./serve
  succession group list web
  succession group watch web -o json`,
		Args: ui.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("say what to do, as in: succession group list NAME")
		},
	}
	cmd.AddCommand(run.JoinCommand(g), newGroupList(g), newGroupWatch(g))
	return cmd
}

func newGroupList(g *connect.Flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list NAME",
		Short: "Print who is present",
		Long: `Print all who are present in the group NAME, in the order in which they joined.

With -o json it prints an array of objects:

  id     who is present
  value  what it says of itself beside its id; left out if nothing
  token  its fencing token, which tells apart two with the same id

An empty group is no error.`,
		Example: `  succession group list web
  succession group list web -o json | jq -r '.[].value'`,
		Args: ui.One("group", "web"),
	}
	out := ui.OutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return g.WithBackend(args[0], func(_, opening context.Context, b backend.Backend) error {
			members, err := group.New(b, args[0], nil).Members(opening)
			switch {
			case err != nil:
				return err
			case *out == ui.AsJSON:
				return ui.PrintJSON(cmd.OutOrStdout(), members)
			case len(members) == 0:
				fmt.Fprintf(cmd.ErrOrStderr(), "succession: nobody is present in %q%s\n", args[0], g.Where())
				return nil
			}
			return printMembers(cmd.OutOrStdout(), members)
		})
	}
	return cmd
}

func printMembers(w io.Writer, members []group.Member) error {
	t := ui.NewTable(w, "#", "ID", "TOKEN", "VALUE")
	for i, m := range members {
		t.Row(i+1, m.ID, m.Token, m.Value)
	}
	return t.Flush()
}

func newGroupWatch(g *connect.Flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "watch NAME",
		Short: "Print each change of who is present",
		Long: `Print who is present in the group NAME, a line each, and then a line for each who joins
or goes. It runs until it is interrupted. Where changes come very fast, somebody who came
and went may be left out. While the coordinator cannot be reached it prints nothing, and what it
printed last may be out of date.

With -o json it prints all who are present, at once and then at each change: a line each with
an array as of "succession group list -o json", but with the values that they joined with.`,
		Example: `  succession group watch web
  succession group watch web -o json | jq --unbuffered length`,
		Args: ui.One("group", "web"),
	}
	out := ui.OutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		g.SayWhere(cmd, args[0])
		return g.WithBackend(args[0], func(ctx, _ context.Context, b backend.Backend) error {
			var before []group.Member
			first := true
			for now, err := range group.New(b, args[0], nil).Follow(ctx) {
				switch {
				case err != nil:
				case *out == ui.AsJSON:
					err = ui.PrintJSON(cmd.OutOrStdout(), now)
				case first && len(now) == 0:
					err = printChange(cmd.OutOrStdout(), "nobody is present")
				default:
					err = printChanges(cmd.OutOrStdout(), before, now, first)
				}
				if err != nil {
					return err
				}
				before, first = now, false
			}
			return nil
		})
	}
	return cmd
}

// printChanges prints who has gone and who has come.
func printChanges(w io.Writer, before, now []group.Member, first bool) error {
	came := "has joined"
	if first {
		came = "is present"
	}
	for _, m := range without(before, now) {
		if err := printChange(w, fmt.Sprintf("%s has gone, token %d", ui.Visible(m.ID), m.Token)); err != nil {
			return err
		}
	}
	for _, m := range without(now, before) {
		if err := printChange(w, fmt.Sprintf("%s %s, token %d", ui.Visible(m.ID), came, m.Token)); err != nil {
			return err
		}
	}
	return nil
}

func printChange(w io.Writer, text string) error {
	_, err := fmt.Fprintf(w, "%s  %s\n", time.Now().Format(time.TimeOnly), text)
	return err
}

// without returns the members of some that are not among others.
func without(some, others []group.Member) []group.Member {
	return slices.DeleteFunc(slices.Clone(some), func(m group.Member) bool {
		return slices.ContainsFunc(others, func(o group.Member) bool { return o.Token == m.Token })
	})
}
