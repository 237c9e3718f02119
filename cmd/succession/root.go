package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
)

const defaultURL = "local:"

// globals are the flags of all subcommands.
type globals struct {
	url     string
	timeout time.Duration
}

// execute runs the command line args and returns the process's exit code.
func execute(args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return exitCode(root.Execute(), stderr)
}

func newRoot() *cobra.Command {
	var g globals
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
  consul://127.0.0.1:8500/app        a Consul cluster, by the agent on this machine`,
		Example: `  succession demo
  succession run reports -- ./send-reports --hourly
  succession leader reports
  succession --url zookeeper://zk1:2181,zk2:2181/app line reports`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	f := root.PersistentFlags()
	f.StringVar(&g.url, "url", cmp.Or(os.Getenv("SUCCESSION_URL"), defaultURL), "the coordinator; the default is $SUCCESSION_URL, else local:")
	f.DurationVar(&g.timeout, "timeout", 5*time.Second, "how long a command that reads may wait for the coordinator")
	// The default is said in the text: a value from the environment is not one.
	f.Lookup("url").DefValue = ""

	root.AddGroup(
		&cobra.Group{ID: "lead", Title: "Leading:"},
		&cobra.Group{ID: "look", Title: "Looking at an election:"},
		&cobra.Group{ID: "act", Title: "Acting on an election:"},
		&cobra.Group{ID: "test", Title: "Testing a coordinator:"},
	)
	for id, cmds := range map[string][]*cobra.Command{
		"lead": {newRun(&g), newDemo(&g)},
		"look": {newLeader(&g), newWatch(&g), newLine(&g)},
		"act":  {newResign(&g), newFence(&g), newMigrate(&g)},
		"test": {newConformance(&g)},
	} {
		for _, c := range cmds {
			c.GroupID = id
			root.AddCommand(c)
		}
	}
	root.AddCommand(newVersion(), newGuard(), newStand(&g))
	return root
}

// where says which coordinator is meant where nobody has named one: an election of the
// same name is perhaps looked for elsewhere. It is "" otherwise.
func (g *globals) where() string {
	if g.url != defaultURL {
		return ""
	}
	return " on this machine (local:); name another coordinator with --url or $SUCCESSION_URL"
}

// sayWhere says on standard error what where does.
func (g *globals) sayWhere(cmd *cobra.Command, name string) {
	if w := g.where(); w != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "succession: %q is meant%s\n", name, w)
	}
}

// oneName wants the name of an election as the only argument.
func oneName(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want the NAME of one election, as in: %s reports", cmd.CommandPath())
	}
	return nil
}

// noArgs wants no argument.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no arguments, but got %q", cmd.CommandPath(), args[0])
	}
	return nil
}

// untilSignal calls f with a context that INT, TERM and HUP end. Where that is why f
// failed, the exit code is that of a process that the signal ended.
func untilSignal(f func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	signals := make(chan os.Signal, 1)
	notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	for {
		select {
		case err := <-done:
			var i interrupted
			if errors.As(err, &i) {
				return &exitError{code: signalExit(i.sig)}
			}
			return err
		case sig := <-signals:
			if ctx.Err() != nil {
				return &exitError{code: signalExit(sig)} // asked twice: do not wait for f
			}
			cancel(interrupted{sig})
		}
	}
}

// notify is signal.Notify except for signals that this process was told to ignore,
// as by nohup(1).
func notify(c chan<- os.Signal, signals ...os.Signal) {
	for _, sig := range signals {
		if !signal.Ignored(sig) {
			signal.Notify(c, sig)
		}
	}
}

// errTimeout is the cause of a context that --timeout ended.
var errTimeout = errors.New("no answer within --timeout")

// look calls f with the election name, for a command that neither stands in line
// nor takes longer than --timeout.
func (g *globals) look(name string, f func(context.Context, *elect.Election) error) error {
	return untilSignal(func(ctx context.Context) error {
		ctx, cancel := g.withTimeout(ctx)
		defer cancel()
		return g.with(ctx, name, f)
	})
}

func (g *globals) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, g.timeout,
		fmt.Errorf("%s: %w of %v; is the coordinator up, and --url right?", backend.Redact(g.url), errTimeout, g.timeout))
}

// with opens the coordinator, calls f with the election name, and closes it again.
func (g *globals) with(ctx context.Context, name string, f func(context.Context, *elect.Election) error) error {
	if err := backend.CheckName(name); err != nil {
		return err
	}
	b, err := open(ctx, g.url)
	if err != nil {
		return err
	}
	err = f(ctx, elect.New(b, name, nil))
	// What f found out counts; a session that cannot be closed has joined nothing.
	b.Close()
	return err
}
