package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"regexp"
	"sync"
	"time"

	"github.com/succession-dev/succession/bench/internal/candidate"
)

// A plan is what to measure, and how.
type plan struct {
	n        int // runs that each row is to have in the end
	jobs     int
	seed     uint32
	session  time.Duration
	patience time.Duration
	rows     []row
	progress io.Writer
	json     string // file for everything measured, if any

	mu     sync.Mutex
	begin  time.Time
	report *report
	err    error // of writing it, or of what does not belong into it
}

// A row is what one cell is about.
type row struct {
	fault   fault
	library candidate.Library
}

// choose makes the rows: of faults whose whole name matches, on the libraries that
// [candidate.Choose] chooses.
func (p *plan) choose(fault, library string) error {
	faultRE, err := regexp.Compile("^(" + fault + ")$")
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	chosen, err := candidate.Choose(library, p.progress)
	if err != nil {
		return err
	}
	for _, f := range faults {
		for _, l := range underFaults(chosen) {
			if faultRE.MatchString(f.name) && f.possible(l) {
				p.rows = append(p.rows, row{f, l})
			}
		}
	}
	if p.rows == nil {
		return errors.New("no fault on any library is left; see -list")
	}
	return nil
}

// measure does what the report lacks that an earlier run has begun, some runs at a time: one of each row, then the next one of each.
func (p *plan) measure(ctx context.Context) (*report, error) {
	if p.n < 1 || p.jobs < 1 || p.session < time.Second || p.session%time.Second != 0 {
		return nil, errors.New("-n and -jobs must be at least 1, and -session whole seconds")
	}
	var err error
	if p.report, err = begun(p.json, fmt.Sprintf("%d s", p.session/time.Second)); err != nil {
		return nil, err
	}
	p.report.N = p.n
	cells := make([]*cell, len(p.rows))
	for i, j := range p.rows {
		if cells[i] = p.report.of(j.fault, j.library); cells[i] == nil {
			cells[i] = &cell{Fault: j.fault.name, Coordinator: j.library.Coordinator, Library: j.library.Name, Version: j.library.Version()}
		} else if now := j.library.Version(); cells[i].Version != now {
			return nil, fmt.Errorf("%s has version %s of %s, and not %s: begin another file", p.json, cells[i].Version, j.library.ID(), now)
		}
	}
	p.report.Sittings = append(p.report.Sittings, sitting{
		Date: today(), Commit: candidate.Commit(ctx), Seed: p.seed, Jobs: p.jobs, Machine: candidate.Machine(),
	})
	p.begin = time.Now()
	p.sitting().Load.note()
	type turn struct {
		row
		cell  *cell
		index int
	}
	queue := make(chan turn)
	var workers sync.WaitGroup
	for range p.jobs {
		workers.Go(func() {
			for t := range queue {
				if ctx.Err() == nil {
					p.do(ctx, t.row, t.cell, t.index)
				}
			}
		})
	}
	type count struct{ measured, tried int }
	had := make([]count, len(cells))
	for i, c := range cells {
		had[i] = count{len(c.Runs), c.tried()}
	}
	for i := range p.n {
		for j, c := range cells {
			if i < p.n-had[j].measured {
				queue <- turn{p.rows[j], c, had[j].tried + i}
			}
		}
	}
	close(queue)
	workers.Wait()
	return p.report, p.err
}

// sitting is this run of the program.
func (p *plan) sitting() *sitting { return &p.report.Sittings[len(p.report.Sittings)-1] }

// seedOf is the seed of a run: always the same for the same run of a row, and the seed of the program.
func (p *plan) seedOf(j row, index int) uint32 {
	h := fnv.New32a()
	fmt.Fprint(h, p.seed, j.fault.name, j.library.ID(), index)
	return h.Sum32()
}

// do measures once. A run that fails is not tried again: what fails now and then may be what
// is looked for. It stays in the report, also when that is gone on with and the row gets another run.
func (p *plan) do(ctx context.Context, j row, c *cell, index int) {
	begin := time.Now()
	r := &run{library: j.library, fault: j.fault, session: p.session, patience: p.patience, seed: p.seedOf(j, index)}
	o, err := r.do(ctx)
	if ctx.Err() != nil {
		return // it was interrupted, and is measured when it is gone on
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	what := fmt.Sprintf("%s, %s, run %d", j.fault.name, j.library.ID(), index+1)
	if err == nil && c.Server != "" && c.Server != r.version {
		p.err = errors.Join(p.err, fmt.Errorf("%s has a server of version %s, and not %s: begin another file", p.json, c.Server, r.version))
		return
	}
	if err != nil {
		c.Errors = append(c.Errors, err.Error())
		fmt.Fprintf(p.progress, "%s: %v\n", what, err)
	} else {
		c.Server = r.version
		o.Sitting, o.Seed, o.Took = len(p.report.Sittings)-1, r.seed, time.Since(begin).Round(time.Millisecond)
		c.Runs = append(c.Runs, o)
		one := cell{Runs: []outcome{o}}
		fmt.Fprintf(p.progress, "%s: two leaders %s, nobody %s, old leader stops %s (%v)\n", what,
			one.overlap(), length{o.Vacancy, o.VacancyOpen}, one.stops(), o.Took.Round(time.Second))
	}
	p.report.put(c)
	p.sitting().Took = time.Since(p.begin).Round(time.Second).String()
	p.sitting().Load.note()
	if p.json != "" {
		p.err = errors.Join(p.err, p.report.save(p.json))
	}
}
