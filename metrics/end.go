package metrics

import (
	"errors"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
)

// An end is how a term ended: a value of the label end of succession_terms_total.
type end string

// ends are all ends except stopped, each with the error that shows it. The first that matches
// counts; not_ready comes first, because a candidate may give any error as the reason.
var ends = []struct {
	end end
	err error
}{
	{"not_ready", elect.ErrNotReady},     // the leader stopped being ready
	{"resigned", elect.ErrResigned},      // the work had ended
	{"asked", elect.ErrAsked},            // somebody asked the leader to resign
	{"deadline", elect.ErrDeadline},      // the coordinator did not confirm the session in time
	{"session", backend.ErrSessionEnded}, // the session ended
	{"removed", elect.ErrRemoved},        // an operator removed the member
	{"sealed", backend.ErrSealed},        // the election has moved
	{"lost", elect.ErrLost},              // lost in another way
}

// stopped is the end of a term whose context the program has ended.
const stopped end = "stopped"

// endOf returns how the term ended whose context has the cause err.
func endOf(err error) end {
	for _, e := range ends {
		if errors.Is(err, e.err) {
			return e.end
		}
	}
	return stopped
}

// opOf returns which operation failed: one of the backend, or "ready" if the candidate was not
// ready.
func opOf(err error) string {
	if errors.Is(err, elect.ErrNotReady) {
		return "ready"
	}
	if e := (*backend.Error)(nil); errors.As(err, &e) && e.Op != "" {
		return e.Op
	}
	return "other"
}
