package page

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/cmd/succession/internal/connect"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
)

// ListCommand returns the command ls, which prints what the list of the page shows.
func ListCommand(g *connect.Flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "Print all elections",
		Long: `Print all elections below --url, those in trouble first: who leads, since when, how many stand
in line, and how it stands. It is what the list of "succession ui" shows: locks, groups and
queues are in it too. An election in whose line nobody stands is shown if it has a
header or a history, on coordinators that can tell at once: etcd, Consul, PostgreSQL, Kubernetes
and local:.

SINCE is empty where nobody has written that down; see "succession run --history".

With --watch it goes on, and prints a line at each change, until it is interrupted.

With -o json it prints one object a line:

  time     when that was seen
  name     the election
  kind     election, or lock and the like that the line belongs to
  leader   who leads; left out if nobody does
  token    its fencing token; left out if nobody leads
  since    when that began; left out if nobody knows
  stand    how many stand in line
  state    how it stands, as on the page
  trouble  whether somebody has to look at it`,
		Example: `  succession ls
  succession ls -o json | jq -r 'select(.trouble).name'
  succession ls --watch`,
		Args:              ui.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	watch := cmd.Flags().Bool("watch", false, "go on, and print each change")
	out := ui.OutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return g.WithAll(func(ctx, opening context.Context, b backend.Backend) error {
			w := newWatcher(b, nil, slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil)))
			defer w.close()
			if *watch {
				return w.print(ctx, cmd.OutOrStdout(), *out)
			}
			rows, err := w.all(opening)
			if err != nil {
				return err
			}
			return printRows(cmd.OutOrStdout(), *out, rows)
		})
	}
	return cmd
}

// A Leading is who leads one of all elections, or holds one of all locks.
type Leading struct {
	Name, ID string
}

// all returns the rows of all lines, however many there are.
func (w *watcher) all(ctx context.Context) ([]row, error) {
	w.most = math.MaxInt
	if err := w.round(ctx); err != nil {
		return nil, err
	}
	rows, _ := w.changed(0)
	return rows, nil
}

// Led returns who leads, of all elections of b in which somebody does, by their names. It fails if one of them cannot be read.
func Led(ctx context.Context, b backend.Backend) (all []Leading, err error) {
	w := newWatcher(b, nil, slog.New(slog.DiscardHandler))
	defer w.close()
	s, err := b.Session(ctx)
	if err == nil {
		err = s.Refresh(ctx)
	}
	if err != nil {
		return nil, err
	}
	rows, err := w.all(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range sortedKeys(w.heads) {
		if err := w.heads[name].err; err != nil {
			return nil, fmt.Errorf("who leads %s cannot be read: %w", name, err)
		}
	}
	for _, r := range rows {
		if h := w.heads[r.Line]; r.Kind == kindElection && !h.now.Vacant() && !h.waits(r.Line) {
			all = append(all, Leading{r.Name, nameOf(h.now.Leader.Candidate)})
		}
	}
	slices.SortFunc(all, func(a, b Leading) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// A listed is a row as ls prints it.
type listed struct {
	Time    time.Time `json:"time"`
	Name    string    `json:"name"`
	Kind    kind      `json:"kind"`
	Leader  string    `json:"leader,omitempty"`
	Token   uint64    `json:"token,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	Stand   int       `json:"stand"`
	State   string    `json:"state"`
	Trouble bool      `json:"trouble"`
}

func listedOf(r row) listed {
	l := listed{time.Now(), r.Name, r.Kind, r.Who, r.Token, time.Time{}, r.Stand, r.State, r.Mood == bad}
	if r.Since != 0 {
		l.Since = time.UnixMilli(r.Since)
	}
	return l
}

func (l listed) since() string {
	if l.Since.IsZero() {
		return ""
	}
	return l.Since.Format(time.DateTime)
}

// changed returns the rows that have changed after a number, those in trouble first, and the newest number.
func (w *watcher) changed(after uint64) (rows []row, seq uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stale {
		w.refold()
	}
	for _, r := range w.rows {
		if r.seq > after {
			rows = append(rows, r.row)
		}
	}
	severity := map[mood]int{bad: 0, busy: 1, good: 2, quiet: 2}
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(severity[a.Mood], severity[b.Mood]), strings.Compare(a.Name, b.Name), strings.Compare(a.Line, b.Line))
	})
	return rows, w.seq
}

// isReady reports whether the list is ready.
func (w *watcher) isReady() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	ready, _ := w.known()
	return ready
}

// printRows prints the rows, as a table or as one object a line.
func printRows(to io.Writer, as ui.Format, rows []row) error {
	if as == ui.AsJSON {
		for _, r := range rows {
			if err := ui.PrintJSON(to, listedOf(r)); err != nil {
				return err
			}
		}
		return nil
	}
	t := ui.NewTable(to, "NAME", "LEADER", "SINCE", "IN LINE", "STATE")
	for _, r := range rows {
		l := listedOf(r)
		t.Row(l.Name, l.Leader, l.since(), l.Stand, l.State)
	}
	return t.Flush()
}

// print prints each change of a line, however many there are, until ctx ends.
func (w *watcher) print(ctx context.Context, to io.Writer, as ui.Format) error {
	w.most = math.MaxInt
	defer w.looks.need()()
	for seq := uint64(0); ; {
		bell := w.bell.next()
		var rows []row
		if w.isReady() {
			rows, seq = w.changed(seq)
		}
		if as == ui.AsJSON {
			if err := printRows(to, as, rows); err != nil {
				return err
			}
		} else {
			for _, r := range rows {
				who := cmp.Or(r.Who, "nobody")
				if _, err := fmt.Fprintf(to, "%s  %s: %s, %s, %d in line\n", time.Now().Format(time.TimeOnly), r.Name, ui.Visible(ui.Clip(who)), ui.Visible(ui.Clip(r.State)), r.Stand); err != nil {
					return err
				}
			}
		}
		select {
		case <-bell:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
