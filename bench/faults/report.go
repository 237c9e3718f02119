package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// A report is everything that was measured.
type report struct {
	Date    string   `json:"date"`
	Session string   `json:"session"`
	N       int      `json:"n"`
	Machine []string `json:"machine"`
	Took    string   `json:"took"`
	Cells   []*cell  `json:"cells"`
}

// markdown writes the table and its notes.
func (r *report) markdown(w io.Writer) {
	fmt.Fprintln(w, "| fault | coordinator | library | two leaders | nobody leads, worst / median | the old leader is told |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|")
	shown := ""
	for _, c := range r.Cells {
		title := ""
		if c.Fault != shown {
			title = "**" + titleOf(c.Fault) + "**"
			shown = c.Fault
		}
		fmt.Fprintf(w, "| %s | %s %s | %s | %s | %s | %s |\n", title, titles[c.Coordinator], c.Server,
			strings.TrimSpace(c.Library+" "+c.Version), c.overlap(), c.vacancy(), c.told())
	}
	fmt.Fprintf(w, "\n%s, n = %d for each row, sessions of %s", r.Date, r.N, r.Session)
	for _, m := range r.Machine {
		fmt.Fprintf(w, ", %s", m)
	}
	fmt.Fprintf(w, ". It took %s.\n", r.Took)
	for _, c := range r.Cells {
		for _, e := range c.Errors {
			fmt.Fprintf(w, "\nNot measured: %s, %s on %s: %s\n", c.Fault, c.Library, c.Coordinator, e)
		}
	}
}

// short writes the times with two leaders, with a row for each library.
func (r *report) short(w io.Writer) {
	var columns []fault
	head, rule := "| leader elected by |", "|---|"
	for _, f := range faults {
		if f.short != "" {
			columns = append(columns, f)
			head += " " + f.short + " |"
			rule += "---|"
		}
	}
	fmt.Fprintln(w, head)
	fmt.Fprintln(w, rule)
	for _, l := range libraries {
		fmt.Fprintf(w, "| %s, on %s |", l.name, titles[l.coordinator])
		for _, f := range columns {
			fmt.Fprintf(w, " %s |", r.overlap(f, l))
		}
		fmt.Fprintln(w)
	}
}

// overlap returns the text of one row.
func (r *report) overlap(f fault, l library) string {
	for _, c := range r.Cells {
		if c.Fault == f.name && c.Coordinator == l.coordinator && c.Library == l.name {
			return c.overlap()
		}
	}
	return ""
}

func titleOf(name string) string {
	for _, f := range faults {
		if f.name == name {
			return f.title
		}
	}
	return name
}

// save writes the report as JSON.
func (r *report) save(path string) error {
	b, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}

// load reads what save wrote.
func load(path string) (*report, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := new(report)
	return r, json.Unmarshal(b, r)
}

func today() string { return time.Now().Format(time.DateOnly) }
