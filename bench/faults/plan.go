package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sync"
	"time"

	"github.com/succession-dev/succession/bench/internal/candidate"
)

// A plan is what to measure, and how.
type plan struct {
	n        int
	jobs     int
	session  time.Duration
	patience time.Duration
	cells    []*job
	progress io.Writer
	json     string // file for everything measured, if any

	mu     sync.Mutex
	report report
	err    error // of writing it
}

// A job is a cell that is to be measured.
type job struct {
	fault   fault
	library candidate.Library
	cell    cell
	done    bool
}

// choose makes the jobs: of faults whose whole name matches, on the libraries that
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
				p.cells = append(p.cells, &job{fault: f, library: l, cell: cell{
					Fault: f.name, Coordinator: l.Coordinator, Library: l.Name, Version: l.Version(),
				}})
			}
		}
	}
	if p.cells == nil {
		return errors.New("no fault on any library is left; see -list")
	}
	return nil
}

// measure does all jobs, some at a time.
func (p *plan) measure(ctx context.Context) (*report, error) {
	if p.n < 1 || p.jobs < 1 || p.session < time.Second || p.session%time.Second != 0 {
		return nil, errors.New("-n and -jobs must be at least 1, and -session whole seconds")
	}
	p.report = report{Date: today(), Session: fmt.Sprintf("%d s", p.session/time.Second), N: p.n, Jobs: p.jobs, Machine: candidate.Machine()}
	p.report.noteLoad()
	begin := time.Now()
	queue := make(chan *job)
	var workers sync.WaitGroup
	for range p.jobs {
		workers.Go(func() {
			for j := range queue {
				p.do(ctx, j)
				p.done(j, time.Since(begin))
			}
		})
	}
	for _, j := range p.cells {
		queue <- j
	}
	close(queue)
	workers.Wait()
	return &p.report, p.err
}

// done adds a row to the report, in the order of the plan.
func (p *plan) done(j *job, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	j.done = true
	p.report.Took = took.Round(time.Second).String()
	p.report.noteLoad()
	p.report.Cells = nil
	for _, j := range p.cells {
		if j.done {
			p.report.Cells = append(p.report.Cells, &j.cell)
		}
	}
	if p.json != "" {
		p.err = p.report.save(p.json)
	}
}

// do measures one row. A run that fails is not tried again: what fails now and then may be what
// is looked for.
func (p *plan) do(ctx context.Context, j *job) {
	begin := time.Now()
	for range p.n {
		r := &run{library: j.library, fault: j.fault, session: p.session, patience: p.patience}
		o, err := r.do(ctx)
		if err != nil {
			j.cell.Errors = append(j.cell.Errors, err.Error())
			fmt.Fprintf(p.progress, "%s, %s: %v\n", j.fault.name, j.library.ID(), err)
			continue
		}
		j.cell.Server = r.version
		j.cell.Runs = append(j.cell.Runs, o)
	}
	fmt.Fprintf(p.progress, "%s, %s: two leaders %s, nobody %s, old leader stops %s (%v)\n", j.fault.name, j.library.ID(),
		j.cell.overlap(), j.cell.vacancy(), j.cell.stops(), time.Since(begin).Round(time.Second))
}
