package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/cmd/succession/internal/connect"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/recipes/lock"
	"github.com/succession-dev/succession/recipes/queue"
)

// A right is what a runner stands in line for: its command runs only while it has that.
type right struct {
	// take waits for the right, or, if now is true, fails with an error of unavailable when it
	// is not to be had at once.
	take func(ctx context.Context, b backend.Backend, name string, o *elect.Options, now bool) (held, error)
	// won says that the waiting is over.
	won string
	// spreads says that several clusters can have it; see package spread.
	spreads bool
	// missed says that it was not to be had within the given time, or at once if that is 0; nil
	// if nobody waits for it.
	missed func(name string, waited time.Duration) string
	// recipe is as in an event of package trace; empty for an election, and where there is no --serve.
	recipe string
}

// unavailable are the errors that say that another has what is wanted.
var unavailable = []error{elect.ErrNotFirst, lock.ErrLocked, queue.ErrEmpty}

// A held is a right that this process has, or has had.
type held struct {
	*elect.Term
	item *queue.Item // which the command works on; nil if that is no item of a queue
}

// runOptions are the flags of run, and of the others that run a command.
type runOptions struct {
	right right

	id, value string
	try       bool
	wait      time.Duration
	connect   time.Duration // how long to wait for a coordinator that is not there; negative for ever
	codes     codes
	grace     time.Duration
	restart   bool
	ack       bool
	history   int
	log       logForm
	choice    choice
	serve     string

	onElected, onLost string // lines of shell; empty for none
}

// flags adds the flags that all have to those of cmd.
func (o *runOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.id, "id", "", "who this process is (default host name, process id and a random suffix)")
	f.DurationVar(&o.grace, "grace", 0, "time for CMD between TERM and KILL after a loss (default: a fifth of the session's time; 5s for local:)")
	f.Var(&o.log, "log", "form of the messages on standard error (default text at a terminal, else json)")
	f.DurationVar(&o.connect, "connect-timeout", -1, "how long to wait for a coordinator that cannot be reached at the start; 0 exits at once (default: for ever)")
	f.Lookup("connect-timeout").DefValue = "0s" // which is not shown: the text says it
	if o.codes == (codes{}) {
		o.codes = codes{conflict: 1, lost: ui.ExitLost, failed: ui.ExitFailed}
	}
	f.VarP(&o.codes, "conflict-exit-code", "E", "an exit code in place of ours: CODE for a conflict, or KIND=CODE with KIND conflict, lost or failed")
}

// waitFlags adds --try and --wait. what is what this process would wait for.
func (o *runOptions) waitFlags(cmd *cobra.Command, what string) {
	f := cmd.Flags()
	f.BoolVarP(&o.try, "try", "n", false, "now or never: exit at once when "+what+" is not to be had")
	f.DurationVarP(&o.wait, "wait", "w", 0, "wait for "+what+" for so long at most; 0 is --try (default: for ever)")
	cmd.MarkFlagsMutuallyExclusive("try", "wait")
}

// missed is why this process waits no longer.
func (o *runOptions) missed(name string, waited time.Duration) error {
	return ui.Exitf(o.codes.conflict, "%s", o.right.missed(name, waited))
}

// take waits for the right, or tries to get it.
func (o *runOptions) take(ctx context.Context, b backend.Backend, name string, eo *elect.Options) (held, error) {
	h, err := o.right.take(ctx, b, name, eo, o.try)
	if o.try && errors.Is(err, elect.ErrNotReady) {
		return h, ui.Exitf(o.codes.conflict, "not elected leader of %q: %w", name, err)
	}
	if o.right.missed != nil && slices.ContainsFunc(unavailable, func(u error) bool { return errors.Is(err, u) }) {
		err = o.missed(name, 0)
	}
	return h, err
}

// serveFlag adds --serve.
func (o *runOptions) serveFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.serve, "serve", "", "answer GET /live, /ready, /leader and /metrics at this address; a port alone is for this machine alone")
}

// valueFlag adds --value.
func (o *runOptions) valueFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.value, "value", "", "what others are to know beside the id, such as an address")
}

func lead(ctx context.Context, b backend.Backend, name string, o *elect.Options, now bool) (held, error) {
	e := elect.New(b, name, o)
	campaign := e.Campaign
	if now {
		campaign = e.TryCampaign
	}
	t, err := campaign(ctx)
	return held{Term: t}, err
}

func notElected(name string, waited time.Duration) string {
	if waited == 0 {
		return fmt.Sprintf("not elected leader of %q: another stands in front", name)
	}
	return fmt.Sprintf("not elected leader of %q within %v", name, waited)
}

// Command returns the subcommand run.
func Command(g *connect.Flags) *cobra.Command {
	o := runOptions{
		right: right{lead, "elected leader of", true, notElected, ""},
		codes: codes{conflict: ui.ExitTimeout, lost: ui.ExitLost, failed: ui.ExitFailed},
	}
	cmd := &cobra.Command{
		Use:   "run [flags] NAME -- CMD [ARG...]",
		Short: "Run a command only while this process leads",
		Long: `Stand in line for the election NAME, run CMD as soon as this process leads, and exit
with CMD's exit code when it has ended.

CMD is executed as it stands, without a shell, with the standard input, output and
error of succession, and in its environment:

  SUCCESSION_ELECTION   NAME
  SUCCESSION_ID         this candidate's id
  SUCCESSION_TOKEN      the fencing token: it grows from leader to leader, so what
                        CMD writes to can refuse a smaller one than it has seen
  SUCCESSION_POSITION   what succession.guard of PostgreSQL takes

When leadership is lost, CMD and all that it started get TERM, and KILL after --grace,
in any case before the coordinator can make another the leader. When CMD ends, so
does all that it started. Should succession itself be killed, so is CMD.

A process that is not ready, as --ready says, stands in line and is passed over; when it
leads and is not ready any more, and somebody stands behind who may be, CMD is stopped as
if it were asked to resign. --priority and --site say who of those that are ready leads.

--on-elected and --on-lost are lines of shell, with CMD's environment. The first runs when
this process leads, before CMD. If it fails, or takes longer than --grace, CMD is not
started. The second runs when this process leads no more, for whatever reason; then
SUCCESSION_REASON says which. It has --grace to end, and holds up no stop of CMD.

Signals. While waiting, INT, TERM, HUP and QUIT leave the line. While CMD runs, INT,
TERM, HUP, QUIT, USR1, USR2, CONT and WINCH go to CMD's process group; a second INT
or TERM kills it. At a terminal CMD is in the foreground: ^C is for CMD alone, and ^Z
has no effect, as a leader that stands still would hold up the line.

With --serve 8071 it answers probes and Prometheus on port 8071 of this machine: /live fails
if CMD goes on long after leadership was lost, /ready is 200 while this process stands in
line, /leader is 200 while it leads and else 503, and /metrics has Prometheus' series.

In a unit of systemd with Type=notify it is ready when it stands in line, and its status is
the newest message.

Exit codes:

  CMD's own  CMD ended while this process led
  128+n      signal n ended CMD, or ended the waiting
  75         leadership was lost and CMD has been stopped (without --restart)
  124        not elected (--try, --wait)
  125        succession itself failed
  126        CMD cannot be executed
  127        CMD was not found

-E chooses another for 124 (-E 9), or for all of ours (-E conflict=9,lost=10,failed=11).`,
		Example: `  succession run reports -- ./send-reports --hourly
  succession run reports -- sh -c 'echo "leading with token $SUCCESSION_TOKEN"; exec ./work'
  succession run --wait 10s reports -- ./nightly || echo "somebody else does it"
  succession run --on-elected 'ip addr add 10.0.0.9/24 dev eth0' --on-lost 'ip addr del 10.0.0.9/24 dev eth0' web -- ./serve
  succession --url zookeeper://zk1:2181,zk2:2181/app run --id web-2 --restart reports -- ./work`,
	}
	o.flags(cmd)
	o.valueFlag(cmd)
	o.serveFlag(cmd)
	f := cmd.Flags()
	o.waitFlags(cmd, "leadership")
	f.StringVar(&o.onElected, "on-elected", "", "a line of shell to run when this process leads, before CMD")
	f.StringVar(&o.onLost, "on-lost", "", "a line of shell to run when this process leads no more")
	f.IntVar(&o.history, "history", 20, "how many terms \"succession history\" is to show; 0 writes none")
	f.BoolVar(&o.restart, "restart", false, "stand in line again when leadership was lost, instead of exiting with 75")
	f.BoolVar(&o.ack, "ack", false, "tell observers that the leader is at work as soon as CMD runs")
	o.choice.flags(cmd)
	takesCommand(cmd, g, &o, nil)
	return cmd
}

// takesCommand has cmd take NAME -- CMD [ARG...], and run it with the flags o when they have been
// read. If alone is not nil, cmd also takes NAME without a command, and calls alone then.
func takesCommand(cmd *cobra.Command, g *connect.Flags, o *runOptions, alone func(cmd *cobra.Command, name string) error) {
	example := func() string { return "as in: " + cmd.CommandPath() + " reports -- CMD ARG" }
	errDash := func() error { return errors.New(`write "--" before the command, ` + example()) }
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		switch dash := cmd.ArgsLenAtDash(); {
		case dash < 0 && alone != nil && len(args) == 1:
			return nil
		case dash < 0:
			return errDash()
		case dash != 1:
			return fmt.Errorf("want one NAME before \"--\", but there are %d arguments; %s", dash, example())
		case len(args) == 1:
			return fmt.Errorf(`there is no command after "--"; %s`, example())
		}
		return nil
	}
	cmd.RegisterFlagCompletionFunc("log", cobra.FixedCompletions([]string{"text", "json", "off"}, cobra.ShellCompDirectiveNoFileComp))
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		if !slices.Contains(os.Args, "--") {
			return fmt.Errorf("%w (%w)", err, errDash())
		}
		return err
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := backend.CheckName(args[0]); err != nil {
			return err
		}
		switch {
		case o.wait < 0:
			return fmt.Errorf("--wait %v is negative; leave it out to wait for ever", o.wait)
		case o.history < 0:
			return fmt.Errorf("--history %d is negative; give the number of terms to keep, or 0", o.history)
		case o.wait == 0 && cmd.Flags().Changed("wait"):
			o.try = true
		}
		if err := o.checkShell(); err != nil {
			return err
		}
		if len(args) == 1 {
			return alone(cmd, args[0])
		}
		path, err := lookPath(args[1])
		if err != nil {
			return err
		}
		return runElected(g, *o, args[0], path, args[1:], cmd.ErrOrStderr())
	}
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return o.codes.or(run(cmd, args)) }
}

// checkShell fails if a flag needs a shell and there is none, before anybody stands in line.
func (o *runOptions) checkShell() error {
	if o.choice.ready == "" && o.onElected == "" && o.onLost == "" {
		return nil
	}
	if _, err := exec.LookPath(shell); err != nil {
		return fmt.Errorf("--ready, --%s and --%s are lines of shell, and this system has none: %w", onElected, onLost, err)
	}
	return nil
}

// lookPath finds the executable as execvp(3) does, before anybody stands in line
// for it.
func lookPath(file string) (string, error) {
	path, err := exec.LookPath(file)
	switch {
	case err == nil || errors.Is(err, exec.ErrDot):
		return path, nil
	case errors.Is(err, exec.ErrNotFound) && !foundInPath(file), errors.Is(err, os.ErrNotExist):
		return "", ui.Exitf(ui.ExitNotFound, "%s: not found; give the path of a program, or sh -c '...' for a line of shell", file)
	}
	return "", ui.Exitf(ui.ExitNotExecutable, "%s: it is there but cannot be executed; look at its permissions", file)
}

// foundInPath reports whether a folder of $PATH has the file, executable or not.
func foundInPath(file string) bool {
	if strings.ContainsRune(file, os.PathSeparator) {
		return false
	}
	return slices.ContainsFunc(filepath.SplitList(os.Getenv("PATH")), func(dir string) bool {
		info, err := os.Stat(filepath.Join(dir, file))
		return err == nil && !info.IsDir()
	})
}
