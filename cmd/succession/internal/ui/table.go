package ui

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

const (
	// MaxRows is how many rows a table shows. Whoever may stand in a line may stand there thousands of times.
	MaxRows = 1000
	// maxText is how many bytes of one text of others are shown. An id or a value may have 4 KiB.
	maxText = 512
)

// Clip returns the beginning of a text that others have written, and how long all of it is, if it is too long to be shown.
func Clip(s string) string { return clip(s, maxText) }

func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return fmt.Sprintf("%s... (%d bytes in all)", strings.ToValidUTF8(s[:most], ""), len(s))
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
