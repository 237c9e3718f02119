package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/succession-dev/succession/bench/internal/candidate"
)

// markdown writes a table for each measure that has figures.
func (b *book) markdown(w io.Writer) {
	b.handovers(w)
	b.starts(w)
	b.failovers(w)
	b.rests(w)
	b.loads(w)
	b.elections(w)
	b.lockTable(w)
	b.contestTable(w)
	b.queueTable(w)
	b.groupTable(w)
	for _, f := range b.Figures {
		if f.Error != "" {
			fmt.Fprintf(w, "\nNot measured: %s, %s on %s, %d: %s\n", f.Measure, f.library(), f.coordinator(), f.N, f.Error)
		}
	}
	var dates []string
	for _, f := range b.Figures {
		dates = append(dates, f.Date)
	}
	slices.Sort(dates)
	fmt.Fprintf(w, "\n%s; %s.\n", strings.Join(slices.Compact(dates), ", "), strings.Join(b.Machine, ", "))
}

// handovers has a group of rows for each line: the floor, and the libraries.
func (b *book) handovers(w io.Writer) {
	figures := b.of(handover)
	if figures == nil {
		return
	}
	fmt.Fprintln(w, "\nA handover, in milliseconds:\n\n"+
		"| coordinator | in line | processes | | p50 | p90 | p99 | p50 / floor | p99 / floor | p50 of succession / this | p99 of succession / this |\n"+
		"|---|---|---|---|---|---|---|---|---|---|---|")
	for _, f := range figures {
		if len(f.Times) > 0 {
			aboveFloor, besideOurs := f.ratios(figures)
			fmt.Fprintf(w, "| %s | %d | %d | %s | %s | %s | %s | %s | %s | %s | %s |\n", f.coordinator(), f.N, min(f.N, f.Processes), f.row(),
				ms(f.quantile(0.5)), ms(f.quantile(0.9)), ms(f.quantile(0.99)), aboveFloor[0], aboveFloor[1], besideOurs[0], besideOurs[1])
		}
	}
}

// ratios returns those of the median and of the 99th percentile, of what a figure is above the floor
// of its line, and of this project beside a peer; empty where there are none.
func (f *figure) ratios(figures []*figure) (aboveFloor, besideOurs [2]string) {
	beside := func(library string) *figure {
		g := &figure{Measure: handover, Coordinator: f.Coordinator, Library: library, N: f.N, Processes: f.Processes}
		if i := slices.IndexFunc(figures, g.like); i >= 0 {
			return figures[i]
		}
		return new(figure)
	}
	least, ours := beside(candidate.Floor), beside(candidate.Ours)
	for i, q := range []float64{0.5, 0.99} {
		if f.Library != candidate.Floor {
			aboveFloor[i] = ratio(f.quantile(q), least.quantile(q))
		}
		if f.Library != candidate.Ours && f.Library != candidate.Floor {
			besideOurs[i] = ratio(ours.quantile(q), f.quantile(q))
		}
	}
	return aboveFloor, besideOurs
}

// row returns the library for a table.
func (f *figure) row() string {
	if f.Library == candidate.Ours {
		return "**" + f.library() + "**"
	}
	return f.library()
}

// starts has a row for each library, and a column for each length.
func (b *book) starts(w io.Writer) {
	var lengths []int
	rows := make(map[string]map[int]string)
	var order []string
	for _, f := range b.of(handover) {
		if f.Library == candidate.Floor || f.Start == 0 {
			continue
		}
		if !slices.Contains(lengths, f.N) {
			lengths = append(lengths, f.N)
		}
		name := fmt.Sprintf("| %s | %s | %d |", f.coordinator(), f.library(), f.Processes)
		if rows[name] == nil {
			rows[name] = make(map[int]string)
			order = append(order, name)
		}
		rows[name][f.N] = seconds(f.Start)
		if f.Stood < f.N {
			rows[name][f.N] = fmt.Sprintf("%d stand after %s", f.Stood, seconds(f.Start))
		}
	}
	if order == nil {
		return
	}
	slices.Sort(lengths)
	head, rule := "| coordinator | library | processes |", "|---|---|---|"
	for _, n := range lengths {
		head += fmt.Sprintf(" %d |", n)
		rule += "---|"
	}
	fmt.Fprintf(w, "\nThe start of as many candidates at once, until all stand in line and one leads:\n\n%s\n%s\n", head, rule)
	for _, name := range order {
		row := name
		for _, n := range lengths {
			row += " " + or(rows[name][n], "–") + " |"
		}
		fmt.Fprintln(w, row)
	}
}

func (b *book) failovers(w io.Writer) {
	b.rows(w, failover, "From the crash of the leader until the next one leads",
		"| runs | session | median | worst | median / session | worst / session |", func(f *figure) string {
			if f.Coordinator == candidate.Local { // whose sessions have no time
				f.Session = 0
			}
			p50, worst := f.quantile(0.5), f.quantile(1)
			return fmt.Sprintf("| %d | %s | %s | %s | %s | %s |", len(f.Times), seconds(f.Session), seconds(p50), seconds(worst),
				ratio(p50, f.Session), ratio(worst, f.Session))
		})
}

func (b *book) rests(w io.Writer) {
	b.rows(w, rest, "A line at rest",
		"| wait | session | requests in a session time | bytes in a session time | requests of a leader alone, a second | of each who waits | bytes of a leader alone, a second | of each who waits "+
			"| share of a core | memory of one more | goroutines of one more |", func(f *figure) string {
			requests, sent := fmt.Sprintf("%.0f", f.Requests), fmt.Sprintf("%.1f kB", f.Bytes/1000)
			each := f.each()
			if f.Coordinator == candidate.Local {
				requests, sent, each = "–", "–", "– | – | – | –"
			}
			goroutines := fmt.Sprintf("%.1f", f.Goroutines)
			if f.Goroutines == 0 { // of a peer, which is no Go program
				goroutines = "–"
			}
			return fmt.Sprintf("| %d | %s | %s | %s | %s | %.2f %% | %.1f KiB | %s |", f.N, seconds(f.Session), requests, sent, each, 100*f.CPU, f.Memory/1024, goroutines)
		})
}

// each is what a leader costs for whom nobody waits, and what each adds who waits: requests in a second, and bytes.
func (f *figure) each() string {
	if f.Alone.Requests == 0 && f.Alone.Bytes == 0 { // of an older file
		return "– | – | – | –"
	}
	s := f.Session.Seconds()
	more := func(all, alone float64) float64 { return max(0, all-alone) / float64(f.N) / s }
	return fmt.Sprintf("%.2f | %.2f | %.0f | %.0f", f.Alone.Requests/s, more(f.Requests, f.Alone.Requests), f.Alone.Bytes/s, more(f.Bytes, f.Alone.Bytes))
}

func (b *book) loads(w io.Writer) {
	b.rows(w, server, "What a line at rest costs the coordinator, each candidate in a process of its own",
		"| candidates | session | share of a core | memory |", func(f *figure) string {
			return fmt.Sprintf("| %d | %s | %.1f %% | %.0f MiB |", f.N, seconds(f.Session), 100*f.CPU, f.Memory/(1<<20))
		})
}

func (b *book) elections(w io.Writer) {
	b.rows(w, many, "Many elections",
		"| elections | candidates of each | processes | all have a leader after | share of a core at rest | handovers in a second |", func(f *figure) string {
			rate := fmt.Sprintf("%.0f", f.Rate)
			if f.Candidates == 1 { // nobody to hand over to
				rate = "–"
			}
			return fmt.Sprintf("| %d | %d | %d | %s | %.1f %% | %s |", f.N, f.Candidates, f.Processes, seconds(f.Start), 100*f.CPU, rate)
		})
}

// rows writes a table with a row for each figure of a measure that has been measured.
func (b *book) rows(w io.Writer, measure, title, head string, row func(*figure) string) {
	first := true
	for _, f := range b.of(measure) {
		if f.Error != "" {
			continue
		}
		if first {
			fmt.Fprintf(w, "\n%s:\n\n| coordinator | library %s\n|---|---%s\n", title, head, strings.Repeat("|---", strings.Count(head, "|")-1)+"|")
			first = false
		}
		fmt.Fprintf(w, "| %s | %s %s\n", f.coordinator(), f.library(), row(f))
	}
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f", float64(d)/float64(time.Millisecond)) }

func seconds(d time.Duration) string {
	if d == 0 {
		return "–"
	}
	if d < time.Second {
		return fmt.Sprintf("%.0f ms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// ratio is empty where there is nothing to divide by.
func ratio(a, b time.Duration) string {
	if a == 0 || b == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", float64(a)/float64(b))
}

func or(a, b string) string {
	if a == "" {
		return b
	}
	return a
}
