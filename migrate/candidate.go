package migrate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/internal/value"
)

// A Mode says which coordinators a candidate knows. A candidate of this package says that it knows
// both; any other candidate knows only the one on which it stands.
type Mode string

// The modes, in the order in which a migration takes the processes through them.
const (
	OldOnly Mode = "old"  // From alone
	Both    Mode = "both" // with this package
	NewOnly Mode = "new"  // To alone
)

// A Candidate is one member in a line, as [Status] shows it. A process with a member on
// both coordinators is a candidate on each.
type Candidate struct {
	ID    string `json:"id"`    // of the process; for a foreign participant, what it says of itself
	Key   string `json:"key"`   // as the coordinator names the member
	Token uint64 `json:"token"` // its fencing token, by this coordinator alone
	// Mode is empty if this process may not read which candidates run with both.
	Mode Mode `json:"mode,omitempty"`
}

// candidates returns the members of the line that are not pinned. Those whose position is in both
// run with both coordinators, the others with the one that alone names; both is nil if that is not
// known.
func candidates(l header.Line, alone Mode, both map[uint64]bool) []Candidate {
	out := []Candidate{}
	for _, m := range l.Members {
		if m.Pinned {
			continue
		}
		c := Candidate{Key: m.Key, Token: l.Token(m)}
		c.ID = value.ID(m.Value)
		switch {
		case both[m.Position]:
			c.Mode = Both
		case both != nil:
			c.Mode = alone
		}
		out = append(out, c)
	}
	return out
}

// with returns the candidates that have the mode.
func with(mode Mode, all []Candidate) []Candidate {
	return slices.DeleteFunc(slices.Clone(all), func(c Candidate) bool { return c.Mode != mode })
}

// String names the candidate for people.
func (c Candidate) String() string { return kit.Clip(c.ID) + " (" + c.Key + ")" }

// maxNamed is how many candidates a sentence names.
const maxNamed = 100

func named(all []Candidate) string {
	var out []string
	for _, c := range all[:min(len(all), maxNamed)] {
		out = append(out, c.String())
	}
	if more := len(all) - maxNamed; more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(out, ", ")
}
