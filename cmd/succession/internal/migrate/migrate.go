// Package migrate is the subcommand migrate: an operator's steps of a migration, which
// the library's package migrate takes, from flags to printed status.
package migrate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/cmd/succession/internal/connect"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/migrate"
)

// A move is a migration as the flags name it.
type move struct {
	*connect.Flags
	from, to, id string
	carry        []string
	leave        bool
}

// Command returns the subcommand migrate.
func Command(g *connect.Flags) *cobra.Command {
	m := &move{Flags: g}
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Move an election to another coordinator",
		Long: `Move the election NAME from the coordinator --from to the coordinator --to, while
its candidates run: without a pause, and without ever two leaders.

  1  succession migrate begin NAME       nobody can lead on --to any more
  2  restart the candidates one by one   with both coordinators:
                                         --url 'migrate:?from=URL&to=URL'
  3  succession migrate cutover NAME     the leader leads on, by --to alone
  4  restart the candidates one by one   with --to alone
  5  succession migrate finish NAME      says whether anybody knows --from alone

"status" says at any time how far it is, what is in the way, and what to do next.
"abort" undoes 1 and 2. After 3 the way back is the same with --from and --to
exchanged. Each step can be taken by anybody, again, and after a crash at any point.

Exit codes: 0 done; 1 refused as things are, and why; 124 not done within --wait, and
still asked for; 125 it could not be found out, or not be done.`,
		Example: `  succession migrate begin reports --from zookeeper://zk1/app --to etcd://db1/app
  succession migrate status reports --from zookeeper://zk1/app --to etcd://db1/app`,
		Args: ui.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return errors.New("say which step, as in: succession migrate status NAME --from URL --to URL")
		},
	}
	f := cmd.PersistentFlags()
	f.StringVar(&m.from, "from", "", "the coordinator that the election moves from")
	f.StringVar(&m.to, "to", "", "the coordinator that the election moves to")
	f.StringVar(&m.id, "id", "", "the migration with this ID, or whose ID begins with it and a -, and no other; begin makes up the rest")
	cmd.RegisterFlagCompletionFunc("from", connect.CompleteURL)
	cmd.RegisterFlagCompletionFunc("to", connect.CompleteURL)
	for _, sub := range []*cobra.Command{m.newStatus(), m.newBegin(), m.newCutover(), m.newFinish(), m.newAbort()} {
		sub.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			return (&connect.Flags{URL: m.from}).Complete(connect.Lines)(cmd, args, typed)
		}
		cmd.AddCommand(sub)
	}
	return cmd
}

func (m *move) newStatus() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status NAME --from URL --to URL",
		Short: "Print how far it is, and what to do next",
		Long: `Print how far the migration of the election NAME is, who stands in line on which
coordinator, what is in the way of the next step, and what to do next.

  MODE  old   the candidate knows --from alone
        both  it runs with both coordinators
        new   it knows --to alone

A candidate says itself that it runs with both. One that knows --from alone, as any
foreign one does, endangers nothing: it may lead until the cutover, and waits for ever
after that.`,
		Example: `  succession migrate status reports --from local:/tmp/old --to local:/tmp/new
  succession migrate status reports --from local:/tmp/old --to local:/tmp/new -o json | jq -r .phase`,
		Args: ui.OneName,
	}
	out := ui.OutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return m.with(cmd, args[0], func(ctx context.Context, b *migrate.Backend) error {
			ctx, cancel := m.soon(ctx)
			defer cancel()
			s, err := b.Status(ctx, args[0])
			if err != nil {
				return whyNot(err)
			}
			return printStatus(cmd.OutOrStdout(), *out, "", s, s)
		})
	}
	return cmd
}

func (m *move) newBegin() *cobra.Command {
	return m.newStep(migrate.Begin, (*migrate.Backend).Begin, 30*time.Second,
		"Put a gate on the new coordinator, behind which everybody waits",
		`Begin the migration of the election NAME: nobody who is started with --to alone can
lead from now on, so candidates may be restarted with both coordinators.

First it finds out whether both can be reached from here and give the rights that are
needed: on each it writes, reads and deletes a record, and holds an election of one, under
the name NAME.migrate-probe. It refuses where anybody stands in line on --to.

It changes nothing for those who lead and wait on --from. "abort" undoes it.`)
}

func (m *move) newCutover() *cobra.Command {
	return m.newStep(migrate.Cutover, (*migrate.Backend).Cutover, time.Minute,
		"Ask the leader to lead on by the new coordinator alone",
		`Ask the leader of the election NAME, who must run with both coordinators, to seal the
election on --from and to lead on by --to alone, and wait until it has. Its term goes
on meanwhile.

This is the point of no return: nobody leads on --from any more, unless the election
is moved back by a migration the other way round. At a terminal it asks before it begins;
elsewhere it needs --yes.

The records that leaders with both coordinators have guarded are carried over, and the
history. It refuses where other records stand on --from beside the election, such as
NAME-position: name those that go with it with --carry, and say --leave-records where the
others may stay.

If it takes longer than --wait the leader is still asked, and the next leader that can
will do it; "abort" takes that back.`)
}

func (m *move) newFinish() *cobra.Command {
	return m.newStep(migrate.Finish, (*migrate.Backend).Finish, 30*time.Second,
		"Say whether anybody still stands on the old coordinator",
		`Say whether the election NAME needs --from any more. It completes a cutover that was
interrupted, and refuses, with their names, as long as candidates stand on --from behind
the seal: they wait for ever. It cannot see candidates that are not running.`)
}

func (m *move) newAbort() *cobra.Command {
	return m.newStep(migrate.Abort, (*migrate.Backend).Abort, time.Minute,
		"Stay on the old coordinator",
		`End a migration of the election NAME that has not been cut over: the election stays
on --from, and the gate on --to is taken away. A leader that runs with both coordinators
leads on. It refuses when the cutover was faster.`)
}

// newStep returns the subcommand of a step; do takes the step.
func (m *move) newStep(step migrate.Step, do func(*migrate.Backend, context.Context, string) (migrate.Status, error), bound time.Duration, short, long string) *cobra.Command {
	cmd := &cobra.Command{
		Use:     string(step) + " NAME --from URL --to URL",
		Short:   short,
		Long:    long,
		Example: "  succession migrate " + string(step) + " reports --from local:/tmp/old --to local:/tmp/new",
		Args:    ui.OneName,
	}
	dry := cmd.Flags().Bool("dry-run", false, "say what would be done, and change nothing")
	wait := cmd.Flags().Duration("wait", bound, "how long to wait until it is done")
	if step == migrate.Cutover || step == migrate.Finish {
		cmd.Flags().StringSliceVar(&m.carry, "carry", nil, "a record that goes with the election, though no leader with both coordinators has written it; can be given again")
		cmd.Flags().BoolVar(&m.leave, "leave-records", false, "leave other records that stand beside the election where they are")
	}
	yes := new(bool)
	if step == migrate.Cutover {
		cmd.Flags().BoolVar(yes, "yes", false, "do not ask whether to go on")
	}
	out := ui.OutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		name := args[0]
		return m.with(cmd, name, func(ctx context.Context, b *migrate.Backend) error {
			var plan migrate.Plan
			if *dry || step == migrate.Begin || step == migrate.Cutover {
				var err error
				if plan, err = m.plan(ctx, b, step, name); err != nil {
					return whyNot(err)
				}
			}
			if *dry {
				return printStatus(cmd.OutOrStdout(), *out, "would "+plan.Does, plan.Status, plan)
			}
			if plan.Phase == migrate.Begun && step == migrate.Cutover && !*yes {
				if err := confirm(ctx, cmd, plan.Status); err != nil {
					return err
				}
			}
			ctx, cancel := context.WithTimeoutCause(ctx, *wait, errWait)
			defer cancel()
			if plan.Changes && step == migrate.Begin {
				if err := b.Check(ctx, name); err != nil {
					return whyNot(err)
				}
			}
			s, err := do(b, ctx, name)
			if err != nil {
				return whyNot(err)
			}
			return printStatus(cmd.OutOrStdout(), *out, "", s, s)
		})
	}
	return cmd
}

func (m *move) plan(ctx context.Context, b *migrate.Backend, step migrate.Step, name string) (migrate.Plan, error) {
	ctx, cancel := m.soon(ctx)
	defer cancel()
	return b.Plan(ctx, step, name)
}

// errWait is the cause of a context that --wait ended.
var errWait = errors.New("not done within --wait")

// soon returns ctx with the bound of --timeout, for what changes nothing.
func (m *move) soon(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, m.Timeout, connect.ErrTimeout)
}

// whyNot gives err the exit code that tells a refusal and a timeout from a failure.
func whyNot(err error) error {
	switch {
	case errors.Is(err, errWait):
		return &ui.ExitError{Code: ui.ExitTimeout, Err: err}
	case errors.Is(err, migrate.ErrRefused), errors.Is(err, migrate.ErrNotBegun), errors.Is(err, migrate.ErrOther), errors.Is(err, backend.ErrSealed):
		return &ui.ExitError{Code: ui.ExitRefused, Err: err}
	}
	return err
}

// with opens both coordinators, calls f, and closes them again.
func (m *move) with(cmd *cobra.Command, name string, f func(context.Context, *migrate.Backend) error) error {
	switch {
	case cmd.Flags().Changed("url"):
		return errors.New("migrate takes the two coordinators as --from and --to, and no --url")
	case m.from == "" || m.to == "":
		return errors.New("say which coordinators, as in: --from zookeeper://zk1/app --to etcd://db1/app")
	}
	if err := backend.CheckName(name); err != nil {
		return err
	}
	return ui.UntilSignal(func(ctx context.Context) error {
		from, err := m.openSide(ctx, "--from", m.from)
		if err != nil {
			return err
		}
		to, err := m.openSide(ctx, "--to", m.to)
		if err != nil {
			from.Close()
			return err
		}
		// From and To are told to others, and so hold no secret.
		b := migrate.New(from, to, &migrate.Options{From: coordinator.Redact(m.from), To: coordinator.Redact(m.to), ID: m.id, Carry: m.carry, Leave: m.leave})
		err = f(ctx, b)
		// What f found out counts; a session that cannot be closed holds no place.
		b.Close()
		return err
	})
}

func (m *move) openSide(ctx context.Context, flag, url string) (backend.Backend, error) {
	if strings.HasPrefix(url, "migrate:") {
		return nil, fmt.Errorf("%s is itself a migration; name one coordinator", flag)
	}
	ctx, cancel := m.soon(ctx)
	defer cancel()
	b, err := connect.Open(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return b, nil
}
