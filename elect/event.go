package elect

import (
	"time"

	"github.com/succession-dev/succession/backend"
)

// An EventKind says what an [Event] tells.
type EventKind int

// The steps of a campaign.
const (
	Joined   EventKind = iota + 1 // Member stands in line
	Waiting                       // Member waits for Ahead to go
	Elected                       // Member leads, with Token
	Ended                         // the term with Token is over; Err is why, as in the cause of its context
	Left                          // Member has left the line; if Err is set, it stands until it can be removed or its session ends
	Retrying                      // Err may pass; the campaign goes on
)

// String returns the kind in lower case.
func (k EventKind) String() string {
	if k < Joined || k > Retrying {
		return "unknown"
	}
	return [...]string{Joined: "joined", Waiting: "waiting", Elected: "elected", Ended: "ended", Left: "left", Retrying: "retrying"}[k]
}

// An Event is one step of a campaign, for [Options] Trace.
type Event struct {
	Kind   EventKind
	Member backend.Member
	Ahead  backend.Member // Waiting only
	Token  uint64         // Elected and Ended only
	Err    error          // Ended, Left and Retrying only
	Worked time.Duration  // Left only: how long the work of the term went on after Ended
}
