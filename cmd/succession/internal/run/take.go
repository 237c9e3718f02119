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
	"github.com/succession-dev/succession/recipes/queue"
)

// TakeCommand returns the subcommand queue take.
func TakeCommand(g *connect.Flags) *cobra.Command {
	o := runOptions{right: right{take: takeItem, won: "took an item of", missed: noItem}}
	cmd := &cobra.Command{
		Use:   "take [flags] NAME [-- CMD [ARG...]]",
		Short: "Take the first item that is free, and work on it",
		Long: `Take the first item of the queue NAME that nobody else has, and wait for one where there
is none. Those who wait get items in the order in which they came.

With CMD it runs CMD while the item is this process's own. If CMD ends with exit code 0 the
item is confirmed, which removes it. In all other cases it goes back to its place, in front
of all that were put later. CMD reads the item, as a line, from standard input, and has in
its environment:

  SUCCESSION_ITEM      the item
  SUCCESSION_ITEM_ID   the item's ID, the same for all who take it
  SUCCESSION_TOKEN     the fencing token: larger than that of all who took the item before

So an item may be worked on more than once: after a crash, or when the coordinator could
not be reached. In all other respects it is like "succession run": see there for signals,
the rest of the environment, and what happens to CMD when the item is lost.

Without CMD it prints the item, as a line, and confirms it when that has been written.

Exit codes:

  CMD's own  CMD ended while this process had the item; 0 says that it is confirmed
  128+n      signal n ended CMD, or ended the waiting
  1          there is no item to take (--try, --wait)
  75         the item was lost, CMD has been stopped, and another will take the item
  125        succession itself failed
  126        CMD cannot be executed
  127        CMD was not found

-E chooses another for 1 (-E 9), or for all of ours (-E conflict=9,lost=10,failed=11).

With -o json, without CMD, it prints an object with id, value, position and token.`,
		Example: `  succession queue take mails -- ./send
  succession queue take mails -- sh -c 'read -r to && mail "$to" <news.txt'
  while succession queue take --wait 1m mails -- ./send; do :; done
  succession queue take --try mails || echo "nothing to do"`,
	}
	o.flags(cmd)
	o.waitFlags(cmd, "an item")
	out := ui.OutputFlag(cmd)
	takesCommand(cmd, g, &o, func(cmd *cobra.Command, name string) error {
		g.SayWhere(cmd, name)
		return g.WithBackend(name, func(ctx, opening context.Context, b backend.Backend) error {
			if o.try {
				ctx = opening
			}
			return o.takeAlone(ctx, b, name, func(item *queue.Item) error {
				if *out == ui.AsJSON {
					return ui.PrintJSON(cmd.OutOrStdout(), takenItem{item.ID, item.Value, item.Position, item.Token()})
				}
				return ui.PrintBytes(cmd.OutOrStdout(), []byte(item.Value+"\n"))
			})
		})
	})
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 && cmd.Flags().Changed("output") {
			return errors.New("-o is for queue take without CMD: with one, only CMD prints")
		}
		return run(cmd, args)
	}
	return cmd
}

// takenItem is an item in the output of queue take.
type takenItem struct {
	ID       string `json:"id"`
	Value    string `json:"value"`
	Position uint64 `json:"position"`
	Token    uint64 `json:"token"`
}

// takeAlone takes an item, prints it, and confirms it, also if ctx has ended by then.
func (o *runOptions) takeAlone(ctx context.Context, b backend.Backend, name string, print func(*queue.Item) error) error {
	waiting := ctx
	if o.wait > 0 {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeoutCause(ctx, o.wait, o.missed(name, o.wait))
		defer cancel()
	}
	h, err := o.take(waiting, b, name, &elect.Options{ID: o.id})
	if err != nil {
		return err
	}
	defer h.item.Return(context.Background())
	if err := print(h.item); err != nil {
		return err
	}
	return o.unconfirmed(h.item.Done(context.WithoutCancel(ctx)))
}

func takeItem(ctx context.Context, b backend.Backend, name string, o *elect.Options, now bool) (held, error) {
	q := queue.New(b, name, &queue.Options{Options: *o})
	take := q.Take
	if now {
		take = q.TryTake
	}
	item, err := take(ctx)
	if err != nil {
		return held{}, err
	}
	return held{item.Term(), item}, nil
}

func noItem(name string, waited time.Duration) string {
	if waited == 0 {
		return fmt.Sprintf("there is no item to take from %q", name)
	}
	return fmt.Sprintf("there was no item to take from %q for %v", name, waited)
}

// unconfirmed is the exit code for an error of [queue.Item.Done].
func (o *runOptions) unconfirmed(err error) error {
	if errors.Is(err, queue.ErrLost) {
		return ui.Exitf(o.codes.lost, "%w; another takes the item again", err)
	}
	return err
}
