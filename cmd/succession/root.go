package main

import (
	"cmp"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/succession-dev/succession/cmd/succession/internal/connect"
	"github.com/succession-dev/succession/cmd/succession/internal/demo"
	"github.com/succession-dev/succession/cmd/succession/internal/migrate"
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

The coordinator keeps the line. --url says which:

  local:                             the kernel of this machine; nothing to install
  local:/var/lib/app                 the same, with a folder of your choice
  zookeeper://h1:2181,h2:2181/app    a ZooKeeper ensemble
  etcd://h1:2379,h2:2379/app         an etcd cluster
  consul://127.0.0.1:8500/app        a Consul cluster, by the agent on this machine
  spread:/etc/app/clusters.json      several of these, which share the elections`,
		Example: `  succession demo
  succession run reports -- ./send-reports --hourly
  succession leader reports
  succession --url zookeeper://zk1:2181,zk2:2181/app line reports`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	f := root.PersistentFlags()
	f.StringVar(&g.URL, "url", cmp.Or(os.Getenv("SUCCESSION_URL"), connect.DefaultURL), "the coordinator; the default is $SUCCESSION_URL, else local:")
	f.DurationVar(&g.Timeout, "timeout", 5*time.Second, "how long a command that reads or writes may wait for the coordinator")
	// The default is said in the text: a value from the environment is not one.
	f.Lookup("url").DefValue = ""

	root.AddGroup(
		&cobra.Group{ID: "lead", Title: "Leading:"},
		&cobra.Group{ID: "look", Title: "Looking at an election:"},
		&cobra.Group{ID: "act", Title: "Acting on an election:"},
		&cobra.Group{ID: "record", Title: "Records:"},
		&cobra.Group{ID: "share", Title: "Sharing work:"},
		&cobra.Group{ID: "test", Title: "Testing a coordinator:"},
	)
	for id, cmds := range map[string][]*cobra.Command{
		"lead":   {run.Command(&g), run.LockCommand(&g), demo.Command(&g)},
		"look":   {newLeader(&g), newWatch(&g), newLine(&g), newHistory(&g)},
		"act":    {newResign(&g), newPause(&g), newResume(&g), newFence(&g), migrate.Command(&g), newSpread(&g)},
		"record": {newGet(&g), newSet(&g), newFollow(&g), newDelete(&g)},
		"share":  {newQueue(&g), newGroup(&g)},
		"test":   {suite.Command(&g)},
	} {
		for _, c := range cmds {
			c.GroupID = id
			root.AddCommand(c)
		}
	}
	root.AddCommand(newVersion(), run.Guard(), suite.Stand(&g))
	return root
}
