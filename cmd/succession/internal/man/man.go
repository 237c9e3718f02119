// Package man is the subcommand man: it writes a manual page for each subcommand. The texts of
// this command are laid out as they stand, tables and all, so the pages keep their lines.
package man

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Command returns the subcommand man; version is shown at the foot of each page.
func Command(version string) *cobra.Command {
	return &cobra.Command{
		Use:   "man FOLDER",
		Short: "Write the manual pages into a folder",
		Long: `Write a manual page for each subcommand into FOLDER, which is made if there is none: the
texts of --help, for man(1).`,
		Example: `  succession man ~/.local/share/man/man1 && man succession-run`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("want one FOLDER, as in: succession man ~/.local/share/man/man1")
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			return write(args[0], cmd.Root(), version)
		},
	}
}

// write writes the page of c, and those of all below it.
func write(dir string, c *cobra.Command, version string) error {
	err := os.WriteFile(filepath.Join(dir, name(c)+".1"), []byte(page(c, version)), 0o644)
	for _, sub := range subcommands(c) {
		err = errors.Join(err, write(dir, sub, version))
	}
	return err
}

// subcommands returns those of c that have a page.
func subcommands(c *cobra.Command) (shown []*cobra.Command) {
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" {
			shown = append(shown, sub)
		}
	}
	return shown
}

// name returns the name of the page of a command, such as succession-queue-take.
func name(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// page returns the manual page of a command, for man(7).
func page(c *cobra.Command, version string) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line(`.TH %s 1 "" "succession %s" "succession"`, strings.ToUpper(escape(name(c))), escape(version))
	line(".SH NAME\n%s \\- %s", escape(name(c)), escape(c.Short))
	line(".SH SYNOPSIS\n\\fB%s\\fP", escape(c.UseLine()))
	if c.Long != "" {
		line(".SH DESCRIPTION")
		verbatim(&b, c.Long)
	}
	options(&b, "OPTIONS", c.LocalNonPersistentFlags(), c.PersistentFlags())
	options(&b, "OPTIONS OF ALL SUBCOMMANDS", c.InheritedFlags())
	if c.Example != "" {
		line(".SH EXAMPLES")
		verbatim(&b, c.Example)
	}
	var related []string
	if c.HasParent() {
		related = append(related, reference(c.Parent()))
	}
	for _, sub := range subcommands(c) {
		related = append(related, reference(sub))
	}
	if len(related) > 0 {
		line(".SH SEE ALSO\n%s", strings.Join(related, ",\n"))
	}
	return b.String()
}

func reference(c *cobra.Command) string { return `\fB` + escape(name(c)) + `\fP(1)` }

// options writes a section with the flags of the sets, if there are any.
func options(b *strings.Builder, title string, sets ...*pflag.FlagSet) {
	begun := false
	for _, set := range sets {
		set.VisitAll(func(f *pflag.Flag) {
			if f.Hidden {
				return
			}
			if !begun {
				fmt.Fprintf(b, ".SH %s\n", title)
				begun = true
			}
			flag := "--" + f.Name
			if f.Shorthand != "" {
				flag = "-" + f.Shorthand + ", " + flag
			}
			value, usage := pflag.UnquoteUsage(f)
			if value != "" {
				value = ` \fI` + escape(value) + `\fP`
			}
			if f.DefValue != "" && f.DefValue != "0" && f.DefValue != "0s" && f.DefValue != "false" && f.DefValue != "[]" {
				usage += " (default " + f.DefValue + ")"
			}
			fmt.Fprintf(b, ".TP\n\\fB%s\\fP%s\n%s\n", escape(flag), value, escape(usage))
		})
	}
}

// verbatim writes text with its own lines and indents.
func verbatim(b *strings.Builder, text string) {
	fmt.Fprintf(b, ".nf\n%s\n.fi\n", escape(strings.Trim(text, "\n")))
}

var escapes = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "^", `\(ha`, "~", `\(ti`, "`", `\(ga`)

// escape returns text as roff prints it, also if a line of it begins like a request.
func escape(text string) string {
	text = escapes.Replace(text)
	if strings.HasPrefix(text, ".") {
		text = `\&` + text
	}
	return strings.ReplaceAll(text, "\n.", "\n\\&.")
}
