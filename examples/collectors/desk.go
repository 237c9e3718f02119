package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/recipes/group"
)

// A desk is where the run keeps book of who collects what: as the collectors tell it, and as the
// coordinator has it.
type desk struct {
	b   succession.Backend
	g   *group.Group
	out io.Writer

	before         int               // how many lines earlier runs on this coordinator have collected
	last           map[string]string // who collected what after the newest change
	changes, moves int

	mu     sync.Mutex
	at     map[string]string // who collects what
	tokens map[string]uint64 // of whoever began last
	heard  time.Time         // when the newest line came
	wrong  error             // the first thing that must not happen
}

// newDesk returns a desk for collectors that are not started yet.
func newDesk(ctx context.Context, b succession.Backend, out io.Writer) (*desk, error) {
	d := &desk{b: b, g: group.New(b, "collectors", nil), out: out, at: make(map[string]string), tokens: make(map[string]uint64)}
	before, err := d.lines(ctx)
	d.before = before
	return d, err
}

// lines returns how many lines were ever collected.
func (d *desk) lines(ctx context.Context) (lines int, err error) {
	for _, source := range sources {
		e, err := position(d.b, source).Get(ctx)
		if err != nil {
			return 0, err
		}
		lines += e.Value
	}
	return lines, nil
}

// listen takes down what the collectors tell. One that ends with a source tells so before it hands
// it on, and the next one tells that it begins when it has got it.
func (d *desk) listen(told io.Reader) {
	for lines := bufio.NewScanner(told); lines.Scan(); {
		var what, id, source string
		var token uint64
		fmt.Sscan(lines.Text(), &what, &id, &source, &token)
		d.mu.Lock()
		d.heard = time.Now()
		switch other := d.at[source]; {
		case what == "end" && token == d.tokens[source]:
			delete(d.at, source)
		case what == "begin":
			if d.wrong == nil && (other != "" || token <= d.tokens[source]) {
				d.wrong = fmt.Errorf("%s collects %s with token %d, while or after %q does with token %d", id, source, token, other, d.tokens[source])
			}
			d.at[source], d.tokens[source] = id, token
		}
		d.mu.Unlock()
	}
}

// excuses forgets what a collector has that is about to be killed: it will not tell that it ends.
func (d *desk) excuses(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.at, func(_, of string) bool { return of == id })
}

// owners returns who collects what, as told.
func (d *desk) owners() map[string]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.at)
}

// quiet reports whether each source has a collector, and nobody has told anything for a while, nor
// since then.
func (d *desk) quiet(then time.Time) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	const while = 500 * time.Millisecond
	return len(d.at) == len(sources) && time.Since(d.heard) > while && time.Since(then) > while, d.wrong
}

// settles waits until so many collectors are present, because one of them has come or gone, and all
// sources are divided over them. It checks that none has two more than another, and prints who collects what.
func (d *desk) settles(ctx context.Context, id, what string, present int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 2*time.Minute, fmt.Errorf("%s %s, and the sources are not divided after two minutes", id, what))
	defer cancel()
	var members []group.Member
	for since := time.Now(); ; sleep(ctx, 50*time.Millisecond) {
		var err error
		if members, err = d.g.Members(ctx); err != nil {
			return err
		}
		if len(members) != present {
			since = time.Now()
		} else if quiet, err := d.quiet(since); err != nil || quiet {
			if err != nil {
				return err
			}
			break
		}
	}
	told := d.owners()
	owners, err := d.g.Owners(ctx, sources...)
	if err != nil {
		return err
	}
	has := make(map[string]string)
	for _, o := range owners {
		if !o.Held || o.ID != told[o.Item] {
			return fmt.Errorf("%s says that it collects %s, and the coordinator that %+v does", told[o.Item], o.Item, o)
		}
		has[o.ID] += " " + o.Item
		if before := d.last[o.Item]; before != o.ID {
			d.moves++
		}
	}
	for _, m := range members {
		if n := len(strings.Fields(has[m.ID])); n < len(sources)/present || n > (len(sources)+present-1)/present {
			return fmt.Errorf("%s %s, and %s collects%s: %d of %d sources, of which each of %d has a share", id, what, m.ID, has[m.ID], n, len(sources), present)
		}
	}
	d.last = told
	d.changes++
	fmt.Fprintln(d.out, id, what)
	for _, m := range members {
		fmt.Fprintf(d.out, "    %s (%s) collects%s\n", m.ID, m.Value, has[m.ID])
	}
	return nil
}

// figures prints what the run has come to.
func (d *desk) figures(ctx context.Context) error {
	lines, err := d.lines(ctx)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.wrong != nil {
		return d.wrong
	}
	fmt.Fprintf(d.out, `
%d changes, at which sources have moved %d times, and none had two more than another.
No source had two collectors at once, and after each change each had one.
%d lines have been collected.
`, d.changes, d.moves, lines-d.before)
	return nil
}
