package ui

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	// MaxRows is how many rows a table shows. Whoever may stand in a line may stand there thousands of times.
	MaxRows = 1000
	// maxText is how many bytes of one text of others are shown, as they are shown. An id or a value may have 4 KiB.
	maxText = 512
)

// Clip returns the beginning of a text that others have written, and how long all of it is, if it is too long to be shown.
func Clip(s string) string { return clip(s, maxText) }

// clip is Clip with another bound: of what [Visible] makes of the text, which may be several times as long.
func clip(s string, most int) string {
	room := 0
	for i, r := range s {
		if room += utf8.RuneLen(r); Hidden(r) {
			room += len(`\u0000`)*utf16.RuneLen(r) - utf8.RuneLen(r)
		}
		if room > most {
			return fmt.Sprintf("%s... (%d bytes in all)", strings.ToValidUTF8(s[:i], ""), len(s))
		}
	}
	return s
}

// And says how many more there are than are shown, and where all are; "" if all are shown.
func And(more int, where string) string {
	if more <= 0 {
		return ""
	}
	return fmt.Sprintf("and %d more: %s", more, where)
}

// A Table prints rows in columns, [MaxRows] at most, with texts that [Visible] and [Clip] have made.
type Table struct {
	w    io.Writer
	t    *tabwriter.Writer
	rows int
}

// NewTable begins a table with the titles of its columns.
func NewTable(w io.Writer, titles ...string) *Table {
	t := &Table{w: w, t: tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	fmt.Fprintln(t.t, strings.Join(titles, "\t"))
	return t
}

// Row adds a row.
func (t *Table) Row(cells ...any) {
	if t.rows++; t.rows > MaxRows {
		return
	}
	texts := make([]string, len(cells))
	for i, c := range cells {
		texts[i] = Visible(Clip(fmt.Sprint(c)))
	}
	fmt.Fprintln(t.t, strings.Join(texts, "\t"))
}

// Flush prints the rows, and says how many more there are, which only -o json prints.
func (t *Table) Flush() error {
	err := t.t.Flush()
	if more := And(t.rows-MaxRows, "-o json prints all"); err == nil && more != "" {
		_, err = fmt.Fprintln(t.w, more)
	}
	return err
}
