package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/cmd/succession/internal/connect"
	"github.com/succession-dev/succession/cmd/succession/internal/run"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/recipes/queue"
)

func newQueue(g *connect.Flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "queue",
		Short: "Put items into a queue, and take them",
		Long: `A queue keeps items in order, until somebody has worked on each of them. An item
survives those who put it and those who take it: if who has taken it dies, or fails, it is
free again at its place.

An item is text of at most about 4 KiB. On ZooKeeper each take reads the names of all items,
16 bytes for each.`,
		Example: `  succession queue put mails alice bob
  succession queue take mails -- ./send
  succession queue list mails`,
		Args: ui.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("say what to do, as in: succession queue list NAME")
		},
	}
	cmd.AddCommand(newPut(g), run.TakeCommand(g), newQueueList(g))
	return cmd
}

func newPut(g *connect.Flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "put [--limit N] NAME VALUE...",
		Short: "Put items at the end of a queue",
		Long: `Put each VALUE at the end of the queue NAME, in this order, or where VALUE is "-" each
line of standard input as it comes, without the newline at its end. Write "--" before a VALUE
that begins with a hyphen.

With --limit it puts none where N items stand in the queue, those that are taken
included. All who put must give the same N.

Exit codes: 0 all are put; 1 the queue is full; 125 failed. The message says how many are
put. If an answer of the coordinator was lost, one more may be.`,
		Example: `  succession queue put mails alice bob
  find . -name '*.mkv' | succession queue put encode -
  succession queue put --limit 100 mails carol || echo "too many wait"`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return errors.New(`want a NAME and a VALUE or more, as in: succession queue put mails alice; "-" is the lines of standard input`)
			}
			return nil
		},
	}
	limit := cmd.Flags().Int("limit", 0, "how many items may stand in the queue (default: any number)")
	cmd.SetFlagErrorFunc(hyphenError)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		name, values := args[0], args[1:]
		if cmd.Flags().Changed("limit") && *limit < 1 {
			return fmt.Errorf("--limit %d: give 1 or more", *limit)
		}
		g.SayWhere(cmd, name)
		return g.WithBackend(name, func(ctx, _ context.Context, b backend.Backend) error {
			q, done := queue.New(b, name, &queue.Options{Limit: *limit}), 0
			put := func(value string) error {
				ctx, cancel := g.WithTimeout(ctx)
				defer cancel()
				_, err := q.Put(ctx, value)
				if err == nil {
					done++
				}
				return err
			}
			each := eachOf(values)
			if len(values) == 1 && values[0] == "-" {
				each = eachLine(ctx, cmd.InOrStdin())
			}
			err := each(put)
			if err == nil {
				return nil
			}
			err = fmt.Errorf("%w; %s put", err, ui.Count(done, "item"))
			if errors.Is(err, queue.ErrFull) {
				err = &ui.ExitError{Code: ui.ExitRefused, Err: err}
			}
			return err
		})
	}
	return cmd
}

// eachOf returns a func that calls f with each of the values, until it fails.
func eachOf(values []string) func(f func(string) error) error {
	return func(f func(string) error) error {
		for _, v := range values {
			if err := f(v); err != nil {
				return err
			}
		}
		return nil
	}
}

// maxLine is how long a line of standard input may be. What is longer than an item is refused
// with the reason for that.
const maxLine = 16 * queue.MaxValue

// eachLine returns a func that calls f with each line of in, until it fails or ctx ends.
func eachLine(ctx context.Context, in io.Reader) func(f func(string) error) error {
	return func(f func(string) error) error {
		lines, failed := make(chan string), make(chan error, 1)
		go func() { // it may wait for input until the process ends
			r := bufio.NewReaderSize(in, maxLine)
			for {
				line, err := r.ReadSlice('\n')
				if err == nil || err == io.EOF && len(line) > 0 { // after another error the rest is no line
					select {
					case lines <- strings.TrimSuffix(string(line), "\n"):
					case <-ctx.Done():
						return
					}
				}
				switch err {
				case nil:
					continue
				case io.EOF:
					err = nil
				case bufio.ErrBufferFull:
					err = fmt.Errorf("a line is too long for an item, which has at most %d bytes", queue.MaxValue)
				}
				failed <- err
				return
			}
		}()
		for {
			select {
			case line := <-lines:
				if err := f(line); err != nil {
					return err
				}
			case err := <-failed:
				if err != nil {
					err = fmt.Errorf("standard input: %w", err)
				}
				return err
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
}

func newQueueList(g *connect.Flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list NAME",
		Short: "Print the items of a queue",
		Long: `Print all items of the queue NAME in order, and who has taken them.

  TAKER  the id of who has taken the item; empty if it is free
  TOKEN  the taker's fencing token

With -o json it prints an array of objects:

  id        the item's ID, the same for all who take it
  value     the item
  position  its number in the coordinator's log, which grows from item to item
  taker     who has taken it; left out if it is free
  token     the taker's fencing token; left out if it is free

An empty queue is no error.`,
		Example: `  succession queue list mails
  succession queue list mails -o json | jq 'map(select(.taker | not)) | length'`,
		Args: ui.One("queue", "mails"),
	}
	out := ui.OutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return g.WithBackend(args[0], func(_, opening context.Context, b backend.Backend) error {
			entries, err := queue.New(b, args[0], nil).List(opening)
			switch {
			case err != nil:
				return err
			case *out == ui.AsJSON:
				return ui.PrintJSON(cmd.OutOrStdout(), itemsOf(entries))
			case len(entries) == 0:
				fmt.Fprintf(cmd.ErrOrStderr(), "succession: no item stands in the queue %q%s\n", args[0], g.Where())
				return nil
			}
			return printItems(cmd.OutOrStdout(), entries)
		})
	}
	return cmd
}

// item is one item in the output of queue list.
type item struct {
	ID       string `json:"id"`
	Value    string `json:"value"`
	Position uint64 `json:"position"`
	Taker    string `json:"taker,omitempty"`
	Token    uint64 `json:"token,omitempty"`
}

func itemsOf(entries []queue.Entry) []item {
	items := make([]item, len(entries))
	for i, e := range entries {
		items[i] = item(e)
	}
	return items
}

func printItems(w io.Writer, entries []queue.Entry) error {
	t := ui.NewTable(w, "#", "ID", "TAKER", "TOKEN", "ITEM")
	for i, e := range entries {
		token := ""
		if e.Taker != "" {
			token = strconv.FormatUint(e.Token, 10)
		}
		t.Row(i+1, e.ID, e.Taker, token, e.Value)
	}
	return t.Flush()
}
