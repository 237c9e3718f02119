package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/succession-dev/succession/bench/internal/candidate"
	"github.com/succession-dev/succession/bench/internal/program"
)

// A report is everything that was measured into one file, by one run of this program or by several.
type report struct {
	Session  string    `json:"session"`
	N        int       `json:"n"` // runs that each row was to have at last
	Sittings []sitting `json:"sittings"`
	Cells    []*cell   `json:"cells"`
}

// A sitting is one run of this program.
type sitting struct {
	Date    string   `json:"date"`
	Commit  string   `json:"commit,omitempty"` // of this project; empty is unknown
	Seed    uint32   `json:"seed,omitempty"`   // of -seed
	Jobs    int      `json:"jobs"`
	Machine []string `json:"machine"`
	Took    string   `json:"took"`
	Load    load     `json:"load,omitzero"`
}

// A load is what the load average of a minute was. It is zero where the system does not say.
type load struct {
	Begin float64 `json:"begin"`
	End   float64 `json:"end"`
	Most  float64 `json:"most"`
}

// note notes what /proc/loadavg says now, if there is one.
func (l *load) note() {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return
	}
	var minute float64
	if _, err := fmt.Sscan(string(b), &minute); err == nil {
		if l.Begin == 0 {
			l.Begin = minute
		}
		l.End, l.Most = minute, max(l.Most, minute)
	}
}

// from says where the numbers come from.
func (r *report) from() string {
	dates, commits, machines := make(map[string]bool), make(map[string]bool), make(map[string]bool)
	var took time.Duration
	var most load
	jobs := 0
	for i, s := range r.Sittings {
		dates[s.Date], machines[strings.Join(s.Machine, ", ")] = true, true
		if s.Commit != "" {
			commits[s.Commit] = true
		}
		d, _ := time.ParseDuration(s.Took) // as this program writes it
		took, jobs = took+d, max(jobs, s.Jobs)
		if i == 0 {
			most.Begin = s.Load.Begin
		}
		most.End, most.Most = s.Load.End, max(most.Most, s.Load.Most)
	}
	list := func(set map[string]bool) string { return strings.Join(slices.Sorted(maps.Keys(set)), ", ") }
	s := list(dates)
	if len(commits) > 0 {
		s += ", commit " + list(commits)
	}
	s += fmt.Sprintf(", n = %s for each row, sessions of %s, runs at a time: %d, %s. It took %s", r.runs(), r.Session, jobs, list(machines), took)
	if len(r.Sittings) > 1 {
		s += fmt.Sprintf(" in %d parts", len(r.Sittings))
	}
	if most.Most > 0 {
		s += fmt.Sprintf("; the load average was %.1f when it began, %.1f when it ended, and %.1f at most", most.Begin, most.End, most.Most)
	}
	return s + "."
}

// runs is how many were measured for each row.
func (r *report) runs() string {
	least, most := math.MaxInt, 0
	for _, c := range r.Cells {
		least, most = min(least, len(c.Runs)), max(most, len(c.Runs))
	}
	if least >= most {
		return fmt.Sprint(most)
	}
	return fmt.Sprintf("%d to %d", least, most)
}

// least is how many runs can show two leaders, of the row that has the fewest and not none.
func (r *report) least() (n int) {
	for _, c := range r.Cells {
		if k := len(c.followed()); k > 0 && (n == 0 || k < n) {
			n = k
		}
	}
	return n
}

// failed returns an error if any run could not be measured.
func (r *report) failed() error {
	if slices.ContainsFunc(r.Cells, func(c *cell) bool { return len(c.Errors) > 0 }) {
		return errors.New("not all runs could be measured; see below the tables")
	}
	return nil
}

// whole returns an error unless everything was measured, as often as it was to be. An optional coordinator may
// be missing as a whole.
func (r *report) whole() error {
	has := make(map[string]bool) // coordinators
	for _, c := range r.Cells {
		has[c.Coordinator] = true
	}
	for _, f := range faults {
		for _, l := range libraries {
			if !f.possible(l) || candidate.Optional(l.Coordinator) && !has[l.Coordinator] {
				continue
			}
			if c := r.of(f, l); c == nil || c.tried() < r.N {
				return fmt.Errorf("%s, %s: not measured %d times; only a whole report is for showing: go on with -json", f.name, l.ID(), r.N)
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

// put adds a row, in the order of the tables, unless it is there.
func (r *report) put(c *cell) {
	if slices.Contains(r.Cells, c) {
		return
	}
	r.Cells = append(r.Cells, c)
	slices.SortStableFunc(r.Cells, func(a, b *cell) int { return slices.Compare(a.rank(), b.rank()) })
}

// rank is the place of a row in the tables.
func (c *cell) rank() []int {
	return []int{
		slices.IndexFunc(faults, func(f fault) bool { return f.name == c.Fault }),
		slices.IndexFunc(libraries, func(l candidate.Library) bool { return l.Coordinator == c.Coordinator && l.Name == c.Library }),
	}
}

// save writes the report as JSON.
func (r *report) save(path string) error {
	b, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	return program.WriteFile(path, append(b, '\n'))
}

// read reads what save wrote.
func read(path string) (*report, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := new(report)
	return r, json.Unmarshal(b, r)
}

// begun reads what an earlier run wrote, which is to be gone on with. If there is none, it begins a report.
func begun(path, session string) (*report, error) {
	r, err := read(path)
	if path == "" || errors.Is(err, fs.ErrNotExist) {
		return &report{Session: session}, nil
	}
	if err == nil && r.Session != session {
		err = fmt.Errorf("%s has sessions of %s, and not of %s: begin another file", path, r.Session, session)
	}
	return r, err
}

func today() string { return time.Now().Format(time.DateOnly) }
