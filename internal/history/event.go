package history

import (
	"fmt"
	"time"
)

// A Kind says what an [Event] tells.
type Kind string

// The kinds of events.
const (
	Joined      Kind = "joined"       // the candidate stands in line, at Position
	Won         Kind = "won"          // it leads, with Token
	Ended       Kind = "ended"        // its term is over; Why
	CheckFailed Kind = "check failed" // it asked and found its term over; Why
	Resigned    Kind = "resigned"     // it gave its term up
	Left        Kind = "left"         // it has left the line
	Deposed     Kind = "deposed"      // an operator removed it from the line, or ended its session
)

func (k Kind) valid() bool {
	switch k {
	case Joined, Won, Ended, CheckFailed, Resigned, Left, Deposed:
		return true
	}
	return false
}

// An Event is one note of one candidate. Times are since the beginning of the
// clock that all candidates share.
type Event struct {
	At        time.Duration `json:"at"` // nanoseconds, as are all times in the file
	Kind      Kind          `json:"event"`
	Election  string        `json:"election"`
	Candidate string        `json:"candidate"`
	Position  uint64        `json:"position,omitempty"` // in the line; 0 is unknown
	Token     uint64        `json:"token,omitempty"`    // of Won and what follows
	// Deadline is when the term had to be over at the latest, as known at At; of
	// Ended and CheckFailed. 0 is none.
	Deadline time.Duration `json:"deadline,omitempty"`
	// Led is the last instant at which the candidate found itself leading: just before
	// it asked and was told yes. Of Ended, CheckFailed and Resigned. The term is held
	// against others until then, and not until the note, which a candidate that was
	// stopped takes late. Where Won is dated in the same way, before the first such
	// answer, two terms that overlap in a history have overlapped. 0 is not known.
	Led time.Duration `json:"led,omitempty"`
	Why string        `json:"why,omitempty"`
}

func (e Event) check() error {
	switch {
	case !e.Kind.valid():
		return fmt.Errorf("no such event: %q", e.Kind)
	case e.Election == "" || e.Candidate == "":
		return fmt.Errorf("event %q without its election or candidate", e.Kind)
	case e.At < 0 || e.Deadline < 0 || e.Led < 0:
		return fmt.Errorf("event %q before the clock began", e.Kind)
	}
	return nil
}

// A Fault is what was wrong with a part of the system for a time.
type Fault struct {
	Kind string `json:"fault"` // such as "cut" or "pause"
	// Target is the candidate that it touches, or what the names of several
	// candidates begin with, up to a slash: web-1 touches web-1/a. Empty is all.
	Target string `json:"target,omitempty"`
	// Election is the one that it touches; empty is all.
	Election string        `json:"election,omitempty"`
	From     time.Duration `json:"from"`
	To       time.Duration `json:"to"` // not before From; the same for what takes no time
}

func (f Fault) check() error {
	switch {
	case f.Kind == "":
		return fmt.Errorf("fault without a kind")
	case f.From < 0 || f.To < f.From:
		return fmt.Errorf("fault %q lasts from %d to %d", f.Kind, f.From, f.To)
	}
	return nil
}

// touches reports whether the fault is one of the candidate in the election.
func (f Fault) touches(election, candidate string) bool {
	if f.Election != "" && f.Election != election {
		return false
	}
	n := len(f.Target)
	return n == 0 || candidate == f.Target ||
		len(candidate) > n && candidate[:n] == f.Target && candidate[n] == '/'
}
