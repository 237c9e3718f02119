package run

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/cmd/succession/internal/connect"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/recipes/lock"
)

// lockOptions are the flags that lock has and run has not.
type lockOptions struct {
	shared bool
	slots  int
}

// LockCommand returns the subcommand lock.
func LockCommand(g *connect.Flags) *cobra.Command {
	l := new(lockOptions)
	o := runOptions{right: right{l.take, "holding", true, locked, "lock"}}
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
  --slots 3   up to three processes hold the lock at a time; all must give the same number.
              Without --slots it is another lock

Exit codes:

  CMD's own  CMD ended while this process held the lock
  128+n      signal n ended CMD, or ended the waiting
  1          another holds the lock (--try, --wait)
  75         the lock was lost and CMD has been stopped
  125        succession itself failed
  126        CMD cannot be executed
  127        CMD was not found

-E chooses another for 1 (-E 9), or for all of ours (-E conflict=9,lost=10,failed=11).`,
		Example: `  succession lock nightly -- ./backup
  succession lock --try nightly -- ./backup || echo "somebody else is at it"
  succession lock --shared catalogue -- ./read
  succession --url etcd://h1:2379/app lock --slots 4 encoder -- ./encode film.mkv`,
	}
	o.flags(cmd)
	o.valueFlag(cmd)
	o.serveFlag(cmd)
	o.waitFlags(cmd, "the lock")
	f := cmd.Flags()
	f.BoolVarP(&l.shared, "shared", "s", false, "hold the lock together with others that ask for that too")
	f.IntVar(&l.slots, "slots", 0, "how many may hold the lock at a time (default: one)")
	cmd.MarkFlagsMutuallyExclusive("shared", "slots")
	cmd.MarkFlagsMutuallyExclusive("serve", "shared") // several hold the lock, and none leads
	cmd.MarkFlagsMutuallyExclusive("serve", "slots")
	takesCommand(cmd, g, &o, nil)
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("slots") && l.slots < 1 {
			return fmt.Errorf("--slots %d: give 1 or more", l.slots)
		}
		return run(cmd, args)
	}
	return cmd
}

func (l *lockOptions) take(ctx context.Context, b backend.Backend, name string, o *elect.Options, now bool) (held, error) {
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
	if now {
		wait = try
	}
	h, err := wait(ctx)
	if err != nil {
		return held{}, err
	}
	return held{Term: h.Term()}, nil
}

func locked(name string, waited time.Duration) string {
	if waited == 0 {
		return fmt.Sprintf("%q is locked by another", name)
	}
	return fmt.Sprintf("%q is still locked by another after %v", name, waited)
}
