package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/cmd/succession/internal/connect"
	"github.com/succession-dev/succession/cmd/succession/internal/page"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
)

func newDrain(g *connect.Flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "drain ID",
		Short: "Have others lead all that a candidate leads",
		Long: `Hand over all elections and locks below --url that candidates with this id lead, one after the other,
before their host is stopped. ID may have a * for any characters, as in 'web-3*'. A candidate of
another program that has no id goes by its key.

Groups, queues, and locks that several hold (--slots, --shared) are left alone. A line NAME-turn,
NAME-waiting or NAME-idle without an acknowledgement and without a history is taken for one of
those who wait for an item, a slot or a task, and is left alone too.

Each leader is asked to resign in favour of the first candidate behind it whose id is another.
Where there is none, or none that is ready, it is not asked and leads on: the output says so. The
candidates stand in line again afterwards. To keep them from leading, stop them now.

Then it looks again, and hands over what they have come to lead meanwhile. It hands over each
election once: if they lead one again, as when two hosts are drained at once, the output says so.

Exit codes: 0 they lead nothing any more; 1 something could not be handed over, or they lead it again;
124 somebody still led after --wait, and is still asked to resign; 125 the coordinator could not be
asked, or an election could not be read: if it is so from the beginning, nobody is asked to resign.

With -o json it prints one object a line:

  name      the election
  resigned  who led, as in "succession leader -o json"
  next      who leads now; null where it was not handed over
  error     why not; left out if it was`,
		Example: `  succession drain web-3 --reason "kernel update"
  succession drain 'web-3*' -o json | jq -r 'select(.error).name'`,
		Args:              ui.One("candidate", "web-3"),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	out := ui.OutputFlag(cmd)
	f := cmd.Flags()
	wait := f.Duration("wait", 30*time.Second, "how long to wait for each until another leads")
	reason := f.String("reason", "drained", "what those are to know who look, in one line")
	by := f.String("by", "", "who asks (default user@host)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		pattern := args[0]
		if pattern == "" {
			return errors.New("the id is empty: name a candidate, such as web-3")
		}
		return g.WithAll(func(ctx, _ context.Context, b backend.Backend) error {
			d := &draining{g: g, b: b, pattern: pattern, by: cmp.Or(*by, ui.WhoAmI()), reason: *reason, wait: *wait}
			code := 0
			err := d.all(ctx, func(h handover) error {
				code = max(code, ui.ExitCode(h.err, io.Discard))
				if *out == ui.AsJSON {
					return ui.PrintJSON(cmd.OutOrStdout(), h)
				}
				_, err := fmt.Fprintln(cmd.OutOrStdout(), h)
				return err
			})
			switch {
			case err != nil:
				return err
			case code != 0:
				return ui.Exitf(code, "some of what %s leads was not handed over", pattern)
			case len(d.told) == 0 && *out != ui.AsJSON:
				fmt.Fprintf(cmd.OutOrStdout(), "%s leads nothing%s\n", ui.Visible(pattern), g.Where())
			}
			return nil
		})
	}
	return cmd
}

// A draining hands over what those lead whose ids match a pattern.
type draining struct {
	g                   *connect.Flags
	b                   backend.Backend
	pattern, by, reason string
	wait                time.Duration

	told map[string]handover // by election
}

// all hands over one election after the other, and tells of each. Meanwhile they may come to lead others: so it looks again, until it finds
// nothing more to hand over. It hands over an election once. Two drains that hand over to each other would not end otherwise.
func (d *draining) all(ctx context.Context, tell func(handover) error) error {
	d.told = make(map[string]handover)
	for more := true; more; {
		led, err := d.led(ctx)
		if err != nil {
			return err
		}
		more = false
		for _, l := range led {
			h, was := d.told[l.Name]
			leads := true
			switch {
			case was && h.err != nil: // told already
				continue
			case was:
				h.fail(ui.Exitf(ui.ExitRefused, "%s leads again; drain once more", l.ID))
			default:
				h, leads = d.handOver(ctx, l.Name)
				if why := context.Cause(ctx); why != nil && h.err != nil { // nobody waits for the others, who have not been asked
					if errors.Is(h.err, why) {
						why = h.err
					}
					return why
				}
			}
			if !leads { // somebody else was faster
				continue
			}
			d.told[l.Name], more = h, true
			if err := tell(h); err != nil {
				return err
			}
		}
	}
	return nil
}

// led returns who leads, of the elections that one of those leads who are drained.
func (d *draining) led(ctx context.Context) ([]page.Leading, error) {
	ctx, cancel := d.g.WithTimeout(ctx)
	defer cancel()
	all, err := page.Led(ctx, d.b)
	return slices.DeleteFunc(all, func(l page.Leading) bool { return !matchStars(d.pattern, l.ID) }), err
}

// A handover is what became of one election.
type handover struct {
	Name string `json:"name"`
	resignation
	Error string `json:"error,omitempty"`

	err error
}

func (h handover) String() string {
	if h.Error != "" {
		return fmt.Sprintf("%s: %s", h.Name, ui.Visible(h.Error))
	}
	return fmt.Sprintf("%s: %s resigned; %s leads (token %d)", h.Name, h.Resigned.name(), h.Next.name(), h.Next.Token)
}

// fail notes why the election was not handed over.
func (h *handover) fail(err error) {
	h.Next, h.Error, h.err = nil, err.Error(), err
}

// handOver asks the leader to resign in favour of the first candidate who is not to be drained too, and waits until another leads. If
// that is one of those too, because the candidate has gone, it asks again. leads is false if the leader is none of those who are drained by now.
func (d *draining) handOver(ctx context.Context, name string) (h handover, leads bool) {
	h.Name = name
	e := elect.New(d.b, name, nil)
	var old elect.Leader // the last who was asked
	for until := time.Now().Add(d.wait); ; {
		first := h.Resigned
		asked, err := d.ask(ctx, e, &h)
		h.Resigned = cmp.Or(first, h.Resigned)
		if err != nil {
			h.fail(err)
			return h, true
		}
		if old = cmp.Or(asked, old); old == (elect.Leader{}) {
			return h, false
		}
		next, err := successor(ctx, e, old, time.Until(until).Round(time.Millisecond), false)
		if err != nil {
			h.fail(err)
			return h, true
		}
		if !d.drains(next.Leader.Candidate) {
			h.Next = leaderOf(next)
			return h, true
		}
	}
}

// drains reports whether what the candidate leads is to be handed over.
func (d *draining) drains(c elect.Candidate) bool {
	return matchStars(d.pattern, ui.NameOf(c.ID, c.Key))
}

// ask returns who was asked to resign, and notes it in h. It is the zero Leader if the leader is none of those who are drained.
func (d *draining) ask(ctx context.Context, e *elect.Election, h *handover) (elect.Leader, error) {
	ctx, cancel := d.g.WithTimeout(ctx)
	defer cancel()
	for {
		s, line, err := e.Line(ctx)
		if err != nil || s.Vacant() || !d.drains(s.Leader.Candidate) {
			return elect.Leader{}, err
		}
		h.Resigned = leaderOf(s)
		heir := slices.IndexFunc(line, func(c elect.Candidate) bool { return !c.Pinned && c.NotReady == "" && !d.drains(c) })
		if heir < 0 {
			return elect.Leader{}, ui.Exitf(ui.ExitRefused, "%s leads on: nobody stands behind it who could", h.Resigned.name())
		}
		old, err := operate.New(d.b, e.Name(), d.by).AskToResign(ctx, &operate.ResignOptions{
			Token: s.Leader.Token, To: line[heir].Key, Within: min(d.wait, 24*time.Hour), Reason: d.reason,
		})
		switch {
		case errors.Is(err, operate.ErrOtherLeader): // who may be one of those too
		case errors.Is(err, elect.ErrNoLeader):
			return elect.Leader{}, nil
		case err == nil, errors.Is(err, backend.ErrUnavailable), errors.Is(err, backend.ErrSessionEnded), ctx.Err() != nil:
			return old, err
		default:
			return elect.Leader{}, &ui.ExitError{Code: ui.ExitRefused, Err: err}
		}
	}
}

// matchStars reports whether s is the pattern, in which each * stands for any bytes.
func matchStars(pattern, s string) bool {
	parts := strings.Split(pattern, "*")
	last := len(parts) - 1
	rest, ok := strings.CutPrefix(s, parts[0])
	if !ok || last == 0 {
		return ok && rest == ""
	}
	for _, part := range parts[1:last] {
		if _, rest, ok = strings.Cut(rest, part); !ok {
			return false
		}
	}
	return strings.HasSuffix(rest, parts[last])
}
