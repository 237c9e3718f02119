package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/cmd/succession/internal/connect"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/lock"
)

// lockOptions are the flags that lock has and run has not. A nil one is that of run.
type lockOptions struct {
	shared   bool
	slots    int
	try      bool
	conflict int
}

// LockCommand returns the subcommand lock.
func LockCommand(g *connect.Flags) *cobra.Command {
	l := new(lockOptions)
	o := runOptions{log: logAuto, lock: l}
	cmd := &cobra.Command{
		Use:   "lock [flags] NAME -- CMD [ARG...]",
		Short: "Run a command only while this process holds a lock",
		Long: `Wait for the lock NAME, run CMD as soon as this process holds it, and exit with CMD's
exit code when it has ended. It is flock(1) for many machines: those who wait get the
lock in the order in which they came, and a lock that is lost ends CMD before another
holds it. In all other respects it is like "succession run": see there for signals, the
environment of CMD, and what happens to CMD when the lock is lost.

  --shared    any number of processes hold the lock together, but none together with
              one that asked without --shared
  --slots 3   up to three processes hold the lock at a time; all must give the same number

Exit codes:

  CMD's own  CMD ended while this process held the lock
  128+n      signal n ended CMD, or ended the waiting
  1          another holds the lock (--try, --wait); -E chooses another number
  75         the lock was lost and CMD has been stopped
  125        succession itself failed
  126        CMD cannot be executed
  127        CMD was not found`,
		Example: `  succession lock nightly -- ./backup
  succession lock --try nightly -- ./backup || echo "somebody else is at it"
  succession lock --shared catalogue -- ./read
  succession --url etcd://h1:2379/app lock --slots 4 encoder -- ./encode film.mkv`,
	}
	f := cmd.Flags()
	f.StringVar(&o.id, "id", "", "who this process is (default host name, process id and a random suffix)")
	f.StringVar(&o.value, "value", "", "what others are to know beside the id, such as an address")
	f.BoolVarP(&l.shared, "shared", "s", false, "hold the lock together with others that ask for that too")
	f.IntVar(&l.slots, "slots", 0, "how many may hold the lock at a time (default: one)")
	f.BoolVarP(&l.try, "try", "n", false, "do not wait for others: exit at once when one holds the lock, or waits for it")
	f.DurationVarP(&o.wait, "wait", "w", 0, "wait for the lock for so long at most (default: for ever)")
	f.IntVarP(&l.conflict, "conflict-exit-code", "E", 1, "the exit code when the lock was not to be had (--try, --wait)")
	f.DurationVar(&o.grace, "grace", 0, "time for CMD between TERM and KILL (default: a fifth of the session's time; 5s for local:)")
	f.Var(&o.log, "log", "form of the messages on standard error (default text at a terminal, else json)")
	f.Lookup("log").DefValue = ""
	cmd.MarkFlagsMutuallyExclusive("shared", "slots")
	cmd.MarkFlagsMutuallyExclusive("try", "wait")
	takesCommand(cmd, g, &o)
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case cmd.Flags().Changed("slots") && l.slots < 1:
			return fmt.Errorf("--slots %d: give 1 or more", l.slots)
		case l.conflict < 0 || l.conflict > 255:
			return fmt.Errorf("-E %d: exit codes are from 0 to 255", l.conflict)
		}
		return run(cmd, args)
	}
	return cmd
}

// take waits for the lock, or tries to get it.
func (l *lockOptions) take(ctx context.Context, b backend.Backend, name string, o *elect.Options) (*elect.Term, error) {
	var wait, try func(context.Context) (*lock.Held, error)
	switch {
	case l.slots > 0:
		s := lock.NewSemaphore(b, name, l.slots, o)
		wait, try = s.Acquire, s.TryAcquire
	case l.shared:
		m := lock.NewRWMutex(b, name, o)
		wait, try = m.RLock, m.TryRLock
	default:
		m := lock.NewMutex(b, name, o)
		wait, try = m.Lock, m.TryLock
	}
	if l.try {
		wait = try
	}
	held, err := wait(ctx)
	switch {
	case errors.Is(err, lock.ErrLocked):
		return nil, ui.Exitf(l.conflict, "%q is locked by another", name)
	case err != nil:
		return nil, err
	}
	return held.Term, nil
}

// won says that the waiting is over.
func (l *lockOptions) won() string {
	if l == nil {
		return "elected leader of"
	}
	return "holding"
}

// tooLate is why the waiting ends after a time.
func (l *lockOptions) tooLate(name string, wait time.Duration) error {
	if l == nil {
		return ui.Exitf(ui.ExitTimeout, "not elected leader of %q within %v", name, wait)
	}
	return ui.Exitf(l.conflict, "%q is still locked by another after %v", name, wait)
}
