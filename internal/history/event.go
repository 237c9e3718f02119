package history

import (
	"fmt"
	"time"
)

// A Kind says what happened in an [Event].
type Kind string

// The kinds of events.
const (
	Joined      Kind = "joined"       // the candidate stands in line, at Position
	Won         Kind = "won"          // it leads, with Token
	Ended       Kind = "ended"        // its term is over; Why says why
	CheckFailed Kind = "check failed" // it asked and found its term over; Why says why
	Resigned    Kind = "resigned"     // it gave up its term
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

// An Event is one note of one candidate. Its times count from the zero of a clock that all
// candidates share.
type Event struct {
	At        time.Duration `json:"at"` // nanoseconds, as are all times in the file
	Kind      Kind          `json:"event"`
	Election  string        `json:"election"`
	Candidate string        `json:"candidate"`
	Position  uint64        `json:"position,omitempty"` // of its member; 0 is unknown
	Token     uint64        `json:"token,omitempty"`    // in Won and in the notes on that term's end
	// Deadline is the time by which the term had to be over, as known at At. It is in Ended
	// and CheckFailed. 0 is none.
	Deadline time.Duration `json:"deadline,omitempty"`
	// Led is the last instant at which the candidate certainly led: just before it asked
	// and was told that it did. It is in Ended, CheckFailed and Resigned. The term is held
	// against others until Led, and not until the note, because a candidate that was
	// stopped takes the note late. If Won is dated in the same way, just before the first
	// such answer, then terms that overlap in the history did overlap. 0 is not known.
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

// A Fault is something that was wrong with a part of the system for a time.
type Fault struct {
	Kind string `json:"fault"` // such as "cut" or "pause"
	// Target is the candidate that the fault touches. It can also be the part before a
	// slash that several names have in common: web-1 touches web-1/a. Empty is all.
	Target string `json:"target,omitempty"`
	// Election is the election that the fault touches. Empty is all.
	Election string        `json:"election,omitempty"`
	From     time.Duration `json:"from"`
	To       time.Duration `json:"to"` // not before From; equal to From if the fault took no time
}

// touches reports whether the fault touches the candidate in the election.
func (f Fault) touches(election, candidate string) bool {
	if f.Election != "" && f.Election != election {
		return false
	}
	n := len(f.Target)
	return n == 0 || candidate == f.Target ||
		len(candidate) > n && candidate[:n] == f.Target && candidate[n] == '/'
}
