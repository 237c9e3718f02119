package suite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/cmd/succession/internal/connect"
	"github.com/succession-dev/succession/cmd/succession/internal/suite/target"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/conformance"
	"github.com/succession-dev/succession/conformance/linear"
)

// clearBound is how long clearing up may take after the suite, also when that was
// interrupted.
const clearBound = 30 * time.Second

// A suite is one run of the conformance suite.
type suite struct {
	url      string
	options  target.Options
	faults   []string
	rules    []conformance.Rule
	parallel int
	report   string // a folder; empty for none
	record   time.Duration
}

// Command returns the subcommand conformance.
func Command(g *connect.Flags) *cobra.Command {
	var s suite
	cmd := &cobra.Command{
		Use:   "conformance",
		Short: "Find out whether a coordinator keeps what is promised",
		Long: `Exercise the conformance suite on the coordinator that --url names: does it, with its
version and its settings, keep the laws that an election rests on?

The suite's elections have names of their own, which begin with --prefix, and are
deleted afterwards. No server is touched, and nobody else's election, key or session.
Load is light: some dozens of clients at a time.

By itself it exercises the rules that need no fault. --faults adds more of them; each
hits the suite's own clients and elections only:

  cut      holds back all traffic of a client, in a proxy inside this process
  mute     the same, for what the client sends
  deafen   the same, for what the servers send
  sever    resets each connection of a client as soon as it carries a request
  hide     resets a client's connections, and lets it make no other for a while
  kill     the same, for good
  bytes    breaks nothing: counts what passes between a client and the servers
  process  starts this command again as a candidate, and stops, continues and kills it
  remove   deletes a member from the line, as an operator may
  drop     deletes an election as a whole
  all      as many of these as are possible there

A rule that needs anything else is reported as not wired, such as one for which servers
have to be restarted or paused: that is for a test that owns its servers, with package
conformance. A rule that cannot be exercised on such a coordinator is impossible. A rule
is not judged if this machine or the coordinator was too busy in each of three trials, and
nothing was seen that must never happen. To find that out, it deletes a record that is not
there, up to forty times a second.

With --histories 1m it exercises no rule. It records for a minute what clients do to records,
to the items of a queue and to a lock while the faults strike, and proves that what they are
told fits an order in which one thing happens after the other.

How long it takes depends on the session time, which the URL can choose (ttl=).

Exit codes: 0 every rule that was exercised has passed, every history fits; 1 one has
failed; 125 too little was found out: the coordinator could not be reached, no rule was
exercised, or more than one in twenty was not judged, and more than one in all.

With -o json each rule is one object on a line, as soon as it is done, and the last
line is an object with the key "summary". With --histories each history is one object.`,
		Example: `  succession conformance --url zookeeper://zk1:2181,zk2:2181/app
  succession conformance --url 'etcd://h1:2379/?ttl=2s' --faults all --report report
  succession conformance --rule 'L3*' --rule G8
  succession conformance --faults all --histories 10m
  succession conformance --list`,
		Args: ui.NoArgs,
	}
	f := cmd.Flags()
	patterns := f.StringArray("rule", nil, "exercise only rules whose ID or group matches this pattern, such as 'L3*' or G8; may be repeated")
	list := f.Bool("list", false, "print the rules and what they need, and exercise none")
	f.StringSliceVar(&s.faults, "faults", nil, "the faults that may be made: "+faultNames()+"; or all")
	f.IntVar(&s.parallel, "parallel", 4, "how many rules to exercise at once")
	f.StringVar(&s.options.Prefix, "prefix", "", "what the names of all elections begin with; the default is succession-conformance-RANDOM")
	f.DurationVar(&s.options.Slack, "slack", 0, "how much later than its session time the coordinator may end a session; the default fits the kind of coordinator")
	f.DurationVar(&s.options.Latency, "latency", 0, "what a healthy call may take at the very most; the default is 2s")
	f.StringVar(&s.report, "report", "", "also write the whole report to this folder, as report.json, with the history of each rule that has candidates, as JSON lines and as a picture")
	f.DurationVar(&s.record, "histories", 0, "in place of rules, record for so long what clients are told while the faults strike, and prove that it fits an order")
	cmd.MarkFlagsMutuallyExclusive("histories", "rule")
	cmd.MarkFlagsMutuallyExclusive("histories", "list")
	cmd.MarkFlagsMutuallyExclusive("histories", "report")
	cmd.RegisterFlagCompletionFunc("rule", completeRule)
	cmd.RegisterFlagCompletionFunc("faults", connect.CompleteList(strings.Split(faultNames()+", all", ", ")...))
	out := ui.OutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if s.rules, err = selectRules(*patterns); err != nil {
			return err
		}
		view := newView(*out, cmd.OutOrStdout(), cmd.ErrOrStderr(), s.rules)
		if *list {
			return view.list()
		}
		switch {
		case s.parallel < 1:
			return fmt.Errorf("--parallel %d: give a number from 1", s.parallel)
		case s.options.Slack < 0 || s.options.Latency < 0 || s.record < 0:
			return errors.New("--slack, --latency and --histories must not be negative")
		}
		s.url, s.options.Stand = g.URL, again
		if s.options.Faults, err = s.chosenFaults(); err != nil {
			return err
		}
		return ui.UntilSignal(func(ctx context.Context) error {
			if s.record > 0 {
				return s.histories(ctx, g, view)
			}
			report, err := s.run(ctx, g, view)
			return verdict(ctx, report, err)
		})
	}
	return cmd
}

// chosenFaults returns what --faults means.
func (s *suite) chosenFaults() ([]conformance.Fault, error) {
	var chosen []conformance.Fault
	for _, name := range s.faults {
		if name == "all" {
			return target.Possible(s.url)
		}
		i := slices.IndexFunc(target.Faults, func(f conformance.Fault) bool { return strings.EqualFold(string(f), name) })
		if i < 0 {
			return nil, fmt.Errorf("--faults %q: known are %s and all", name, faultNames())
		}
		chosen = append(chosen, target.Faults[i])
	}
	return chosen, nil
}

// faultNames lists what --faults knows.
func faultNames() string {
	names := make([]string, len(target.Faults))
	for i, f := range target.Faults {
		names[i] = strings.ToLower(string(f))
	}
	return strings.Join(names, ", ")
}

// run exercises the rules, clears up, and writes the report to its folder, if one is
// named. It returns the report, if there is one, also with an error.
func (s *suite) run(ctx context.Context, g *connect.Flags, view *view) (_ *conformance.Report, err error) {
	var report *os.File
	if s.report != "" { // before the work, which may take minutes
		if report, err = createReport(s.report); err != nil {
			return nil, fmt.Errorf("--report: %w", err)
		}
		defer func() {
			if report.Close() == nil { // it was not written
				os.Remove(report.Name())
			}
		}()
	}
	t, err := s.open(ctx, g)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	h := t.Harness()
	h.Parallel, h.Report = s.parallel, s.report
	for _, r := range s.rules {
		h.Only = append(h.Only, r.ID)
	}
	able, why := exercised(&h, s.rules)
	if len(able) == 0 {
		slices.Sort(why)
		return nil, fmt.Errorf("%s: none of the rules that were asked for can be exercised: %s", coordinator.Redact(s.url), strings.Join(slices.Compact(why), "; "))
	}
	view.begin(t, able, estimate(able, h.TTL, h.Slack, s.parallel))
	r := conformance.Check(ctx, h, view.add)
	err = clearUp(ctx, t)
	view.end(r)
	if report != nil {
		err = errors.Join(err, writeReport(report, r))
	}
	return r, errors.Join(err, view.wrong)
}

// open opens the target of the suite.
func (s *suite) open(ctx context.Context, g *connect.Flags) (*target.Target, error) {
	ctx, cancel := g.WithTimeout(ctx)
	defer cancel()
	b, err := connect.Open(ctx, s.url) // says best what is wrong with the URL
	if err != nil {
		return nil, err
	}
	if err := b.Close(); err != nil {
		return nil, err
	}
	return target.Open(ctx, s.url, s.options)
}

// clearUp deletes what the suite has left, also if ctx has ended.
func clearUp(ctx context.Context, t *target.Target) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), clearBound)
	defer cancel()
	return t.Clear(ctx)
}

// histories records histories, clears up, and shows whether each fits an order.
func (s *suite) histories(ctx context.Context, g *connect.Flags, view *view) error {
	t, err := s.open(ctx, g)
	if err != nil {
		return err
	}
	defer t.Close()
	view.records(t, s.record)
	all, err := linear.Record(ctx, t.Harness(), &linear.Options{For: s.record, Log: view.struck})
	if err = ended(ctx, err, clearUp(ctx, t)); ctx.Err() != nil {
		return err
	}
	fits := true
	for _, h := range all {
		fits = view.history(h) && fits
	}
	if err = errors.Join(err, view.wrong); !fits {
		return &ui.ExitError{Code: ui.ExitNonconforming, Err: err}
	}
	return err
}

// ended returns how a recording has ended that failed with err, and whose clearing up failed with left. Whoever interrupts is told of
// what is left alone.
func ended(ctx context.Context, err, left error) error {
	switch {
	case ctx.Err() == nil:
		return errors.Join(err, left)
	case left != nil:
		return left
	}
	return context.Cause(ctx)
}

const unfinished = ".new" // ends the name of a report until that is whole

// createReport creates the file of the report in dir, beside an earlier one, which stays until [writeReport].
func createReport(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return os.Create(filepath.Join(dir, "report.json"+unfinished))
}

// writeReport gives the report its name. If only that fails, the error has the name that it has.
func writeReport(f *os.File, r *conformance.Report) error {
	enc := json.NewEncoder(f)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := errors.Join(enc.Encode(r), f.Close()); err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("--report: %w", err)
	}
	if err := os.Rename(f.Name(), strings.TrimSuffix(f.Name(), unfinished)); err != nil {
		return fmt.Errorf("--report: it is in %s: %w", f.Name(), err)
	}
	return nil
}

// verdict is the command's result, after a run with this report, if it came to one, and err. That a rule has failed counts more than
// what went wrong besides.
func verdict(ctx context.Context, r *conformance.Report, err error) error {
	switch {
	case r != nil && r.Count(conformance.Failed) > 0:
		return &ui.ExitError{Code: ui.ExitNonconforming, Err: err}
	case err != nil:
		return err
	case r.Invalid != "":
		return errors.New(r.Invalid)
	case r.Interrupted:
		return context.Cause(ctx)
	}
	return r.Err()
}
