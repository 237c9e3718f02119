// Package past has the form in which an election's history is kept: the record of leaders who led, and why their terms ended.
package past

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/clock"
	"github.com/succession-dev/succession/internal/naming"
)

// A Term is one term; package operate says what the fields are.
type Term struct {
	ID    string    `json:"id"`
	Token uint64    `json:"token"`
	Began time.Time `json:"began"`
	Ended time.Time `json:"ended,omitzero"`
	Why   string    `json:"why,omitempty"`
}

// Record returns the name of the election's history.
func Record(election string) (string, error) {
	return naming.OfElection(election, naming.History), naming.CheckElection(election, true)
}

// errNoHistory says that the record with the name of the history holds something else.
var errNoHistory = errors.New("it is no history of an election; is it a record of your own? Then rename it")

// A stored is the record. Its first field tells it from records of others.
type stored struct {
	Format int    `json:"history"`
	Terms  []Term `json:"terms"`
}

// Parse returns the terms in the record, in the order of their tokens.
func Parse(r backend.Record) ([]Term, error) {
	if r.Version == backend.Absent {
		return nil, nil
	}
	bad := func(why any) error { return fmt.Errorf("record %s: %w (%v)", r.Name, errNoHistory, why) }
	if !bytes.HasPrefix(r.Value, []byte(`{"history":`)) {
		return nil, bad("it begins otherwise")
	}
	var s stored
	if err := json.Unmarshal(r.Value, &s); err != nil {
		return nil, bad(err)
	}
	if s.Format != 1 {
		return nil, bad(fmt.Sprintf("format %d, this version reads format 1", s.Format))
	}
	for i := range s.Terms {
		t := &s.Terms[i]
		t.Began, t.Ended = clock.Believable(t.Began), clock.Believable(t.Ended)
	}
	return s.Terms, nil
}

// Encode returns the record of at most the newest n terms, and of fewer if they would be too
// long for a record.
func Encode(terms []Term, n int) []byte {
	for terms = terms[max(0, len(terms)-n):]; ; terms = terms[1:] {
		b, err := json.Marshal(stored{1, terms})
		if err != nil {
			panic(err) // numbers, strings and times of this century always marshal
		}
		if len(b) <= backend.MaxRecord {
			return b
		}
	}
}
