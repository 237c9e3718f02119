package operate

import (
	"context"
	"fmt"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/past"
)

// A Past is one term in the history of an election. Its times are those of the wall clock of the
// process that wrote them, so a term can seem to end before it began. One before 1970 is read as
// the beginning of 1970, and one after 2199 as its end.
type Past struct {
	ID    string    `json:"id"`    // of the leader
	Token uint64    `json:"token"` // of the term
	Began time.Time `json:"began"`
	// Ended is when the term ended; its work may have gone on longer. It is zero for the newest
	// term while that lasts. If the leader did not write its end, it stays zero until the next term
	// is written.
	Ended time.Time `json:"ended,omitzero"`
	// Why says why the term ended, as the cause of its context does. It is empty for a term
	// that has ended without saying why: its process was killed, or was cut off from the
	// coordinator. Ended is then when the next term began.
	Why string `json:"why,omitempty"`
}

// History returns the newest terms, in the order of their tokens. Each leader with History in its
// options writes its own terms. So terms of foreign leaders and of candidates without History are
// missing, and terms whose leader was killed or cut off before it had written. Leadership does not
// wait for the history: a leader writes that a term has begun, or has ended, soon afterwards.
//
// The newest term may have ended although Ended is zero: it lasts if its token is that of the leader.
//
// History blocks for about one round trip, or two where Refresh of a [backend.Session] takes one. Its error
// matches [errors.ErrUnsupported] if the backend has no records. The history is the record
// E.history, for an election named E. A deleted election keeps it.
func (op *Operator) History(ctx context.Context) ([]Past, error) {
	s, err := op.fresh(ctx)
	if err != nil {
		return nil, err
	}
	name, err := past.Record(op.name)
	if err != nil {
		return nil, fmt.Errorf("operate: %w", err)
	}
	r, err := s.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	return HistoryOf(r)
}

// HistoryOf returns the terms in the record of a history, as [Operator.History] does. It is for
// callers that have read the record from the backend.
func HistoryOf(r backend.Record) ([]Past, error) {
	terms, err := past.Parse(r)
	if err != nil {
		return nil, fmt.Errorf("operate: %w", err)
	}
	var all []Past
	for _, t := range terms {
		all = append(all, Past(t))
	}
	return all, nil
}
