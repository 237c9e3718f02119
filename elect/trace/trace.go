// Package trace says what candidates do, step by step, for metrics, logs and tests: see the Trace
// option of package elect.
package trace

import (
	"time"

	"github.com/succession-dev/succession/backend"
)

// A Kind says what an [Event] tells.
type Kind int

// What a candidate tells.
const (
	Started       Kind = iota + 1 // a campaign begins; it has no session yet
	Joined                        // Member stands in line
	Waiting                       // Member waits for Ahead to go; Err is set if that is the gate of a pause
	Elected                       // Member leads, with Token
	Ended                         // the term with Token is over; Err is why, as in the cause of its context
	Left                          // Member has left the line; if Err is set, it stands until it can be removed or its session ends
	Retrying                      // Err may pass; the campaign goes on
	SessionOpened                 // the candidate uses a session that it has not used before, with TTL
	Heartbeat                     // the coordinator has confirmed the session of Member, after RoundTrip and with Slack
	SessionLost                   // the session of Member has ended; Err is why
	Working                       // the term with Token has ended, and its work still goes on, after Worked; told again, less and less often
	Yielded                       // Member was first, and gives way to a candidate that is better; Err says to whom and why
	Finished                      // the campaign is over: it has failed, with Err, or Member has left after its term
)

var kinds = [...]string{
	Started: "started", Joined: "joined", Waiting: "waiting", Elected: "elected", Ended: "ended", Left: "left", Retrying: "retrying",
	SessionOpened: "session opened", Heartbeat: "heartbeat", SessionLost: "session lost", Working: "working", Yielded: "yielded", Finished: "finished",
}

// String returns the kind in lower case.
func (k Kind) String() string {
	if k < Started || int(k) >= len(kinds) {
		return "unknown"
	}
	return kinds[k]
}

// An Event is one step of a campaign, or news of its session or its term, for elect.Options Trace.
type Event struct {
	Election string // its name
	Recipe   string // what it is a part of, such as "lock" or "queue"; empty for an election by itself
	Kind     Kind
	Member   backend.Member // the zero Member in Started, Retrying and SessionOpened, and in Finished if there was no term
	Ahead    backend.Member // Waiting only
	Token    uint64         // Elected, Ended and Working only
	// Err is for Waiting, Ended, Left, Retrying, SessionLost, Yielded and Finished only. That of a campaign whose context has ended
	// matches the Err of that context, such as [context.Canceled].
	Err error
	// Worked is how long the work of the term has gone on after Ended; in Left and Working only.
	Worked time.Duration
	// TTL is the session time that the coordinator has granted, 0 for none; in SessionOpened and Heartbeat only.
	TTL time.Duration
	// Number tells a heartbeat from all others of the process: elections that share a session are
	// told of the same ones. 0 if the driver does not number them. In Heartbeat only.
	Number uint64
	// RoundTrip is the time from when a heartbeat was sent until it was known to count; in Heartbeat
	// only.
	RoundTrip time.Duration
	// Slack is how far ahead the session's deadline was just before this heartbeat moved it; 0 if it
	// had passed. The margin (elect.Options Margin) is not taken off. In Heartbeat only.
	Slack time.Duration
}

// Tee returns a func for elect.Options Trace that calls each of fs in turn. Nil ones are left out; if all
// are, Tee returns nil.
func Tee(fs ...func(Event)) func(Event) {
	var all []func(Event)
	for _, f := range fs {
		if f != nil {
			all = append(all, f)
		}
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return func(ev Event) {
		for _, f := range all {
			f(ev)
		}
	}
}

// Named returns a func that calls f with events that name election in place of their own. If f is
// nil, Named returns nil. Recipes need none: their events have the name of the lock or the queue
// already, and not those of the lines that the recipe consists of.
func Named(election string, f func(Event)) func(Event) {
	if f == nil {
		return nil
	}
	return func(ev Event) {
		ev.Election = election
		f(ev)
	}
}
