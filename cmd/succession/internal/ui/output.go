package ui

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/spf13/cobra"
)

// A Format is the value of -o.
type Format string

// The formats.
const (
	AsText Format = "text"
	AsJSON Format = "json"
)

func (f *Format) String() string { return string(*f) }
func (f *Format) Type() string   { return "text|json" }

func (f *Format) Set(s string) error {
	switch Format(s) {
	case AsText, AsJSON:
		*f = Format(s)
		return nil
	}
	return fmt.Errorf("use text or json")
}

// OutputFlag adds -o to cmd.
func OutputFlag(cmd *cobra.Command) *Format {
	f := AsText
	cmd.Flags().VarP(&f, "output", "o", "what to print")
	cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return &f
}

// PrintJSON prints v on one line.
func PrintJSON(w io.Writer, v any) error {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, Visible(strings.TrimSuffix(b.String(), "\n")))
	return err
}

// Visible returns s with its control characters escaped as in JSON, and those that show nothing
// but change what is shown, such as the order of letters: what somebody else chose, such as an
// id, is not to move the cursor of a terminal, look like another id, or worse.
func Visible(s string) string {
	var b strings.Builder
	for _, r := range s {
		if Hidden(r) {
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Hidden reports whether r is one of the characters that [Visible] escapes. Some are letters and marks for Unicode, such as
// the Hangul filler, and are shown by nothing all the same (Default_Ignorable_Code_Point).
func Hidden(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// VisibleLines returns a writer that writes to w what [Visible] makes of each line.
func VisibleLines(w io.Writer) io.Writer { return visibleLines{w} }

type visibleLines struct{ w io.Writer }

func (v visibleLines) Write(line []byte) (int, error) {
	if _, err := fmt.Fprintln(v.w, Visible(strings.TrimSuffix(string(line), "\n"))); err != nil {
		return 0, err
	}
	return len(line), nil
}

// PrintBytes prints b as it is. At a terminal it prints text instead, with control characters
// escaped and a newline at the end.
func PrintBytes(w io.Writer, b []byte) error {
	if IsTerminal(w) {
		var lines []string
		for line := range strings.SplitSeq(strings.TrimSuffix(string(b), "\n"), "\n") {
			lines = append(lines, Visible(line))
		}
		b = []byte(strings.Join(lines, "\n") + "\n")
	}
	_, err := w.Write(b)
	return err
}

// IsTerminal reports whether w is a terminal, or as good as one for the question
// of whom to write for.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// maxMessage is how many bytes of a message are shown. A record that others have written, which it may quote, may have 256 KiB.
const maxMessage = 8 << 10

// OneLine makes one line of a message of several, such as that of joined errors. What is longer than 8 KiB it cuts.
func OneLine(s string) string {
	return Visible(strings.NewReplacer("\n\n", "; ", "\n", "; ", "\t", "").Replace(strings.TrimSpace(clip(s, maxMessage))))
}

// Count says how many there are of what, whose name is given in the singular.
func Count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
