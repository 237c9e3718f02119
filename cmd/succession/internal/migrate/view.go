package migrate

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/migrate"
)

// printStatus prints how far a migration is, after a headline if that is not empty. As JSON
// it prints all instead, which is the status or a plan that has the status in it.
func printStatus(w io.Writer, out ui.Format, headline string, s migrate.Status, all any) error {
	if out == ui.AsJSON {
		return ui.PrintJSON(w, all)
	}
	if headline != "" {
		fmt.Fprintln(w, ui.Visible(headline))
	}
	phase := string(s.Phase)
	if s.ID != "" {
		phase += ", migration " + s.ID
	}
	fmt.Fprintf(w, "%s: %s\n", s.Election, ui.Visible(phase))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "  from\t%s\n  to\t%s\n", ui.Visible(s.From), ui.Visible(s.To))
	if s.Phase == migrate.Begun || s.Phase == migrate.Asked {
		fmt.Fprintf(t, "  both\t%s\n", ui.Visible(BothURL(s.From, s.To)))
	}
	t.Flush()
	if len(s.OnFrom)+len(s.OnTo) > 0 {
		t := ui.NewTable(w, "ON", "ID", "KEY", "TOKEN", "MODE")
		for _, side := range []struct {
			on   string
			line []migrate.Candidate
		}{{"from", s.OnFrom}, {"to", s.OnTo}} {
			for _, c := range side.line {
				t.Row(side.on, c.ID, c.Key, c.Token, c.Mode)
			}
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	for _, why := range s.Blocks[:min(len(s.Blocks), ui.MaxRows)] {
		fmt.Fprintf(w, "blocked: %s\n", ui.Visible(ui.Clip(why)))
	}
	if more := ui.And(len(s.Blocks)-ui.MaxRows, "-o json prints all"); more != "" {
		fmt.Fprintf(w, "blocked: %s\n", more)
	}
	_, err := fmt.Fprintf(w, "next: %s\n", ui.Visible(s.Next))
	return err
}

// BothURL is the URL of a process that runs with both coordinators.
func BothURL(from, to string) string {
	plain := strings.NewReplacer("%3A", ":", "%2F", "/", "%2C", ",")
	return "migrate:?from=" + plain.Replace(url.QueryEscape(from)) + "&to=" + plain.Replace(url.QueryEscape(to))
}

// confirm asks at the terminal whether to cut over.
func confirm(ctx context.Context, cmd *cobra.Command, s migrate.Status) error {
	nobody := ui.Exitf(ui.ExitRefused, "nothing was changed: a cutover is the point of no return, and there is nobody at a terminal to ask; say --yes if you mean it")
	if !ui.IsTerminal(os.Stdin) {
		return nobody
	}
	w := cmd.ErrOrStderr()
	fmt.Fprintf(w, "After the cutover nobody leads %q on %s any more: this is the point of no return.\n", s.Election, s.From)
	for _, c := range s.OnFrom {
		if c.Mode != migrate.Both {
			fmt.Fprintf(w, "%s does not run with both coordinators, and will wait there for ever.\n", ui.Visible(c.String()))
		}
	}
	fmt.Fprint(w, "Go on? [y/N] ")
	answer := make(chan string, 1)
	go func() { // it ends with the process, if nobody answers
		defer close(answer)
		if line, err := bufio.NewReader(os.Stdin).ReadString('\n'); err == nil {
			answer <- line
		}
	}()
	select {
	case line, ok := <-answer:
		if !ok { // /dev/null looks like a terminal
			return nobody
		}
		if a := strings.ToLower(strings.TrimSpace(line)); a == "y" || a == "yes" {
			return nil
		}
		return ui.Exitf(ui.ExitRefused, "not confirmed; nothing was changed")
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
