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
before their host is stopped. ID may have a * for any characters, as in 'web-3*'.

Each leader is asked to resign in favour of the first candidate behind it whose id is another.
Where there is none, or none that is ready, it is not asked and leads on: the output says so. The
candidates stand in line again afterwards. To keep them from leading, stop them now.

Exit codes: 0 they lead nothing any more; 1 something could not be handed over; 124 somebody still led after
--wait, and is still asked to resign; 125 the coordinator could not be asked, or an
election could not be read: then nobody is asked to resign.

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
		matches := func(id string) bool { return matchStars(pattern, id) }
		return g.WithAll(func(ctx, opening context.Context, b backend.Backend) error {
			led, err := page.Led(opening, b)
			if err != nil {
				return err
			}
			code, handed := 0, 0
			for _, l := range led {
				if !matches(l.ID) {
					continue
				}
				h, leads := handOver(ctx, g, b, l.Name, matches, cmp.Or(*by, ui.WhoAmI()), *reason, *wait)
				if ctx.Err() != nil { // nobody waits for the others, who have not been asked
					return cmp.Or(h.err, context.Cause(ctx))
				}
				if !leads { // somebody else was faster
					continue
				}
				handed++
				code = max(code, ui.ExitCode(h.err, io.Discard))
				if *out == ui.AsJSON {
					err = ui.PrintJSON(cmd.OutOrStdout(), h)
				} else {
					_, err = fmt.Fprintln(cmd.OutOrStdout(), h)
				}
				if err != nil {
					return err
				}
			}
			switch {
			case code != 0:
				return ui.Exitf(code, "some of what %s leads was not handed over", pattern)
			case handed == 0 && *out != ui.AsJSON:
				fmt.Fprintf(cmd.OutOrStdout(), "%s leads nothing%s\n", ui.Visible(pattern), g.Where())
			}
			return nil
		})
	}
	return cmd
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
	return fmt.Sprintf("%s: %s resigned; %s leads (token %d)", h.Name, ui.Visible(h.Resigned.ID), ui.Visible(h.Next.ID), h.Next.Token)
}

// handOver asks the leader to resign in favour of the first candidate who is none of those, and waits until another leads.
// leads is false if the leader is none of those by now.
func handOver(ctx context.Context, g *connect.Flags, b backend.Backend, name string, those func(id string) bool, by, reason string, wait time.Duration) (h handover, leads bool) {
	h.Name = name
	fail := func(err error) (handover, bool) {
		h.Error, h.err = err.Error(), err
		return h, true
	}
	asking, cancel := g.WithTimeout(ctx)
	defer cancel()
	e := elect.New(b, name, nil)
	s, line, err := e.Line(asking)
	if err != nil {
		return fail(err)
	}
	if s.Vacant() || !those(s.Leader.ID) {
		return h, false
	}
	h.Resigned = leaderOf(s)
	heir := slices.IndexFunc(line, func(c elect.Candidate) bool { return !c.Pinned && c.NotReady == "" && !those(c.ID) })
	if heir < 0 {
		return fail(ui.Exitf(ui.ExitRefused, "%s leads on: nobody stands behind it who could", s.Leader.ID))
	}
	old, err := operate.New(b, name, by).AskToResign(asking, &operate.ResignOptions{
		Token: s.Leader.Token, To: line[heir].Key, Within: min(wait, 24*time.Hour), Reason: reason,
	})
	switch {
	case err == nil:
	case errors.Is(err, operate.ErrOtherLeader), errors.Is(err, elect.ErrNoLeader):
		return h, false
	case errors.Is(err, backend.ErrUnavailable), asking.Err() != nil:
		return fail(err)
	default:
		return fail(&ui.ExitError{Code: ui.ExitRefused, Err: err})
	}
	next, err := successor(ctx, e, old, wait, func(s elect.State) bool { return !s.Vacant() && !those(s.Leader.ID) })
	if err != nil {
		return fail(err)
	}
	h.Next = leaderOf(next)
	return h, true
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
