package page

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/header"
)

// A choice is what counts when somebody is to lead.
type choice struct {
	Priority int    `json:"priority,omitempty"`
	Site     string `json:"site,omitempty"`
	NotReady string `json:"notReady,omitempty"` // why
}

func choiceOf(l elect.Candidate) choice { return choice{l.Priority, l.Site, l.NotReady} }

// lineTable returns the table of those who stand in a line. It has columns for priorities and sites if
// anybody has one. state says how it stands with the one at an index.
func lineTable(title, empty string, all []elect.Candidate, state func(i int) string) table {
	ranked := slices.ContainsFunc(all, func(l elect.Candidate) bool { return l.Priority != 0 || l.Site != "" })
	value, key := column{Title: "Value", Hide: "wide"}, keyColumn
	columns := []column{numberColumn, {Title: "Candidate"}, tokenColumn}
	if ranked {
		columns = append(columns, column{Title: "Priority", Is: "number"}, column{Title: "Site"})
		value.Hide, key.Hide = "widest", "widest"
	}
	t := table{Title: title, Empty: empty, Columns: append(columns, column{Title: "State"}, value, key)}
	for i, l := range all {
		r := []string{strconv.Itoa(i + 1), nameOf(l), number(l.Token)}
		if ranked {
			r = append(r, strconv.Itoa(l.Priority), l.Site)
		}
		t.Rows = append(t.Rows, append(r, state(i), l.Value, l.Key))
	}
	return t
}

// presentTable returns the table of those who stand in a line of which several can be first.
func presentTable(k kind, all []elect.Candidate) table {
	return lineTable("Present", "Nobody is here.", all, func(i int) string {
		switch {
		case k == kindItems:
			return "stands"
		case kit.Awaited(i, func(i int) bool { return all[i].Shared }) >= 0:
			return "waits"
		}
		return "present"
	})
}

// electionTable returns the table of the line of an election.
func electionTable(line header.Line, now elect.State, all []elect.Candidate) table {
	t := lineTable("Line", "Nobody stands in line.", all, func(i int) string { return standingOf(line, now, all, i) })
	t.To, t.Note = make([]string, len(all)), notReadyNote(all)
	if _, paused := line.Paused(); paused || now.Vacant() {
		return t // nobody leads who could hand over
	}
	for i, l := range all {
		// A key that the page cannot show as it is cannot be named by it.
		if i > 0 && !l.Pinned && !l.Shared && l.NotReady == "" && ui.Visible(l.Key) == l.Key {
			t.To[i] = l.Key
		}
	}
	return t
}

// notReadyNote says in full why candidates are not ready: of a few, as there may be many.
func notReadyNote(all []elect.Candidate) string {
	const few = 3
	var of []string
	for _, l := range all {
		if l.NotReady != "" {
			of = append(of, nameOf(l)+": "+l.NotReady)
		}
	}
	switch n := len(of); {
	case n == 0:
		return ""
	case n > few:
		of = append(of[:few], fmt.Sprintf("and %d more", n-few))
	}
	return "Not ready: " + strings.Join(of, "; ")
}

// standingOf says how it stands with one in the line of an election.
func standingOf(line header.Line, now elect.State, all []elect.Candidate, i int) string {
	l := all[i]
	switch {
	case l.Pinned && line.Members[i].Position == line.Header.Choice.Gate:
		return "paused: " + l.Value
	case i == 0:
		s, _ := firstState(now, line.Header)
		if l.NotReady != "" {
			s += ": " + l.NotReady
		}
		return s
	case l.Pinned:
		return "pinned"
	case l.NotReady != "":
		return "not ready: " + l.NotReady
	case l.Shared:
		return "waits, shared"
	}
	return "waits"
}

// firstState says how it stands with the first of an election.
func firstState(now elect.State, h header.Header) (string, mood) {
	s, m := stateOf(now, h)
	if now.Leader.NotReady != "" {
		return s + ", not ready", bad
	}
	return s, m
}
