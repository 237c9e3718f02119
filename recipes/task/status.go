package task

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/clock"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/naming"
)

// A Status is the state of one task.
type Status struct {
	Task     string    `json:"task"`
	State    State     `json:"state"`
	Config   string    `json:"config,omitempty"`
	ID       string    `json:"id,omitempty"`    // of the machine that runs it; empty if none does
	Token    uint64    `json:"token,omitempty"` // of that run
	Since    time.Time `json:"since,omitzero"`  // when the run began, by that machine's clock; zero if it is about to begin
	Position uint64    `json:"position"`
	Text     string    `json:"text,omitempty"` // of the position; see [Run.CommitText]
	StandBy  int       `json:"stand_by"`       // how many hot machines stand behind
	// Error is the error with which the newest run has ended, if it has, up to a thousand characters.
	Error string `json:"error,omitempty"`
}

// Missing reports whether the task is started and no machine runs it.
func (s Status) Missing() bool { return s.State == Started && s.ID == "" }

// Status returns the state of each task that was ever started or stopped, in the order of their
// names. It blocks for three round trips, and about one more for each task. It reads the tasks one
// after the other, so these states need not have been true at one moment. Status fails with
// [record.ErrDecode] if a record cannot be understood; Start and Stop repair that of a task.
//
// [record.ErrDecode]: https://pkg.go.dev/github.com/succession-dev/succession/recipes/record#ErrDecode
func (s *Standby) Status(ctx context.Context) ([]Status, error) {
	if s.err != nil {
		return nil, s.err
	}
	se, err := s.b.Session(ctx)
	if err != nil {
		return nil, err
	}
	if err := se.Refresh(ctx); err != nil {
		return nil, err
	}
	records, err := se.ReadAll(ctx, s.folder())
	if err != nil {
		return nil, needsRecords(err)
	}
	positions, err := se.ReadAll(ctx, s.name+naming.Positions)
	if err != nil {
		return nil, err
	}
	at := make(map[string]backend.Record)
	for _, r := range positions {
		at[r.Name] = r
	}
	var all []Status
	for _, r := range records {
		task := strings.TrimPrefix(r.Name, s.folder()+"/")
		st, err := s.status(ctx, task, r, at[s.position(task)]) // the zero Record if there is none
		if err != nil {
			return nil, err
		}
		all = append(all, st)
	}
	return all, nil
}

// status returns the state of the task from its record and the record of its position.
func (s *Standby) status(ctx context.Context, task string, defined, position backend.Record) (Status, error) {
	election, line, err := s.election(task).Line(ctx)
	if err != nil {
		return Status{}, err
	}
	d, err := decode[definition](defined)
	if err != nil {
		return Status{}, err
	}
	p, err := decode[progress](position)
	if err != nil {
		return Status{}, err
	}
	line = slices.DeleteFunc(line, func(c elect.Candidate) bool { return c.Pinned }) // the gate of a pause
	st := Status{Task: task, State: d.State, Config: d.Config, Position: p.Position, Text: p.Text, Error: p.Error, StandBy: len(line)}
	if election.Vacant() {
		return st, nil
	}
	// A machine leaves the line when its run has ended. So the first in line still runs a task that
	// is stopped, if its run has begun.
	first := election.Leader
	if begun := p.Token == first.Token; begun || d.State == Started {
		st.ID, st.Token, st.StandBy = first.ID, first.Token, len(line)-1
		if begun {
			st.Since = clock.Believable(p.Since)
		}
	}
	return st, nil
}
