package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/succession-dev/succession/bench/internal/candidate"
)

// A report is everything that one run of this program measured.
type report struct {
	Date    string   `json:"date"`
	Session string   `json:"session"`
	N       int      `json:"n"`
	Jobs    int      `json:"jobs"`
	Machine []string `json:"machine"`
	Took    string   `json:"took"`
	// Load is the load average of a minute when measuring began, and after each row. Empty
	// where the system does not say.
	Load  []float64 `json:"load,omitempty"`
	Cells []*cell   `json:"cells"`
}

// noteLoad adds what /proc/loadavg says now. Where there is none the report has no load.
func (r *report) noteLoad() {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return
	}
	var minute float64
	if _, err := fmt.Sscan(string(b), &minute); err == nil {
		r.Load = append(r.Load, minute)
	}
}

// from says where the numbers come from.
func (r *report) from() string {
	parts := slices.Concat([]string{
		r.Date + ", one run of the program", fmt.Sprintf("n = %d for each row", r.N), "sessions of " + r.Session,
		fmt.Sprintf("rows at a time: %d", r.Jobs),
	}, r.Machine)
	s := strings.Join(parts, ", ") + ". It took " + r.Took
	if n := len(r.Load); n > 0 {
		s += fmt.Sprintf("; the load average was %.1f when it began, %.1f when it ended, and %.1f at most",
			r.Load[0], r.Load[n-1], slices.Max(r.Load))
	}
	return s + "."
}

// failed returns an error if any run could not be measured.
func (r *report) failed() error {
	if slices.ContainsFunc(r.Cells, func(c *cell) bool { return len(c.Errors) > 0 }) {
		return errors.New("not all runs could be measured; see below the tables")
	}
	return nil
}

// whole returns an error unless everything was measured, as often as it was to be. Kubernetes may
// be missing as a whole: its server takes minutes to build.
func (r *report) whole() error {
	kubernetes := slices.ContainsFunc(r.Cells, func(c *cell) bool { return c.Coordinator == candidate.Kubernetes })
	for _, f := range faults {
		for _, l := range libraries {
			if !f.possible(l) || l.Coordinator == candidate.Kubernetes && !kubernetes {
				continue
			}
			if c := r.of(f, l); c == nil || len(c.Runs)+len(c.Errors) != r.N {
				return fmt.Errorf("%s, %s: not measured %d times; only the report of one whole run is for showing", f.name, l.ID(), r.N)
			}
		}
	}
	return nil
}

// of returns the cell of a fault on a library, or nil.
func (r *report) of(f fault, l candidate.Library) *cell {
	for _, c := range r.Cells {
		if c.Fault == f.name && c.Coordinator == l.Coordinator && c.Library == l.Name {
			return c
		}
	}
	return nil
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
