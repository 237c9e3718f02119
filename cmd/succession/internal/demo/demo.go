// Package demo is the subcommand demo: some candidates stand in one line, and a table
// shows what each of them does.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/cmd/succession/internal/connect"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/memory"
)

// election is the line that demo stands in.
const election = "succession-demo"

// most keeps the demo's table on a screen.
const most = 20

// Command returns the subcommand demo.
func Command(g *connect.Flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show an election at work, in one terminal",
		Long: `Let some candidates stand in one line, each with a client of its own, and show what
happens: who joins, whom each one watches, who leads with which token, and how leadership
goes down the line as one leader after the other leaves.

It needs nothing, ends by itself, and leaves nothing behind: without --url the
coordinator is this machine's kernel, in a temporary folder; where that is not Linux, it is
inside of this process. With --url it is shown on
that coordinator, in the election "succession-demo".

With -o json each step is a line with an object, and a summary is the last line:

  seconds    since the beginning
  candidate  its number
  event      "joined", "watching", "elected", "left" or "retrying"
  key        its place; joined only
  behind     whom it watches; left out if nobody is in front
  token      elected only
  cause      retrying only

  {"summary":{"leaders":5,"exits":4,"woken":4}}`,
		Example: `  succession demo
  succession demo --candidates 3 --hold 2s
  succession demo --url zookeeper://127.0.0.1:2181/`,
		Args: ui.NoArgs,
	}
	out := ui.OutputFlag(cmd)
	n := cmd.Flags().Int("candidates", 5, "how many candidates stand in line")
	hold := cmd.Flags().Duration("hold", 700*time.Millisecond, "how long each one leads")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case *n < 1 || *n > most:
			return fmt.Errorf("--candidates %d: give a number from 1 to %d", *n, most)
		case *hold < 0:
			return fmt.Errorf("--hold %v is negative", *hold)
		}
		d := &demo{url: g.URL, open: connect.Open, n: *n, hold: *hold, out: cmd.OutOrStdout(), form: *out}
		if d.url == connect.DefaultURL {
			dir, err := os.MkdirTemp("", "succession-demo-")
			if err != nil {
				return fmt.Errorf("a folder for the demo: %w", err)
			}
			defer os.RemoveAll(dir)
			d.url += dir
			d.anywhere()
		}
		return ui.UntilSignal(d.run)
	}
	return cmd
}

// A demo is one showing: candidates, a goroutine each, and the one that prints what
// they do.
type demo struct {
	url  string
	open func(ctx context.Context, url string) (backend.Backend, error)
	n    int
	hold time.Duration
	out  io.Writer
	form ui.Format

	steps    chan step
	ready    chan struct{} // closed when all stand in line
	complete bool          // ready is closed
}

// step is an event of a candidate, or one of those below.
type step struct {
	trace.Event
	who int // from 1
	at  time.Time
}

// What elections do not tell.
const (
	woken trace.Kind = -1 - iota // the one in front has gone
	done                         // its goroutine is about to end; Err is why
)

// anywhere makes the demo one in this process, where the kernel cannot be a coordinator.
func (d *demo) anywhere() {
	kernel := d.open
	var c *memory.Coordinator
	d.open = func(ctx context.Context, url string) (backend.Backend, error) {
		if c == nil {
			b, err := kernel(ctx, url)
			if !errors.Is(err, errors.ErrUnsupported) {
				return b, err
			}
			c, d.url = memory.New(nil), "memory:"
		}
		return c.Client(""), nil
	}
}

func (d *demo) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if err := d.vacant(ctx); err != nil {
		return err
	}
	// A candidate takes a handful of steps; room for all of them keeps the
	// printing from holding up an election.
	d.steps = make(chan step, 16*d.n)
	d.ready = make(chan struct{})
	table := newTable(d.out, d.form, d.n, d.url)

	started, ended := 0, 0
	next := func() {
		started++
		who := started
		go func() {
			err := d.candidate(ctx, who)
			d.steps <- step{Event: trace.Event{Kind: done, Err: err}, who: who}
		}()
	}
	var failed error
	// One joins after the other, so that the line is in the order of the numbers.
	for next(); ended < started; {
		s := <-d.steps
		table.add(s)
		switch {
		case s.Kind == done:
			ended++
			if s.Err != nil && failed == nil {
				failed = s.Err
				cancel(s.Err)
			}
		case s.Kind != trace.Waiting && s.Kind != trace.Elected || s.who != started || failed != nil:
		case started < d.n:
			next()
		case !d.complete:
			d.complete = true
			close(d.ready)
		}
	}
	if failed != nil {
		return failed
	}
	return table.sum()
}

// vacant returns an error where somebody stands in the demo's line already.
func (d *demo) vacant(ctx context.Context) error {
	b, err := d.open(ctx, d.url)
	if err != nil {
		return err
	}
	defer b.Close()
	_, line, err := elect.New(b, election, nil).Line(ctx)
	if err == nil && len(line) > 0 {
		err = fmt.Errorf("%d candidates stand in line for %q already; wait until that demo has ended", len(line), election)
	}
	return err
}

// candidate stands in line, leads for a moment, and leaves.
func (d *demo) candidate(ctx context.Context, who int) (err error) {
	b, err := d.open(ctx, d.url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	tell := func(ev trace.Event) { d.steps <- step{ev, who, time.Now()} }
	counted := &wakeCounter{b, func() { tell(trace.Event{Kind: woken}) }}
	e := elect.New(counted, election, &elect.Options{ID: strconv.Itoa(who), Trace: tell})
	t, err := e.Campaign(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Resign(ctx)) }()
	select {
	case <-d.ready:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d.hold)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-t.Context().Done():
		return context.Cause(t.Context())
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// wakeCounter is a backend that tells when a wait for another's departure ends, so
// that the demo counts what it claims.
type wakeCounter struct {
	backend.Backend
	woken func()
}

func (w *wakeCounter) Session(ctx context.Context) (backend.Session, error) {
	s, err := w.Backend.Session(ctx)
	if err != nil {
		return nil, err
	}
	return wakeSession{s, w.woken}, nil
}

type wakeSession struct {
	backend.Session
	woken func()
}

func (s wakeSession) WatchPlace(ctx context.Context, m backend.Member, p *backend.Place) error {
	waits := !p.First
	err := s.Session.WatchPlace(ctx, m, p)
	if err == nil && waits {
		s.woken()
	}
	return err
}
