package page

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/internal/naming"
	"github.com/succession-dev/succession/migrate"
	"github.com/succession-dev/succession/recipes/group"
	"github.com/succession-dev/succession/recipes/queue"
)

// A detail is one election, or one recipe, as a page shows it: all that there is to say, and not
// what has changed.
type detail struct {
	Name      string    `json:"name"`
	Line      string    `json:"line"` // as in its row
	Kind      kind      `json:"kind"`
	Leader    *leader   `json:"leader,omitempty"`  // nil if nobody leads
	Paused    *pause    `json:"paused,omitempty"`  // nil if it is not paused
	Closed    bool      `json:"closed,omitempty"`  // something that is pinned stands first
	NoPause   bool      `json:"noPause,omitempty"` // the backend has no pins, so nothing can be paused
	State     string    `json:"state,omitempty"`
	Mood      mood      `json:"mood,omitempty"`
	Migration *progress `json:"migration,omitempty"`
	Tables    []table   `json:"tables"`
	Error     string    `json:"error,omitempty"`
	account
}

// A leader is whoever is first.
type leader struct {
	ID    string `json:"id"`
	Value string `json:"value,omitempty"`
	Token string `json:"token"`
	Key   string `json:"key"`
	choice
}

// A progress is how far the migration of an election has come.
type progress struct {
	Phase  string   `json:"phase"`
	ID     string   `json:"id,omitempty"`
	From   string   `json:"from"`
	To     string   `json:"to"`
	Blocks []string `json:"blocks"`
	Next   string   `json:"next"`
}

// A table is a part of a detail. Its cells are text.
type table struct {
	Title   string     `json:"title"`
	Columns []column   `json:"columns"`
	Rows    [][]string `json:"rows"`
	More    int        `json:"more,omitempty"` // how many more rows there are than are shown
	Empty   string     `json:"empty"`          // what to say where there are no rows
	Note    string     `json:"note,omitempty"` // what has no room in the rows
	// To has for each row the key of the candidate that the leader can hand over to, or "". Nil says that
	// this is not the line of an election.
	To []string `json:"to,omitzero"`
}

// A column is one of a table.
type column struct {
	Title string `json:"title"`
	Is    string `json:"is,omitempty"`   // "number", "code", or "" for text
	Hide  string `json:"hide,omitempty"` // where it is left out: "wide" where there is little room, "widest" unless there is much
}

var (
	numberColumn = column{Title: "#", Is: "number"}
	tokenColumn  = column{Title: "Token", Is: "number"}
	keyColumn    = column{Title: "Key", Is: "code", Hide: "wide"}
)

func number(n uint64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatUint(n, 10)
}

// describe returns the detail of what has these lines.
func (o *observer) describe(ctx context.Context, r recipe, lines map[string]backend.Line, parts map[string]head) (*detail, error) {
	d := &detail{Name: r.name, Line: o.line, Kind: r.kind, Tables: []table{}}
	b := still(o.w.b, lines)
	switch r.kind {
	case kindQueue:
		return d, d.queue(ctx, b)
	case kindGroup:
		return d, d.group(ctx, b, parts)
	}
	first, l := r.lines()[0], lines[r.lines()[0]]
	now, all, err := elect.New(b, first, nil).Line(ctx)
	if err != nil {
		return nil, err
	}
	if r.kind != kindElection {
		d.Tables = append(d.Tables, presentTable(r.kind, all))
		if r.kind == kindSemaphore {
			return d, d.waiting(ctx, b, "Waiting for a slot", r.name+naming.Waiting)
		}
		return d, nil
	}
	noted, err := header.LineOf(l)
	if err != nil {
		return nil, err
	}
	h := parts[first]
	h.now, h.line, h.unready = now, noted, 0
	if now.Leader.NotReady != "" {
		h.unready = noted.Members[0].Position
	}
	d.State, d.Mood = h.state()
	d.Closed = now.Gate.Key != ""
	if d.Paused = pauseOf(noted, all); !now.Vacant() {
		head := now.Leader.Candidate
		d.Leader = &leader{nameOf(head), head.Value, number(head.Token), head.Key, choiceOf(head)}
	}
	d.Tables = append(d.Tables, electionTable(noted, now, all))
	if d.NoPause, err = pinless(ctx, b); err != nil {
		return nil, err
	}
	if d.account, err = o.w.account(ctx, o.line); err != nil {
		return nil, err
	}
	d.Migration, err = o.migration(ctx, noted.Header)
	return d, err
}

// waiting adds the table of those who wait in a second line.
func (d *detail) waiting(ctx context.Context, b backend.Backend, title, line string) error {
	s, err := b.Session(ctx)
	if err != nil {
		return err
	}
	l, err := s.Line(ctx, line)
	if err != nil {
		return err
	}
	_, all, err := elect.StateOf(l)
	if err != nil {
		return err
	}
	d.Tables = append(d.Tables, lineTable(title, "Nobody waits.", all, func(int) string { return "waits" }))
	return nil
}

func (d *detail) queue(ctx context.Context, b backend.Backend) error {
	entries, err := queue.New(b, d.Name, nil).List(ctx)
	if err != nil {
		return err
	}
	t := table{Title: "Items", Empty: "No item stands in the queue.", Columns: []column{numberColumn, {Title: "Item"}, {Title: "Taken by"}, tokenColumn, {Title: "ID", Is: "code", Hide: "wide"}}}
	for i, e := range entries {
		t.Rows = append(t.Rows, []string{strconv.Itoa(i + 1), e.Value, e.Taker, number(e.Token), e.ID})
	}
	d.Tables = append(d.Tables, t)
	return d.waiting(ctx, b, "Waiting for an item", d.Name+naming.Turn)
}

func (d *detail) group(ctx context.Context, b backend.Backend, parts map[string]head) error {
	members, err := group.New(b, d.Name, nil).Members(ctx)
	if err != nil {
		return err
	}
	t := table{Title: "Present", Empty: "Nobody is present.", Columns: []column{numberColumn, {Title: "Member"}, tokenColumn, {Title: "Value"}}}
	for i, m := range members {
		t.Rows = append(t.Rows, []string{strconv.Itoa(i + 1), m.ID, number(m.Token), m.Value})
	}
	d.Tables = append(d.Tables, t)
	owned := table{Title: "Items", Empty: "Nobody owns an item.", Columns: []column{{Title: "Item"}, {Title: "Owner"}, tokenColumn, {Title: "Election", Is: "code", Hide: "wide"}}}
	for _, line := range sortedKeys(parts) {
		item, ok := strings.CutPrefix(line, d.Name+naming.Item)
		if !ok {
			continue
		}
		h := parts[line]
		owner := "nobody"
		if !h.now.Vacant() {
			owner = nameOf(h.now.Leader.Candidate)
		}
		owned.Rows = append(owned.Rows, []string{item, owner, number(h.now.Leader.Token), line})
	}
	d.Tables = append(d.Tables, owned)
	return nil
}

// migration returns how far a migration of the election is; nil if there is none.
func (o *observer) migration(ctx context.Context, h header.Header) (*progress, error) {
	if b, ok := o.w.b.(*migrate.Backend); ok {
		s, err := b.Status(ctx, o.line)
		if err != nil {
			return nil, err
		}
		return &progress{Phase: string(s.Phase), ID: s.ID, From: s.From, To: s.To, Blocks: s.Blocks, Next: s.Next}, nil
	}
	m := h.Migration
	switch {
	case m.Step == "" && h.Sealed == "":
		return nil, nil
	case m.Step == "":
		return &progress{Phase: "sealed", To: h.Sealed, Blocks: []string{}, Next: "look at it there"}, nil
	}
	return &progress{Phase: m.Step, ID: m.ID, From: m.From, To: m.To, Blocks: []string{},
		Next: fmt.Sprintf("to see what blocks it, start this page with the URL of both coordinators, or: succession migrate status --from %s --to %s %s", quoted(m.From), quoted(m.To), o.line)}, nil
}

// quoted returns s as one word of a shell. What a header says is for people to copy, and whoever may write it may write anything.
func quoted(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-._/:,@+=%", r))
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(ui.OneLine(s), "'", `'\''`) + "'"
}
