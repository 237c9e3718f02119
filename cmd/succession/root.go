package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/succession-dev/succession/cmd/succession/internal/connect"
	"github.com/succession-dev/succession/cmd/succession/internal/demo"
	"github.com/succession-dev/succession/cmd/succession/internal/man"
	"github.com/succession-dev/succession/cmd/succession/internal/migrate"
	"github.com/succession-dev/succession/cmd/succession/internal/page"
	"github.com/succession-dev/succession/cmd/succession/internal/run"
	"github.com/succession-dev/succession/cmd/succession/internal/suite"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
)

// execute runs the command line args and returns the process's exit code.
func execute(args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return ui.ExitCode(root.Execute(), stderr)
}

func newRoot() *cobra.Command {
	var g connect.Flags
	root := &cobra.Command{
		Use:   "succession",
		Short: "Elect a leader among processes",
		Long: `succession elects a leader among processes, on one machine or on many.

Candidates stand in a line. The first one leads; each of the others waits for the
one just in front of it, and when that one goes the next in line leads.

The coordinator keeps the line. --url says which, as in these examples:

` + examples() + `
By itself it is local:, the kernel of this machine, in a folder of this user. There is nothing to install.`,
		Example: `  succession demo
  succession run reports -- ./send-reports --hourly
  succession leader reports
  succession --url zookeeper://zk1:2181,zk2:2181/app line reports`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       thisBuild().Version,
	}
	root.SetVersionTemplate(thisBuild().String())
	f := root.PersistentFlags()
	f.StringVar(&g.URL, "url", cmp.Or(os.Getenv("SUCCESSION_URL"), connect.DefaultURL), "the coordinator; the default is $SUCCESSION_URL, else local:")
	f.DurationVar(&g.Timeout, "timeout", 5*time.Second, "how long a command that reads or writes may wait for the coordinator")
	// The default is said in the text: a value from the environment is not one.
	f.Lookup("url").DefValue = ""
	root.RegisterFlagCompletionFunc("url", connect.CompleteURL)

	root.AddGroup(
		&cobra.Group{ID: "lead", Title: "Leading:"},
		&cobra.Group{ID: "look", Title: "Looking at an election:"},
		&cobra.Group{ID: "act", Title: "Acting on an election:"},
		&cobra.Group{ID: "record", Title: "Records:"},
		&cobra.Group{ID: "share", Title: "Sharing work:"},
		&cobra.Group{ID: "test", Title: "Testing a coordinator:"},
	)
	names, none, records := g.Complete(connect.Lines), g.Complete(nil), g.Complete(connect.Records)
	for _, part := range []struct {
		id       string
		complete completion // of the NAME of those that take one
		cmds     []*cobra.Command
	}{
		{"lead", names, []*cobra.Command{run.Command(&g), run.LockCommand(&g), demo.Command(&g)}},
		{"look", names, []*cobra.Command{newLeader(&g), page.ListCommand(&g), newWatch(&g), newLine(&g), newHistory(&g), page.Command(&g)}},
		{"act", names, []*cobra.Command{newResign(&g), newDrain(&g), newPause(&g), newResume(&g), newFence(&g), newGhosts(&g), newRights(&g), migrate.Command(&g), newSpread(&g)}},
		{"act", none, newSetups(&g)},
		{"record", records, []*cobra.Command{newGet(&g), newSet(&g), newFollow(&g), newDelete(&g)}},
		{"share", none, []*cobra.Command{newQueue(&g), newGroup(&g)}},
		{"test", none, []*cobra.Command{suite.Command(&g)}},
		{"", none, []*cobra.Command{newVersion(), man.Command(thisBuild().Version)}},
	} {
		for _, c := range part.cmds {
			c.GroupID = part.id
			part.complete.of(c)
			root.AddCommand(c)
		}
	}
	root.AddCommand(run.Guard(), suite.Stand(&g))
	return root
}

// examples lists the coordinators that --url can name.
func examples() string {
	var b strings.Builder
	for _, d := range connect.Drivers() {
		if d.Example != "" {
			fmt.Fprintf(&b, "  %-33s  %s\n", d.Example, d.About)
		}
	}
	return b.String()
}

// A completion completes the arguments of a command, for a shell.
type completion func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective)

// of makes f the completion of c and all below it that take a NAME, unless they have another.
func (f completion) of(c *cobra.Command) {
	switch {
	case c.ValidArgsFunction != nil:
	case strings.Contains(c.Use, " NAME"):
		c.ValidArgsFunction = f
	default:
		c.ValidArgsFunction = cobra.NoFileCompletions
	}
	for _, sub := range c.Commands() {
		f.of(sub)
	}
}
