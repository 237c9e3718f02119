package demo

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/elect/trace"
)

// A table prints the steps of a demo, a line each: when, what the line looks
// like then, and what has happened.
type table struct {
	out    io.Writer
	form   ui.Format
	begin  time.Time
	colour bool

	who    map[string]int // who stands under which key
	key    []string       // of each candidate, once it has joined
	seen   []bool         // its joining has been printed
	gone   []bool
	leader int  // who leads, from 1; 0 for nobody
	lost   bool // one has joined again

	left   time.Time // when the last leader began to leave
	tokens []uint64
	exits  int // how many have left who had somebody behind them
	woken  int // how many waits for one in front have ended
}

func newTable(out io.Writer, form ui.Format, n int, url string) *table {
	t := &table{
		out:    out,
		form:   form,
		begin:  time.Now(),
		colour: ui.IsTerminal(out) && os.Getenv("NO_COLOR") == "",
		who:    make(map[string]int),
		key:    make([]string, n),
		seen:   make([]bool, n),
		gone:   make([]bool, n),
	}
	if form == ui.AsJSON {
		return t
	}
	fmt.Fprintf(out, "%s in line on %s\n", ui.Count(n, "candidate"), coordinator.Redact(url))
	fmt.Fprintf(out, "The first one leads: [1]. Each of the others watches the one in front of it.\n\n")
	fmt.Fprintf(out, "  TIME   %-*s  WHAT HAPPENS\n", cellWidth*n, " LINE")
	return t
}

// add prints s.
func (t *table) add(s step) {
	i := s.who - 1
	switch s.Kind {
	case trace.Joined:
		t.lost = t.lost || t.key[i] != ""
		t.key[i] = s.Member.Key
		t.who[s.Member.Key] = s.who
	case trace.Waiting:
		if t.seen[i] {
			t.print(s, line{Event: "watching", Behind: t.who[s.Ahead.Key]}, "%d watches %d now", s.who, t.who[s.Ahead.Key])
			break
		}
		t.seen[i] = true
		t.print(s, line{Event: "joined", Key: t.key[i], Behind: t.who[s.Ahead.Key]}, "%d joins as %s and watches %d", s.who, t.key[i], t.who[s.Ahead.Key])
	case woken:
		t.woken++
	case trace.Elected:
		if !t.seen[i] {
			t.seen[i] = true
			t.print(s, line{Event: "joined", Key: t.key[i]}, "%d joins as %s; nobody is in front", s.who, t.key[i])
		}
		t.leader = s.who
		t.tokens = append(t.tokens, s.Token)
		elected := line{Event: "elected", Token: s.Token}
		if t.left.IsZero() {
			t.print(s, elected, "%s", t.highlight("%d leads with token %d", s.who, s.Token))
			break
		}
		t.print(s, elected, "%s, %.1f ms later", t.highlight("%d is woken and leads with token %d", s.who, s.Token), milliseconds(s.at.Sub(t.left)))
	case trace.Ended:
		t.leader, t.gone[i], t.left = 0, true, s.at
		if s.who < len(t.seen) {
			t.exits++
		}
		t.print(s, line{Event: "left"}, "%d leaves", s.who)
	case trace.Retrying:
		why := ui.OneLine(s.Err.Error())
		t.print(s, line{Event: "retrying", Cause: why}, "%d tries again: %s", s.who, why)
	}
}

// A line is a step as JSON.
type line struct {
	Seconds   float64 `json:"seconds"`
	Candidate int     `json:"candidate"`
	Event     string  `json:"event"`
	Key       string  `json:"key,omitempty"`
	Behind    int     `json:"behind,omitempty"`
	Token     uint64  `json:"token,omitempty"`
	Cause     string  `json:"cause,omitempty"`
}

// print prints a step, as JSON or in the given words.
func (t *table) print(s step, l line, format string, args ...any) {
	if t.form == ui.AsJSON {
		l.Seconds, l.Candidate = s.at.Sub(t.begin).Seconds(), s.who
		_ = ui.PrintJSON(t.out, l) // if nobody reads it, the last line fails too
		return
	}
	fmt.Fprintf(t.out, "%6.3fs  %s  %s\n", s.at.Sub(t.begin).Seconds(), t.picture(), fmt.Sprintf(format, args...))
}

const cellWidth = 4

// picture draws those who stand in line.
func (t *table) picture() string {
	var b strings.Builder
	for i := range t.key {
		cell := ""
		switch {
		case t.gone[i]:
			cell = " ·"
		case t.leader == i+1:
			cell = fmt.Sprintf("[%d]", i+1)
		case t.seen[i]:
			cell = fmt.Sprintf(" %d", i+1)
		}
		b.WriteString(fmt.Sprintf("%-*s", cellWidth, cell))
	}
	return b.String()
}

func (t *table) highlight(format string, args ...any) string {
	s := fmt.Sprintf(format, args...)
	if t.colour {
		return "\x1b[1;32m" + s + "\x1b[0m"
	}
	return s
}

// sum prints what the demo has shown, or returns an error where it was not so.
func (t *table) sum() error {
	for i := 1; i < len(t.tokens); i++ {
		if t.tokens[i] <= t.tokens[i-1] {
			return fmt.Errorf("token %d came after token %d: tokens must grow; please report this", t.tokens[i], t.tokens[i-1])
		}
	}
	switch {
	case t.lost || len(t.tokens) != len(t.key):
		return fmt.Errorf("%s, but %s: a session was lost meanwhile; run the demo again", ui.Count(len(t.key), "candidate"), ui.Count(len(t.tokens), "leader"))
	case t.woken != t.exits:
		return fmt.Errorf("%s woke %s: each must wake one; please report this", ui.Count(t.exits, "exit"), ui.Count(t.woken, "candidate"))
	}
	if t.form == ui.AsJSON {
		return ui.PrintJSON(t.out, map[string]any{"summary": map[string]int{"leaders": len(t.tokens), "exits": t.exits, "woken": t.woken}})
	}
	if t.exits == 0 {
		_, err := fmt.Fprintf(t.out, "\n1 leader, and nobody to follow it. Try more candidates.\n")
		return err
	}
	_, err := fmt.Fprintf(t.out, "\n%s, one after the other. The tokens grew. %s woke %s: one each.\n",
		ui.Count(len(t.tokens), "leader"), ui.Count(t.exits, "exit"), ui.Count(t.woken, "candidate"))
	return err
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
