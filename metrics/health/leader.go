package health

import (
	"net/http"
	"time"

	"github.com/succession-dev/succession/elect"
)

// A Candidate may lead: it is an [elect.Election], or wraps one.
type Candidate interface {
	ID() string
	// Term returns the newest term, which may have ended, or nil. It does not block.
	Term() *elect.Term
}

// A Standing is the JSON that [Leader] answers with.
type Standing struct {
	Leader bool   `json:"leader"`
	ID     string `json:"id"` // of this process, also if it does not lead
	// Token and Deadline belong to the term; they are left out if this process does not lead.
	Token uint64 `json:"token,omitempty"`
	// Deadline is when the term ends if the coordinator does not confirm the session before. It is
	// left out if the term has no deadline.
	Deadline *time.Time `json:"deadline,omitempty"`
}

// Leader returns a handler that answers GET and HEAD with 200 if c leads at that moment, and
// otherwise with 503. The body is a [Standing] as JSON. It asks only this process, so it does not
// block, also if the coordinator cannot be reached. A process with several elections has a handler
// for each.
func Leader(c Candidate) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := Standing{ID: c.ID()}
		// Check reads the clock, so it notices a pause of the process.
		if t := c.Term(); t != nil && t.Check() == nil {
			s.Leader, s.Token = true, t.Token()
			if d := t.Deadline(); !d.IsZero() {
				s.Deadline = &d
			}
		}
		answer(w, r, s.Leader, s)
	})
}
