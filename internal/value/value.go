// Package value reads and writes the value of a member: its ID, its text, and its rank.
//
//	web-1                        the ID, which clients of other libraries show as it is
//	http://10.0.0.7              what the candidate has as its Value, if anything
//	^^{"priority":2}             behind U+001E how it compares with others, or that it is a gate; if it says so
//
// Elections, recipes, migrations and the command know that form only from here.
package value

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/succession-dev/succession/backend"
)

// Of has the parts of a member's value.
type Of struct {
	ID   string // one line
	Text string // may have several lines
	Rank
	// Gate says that this member is the gate of a pause or of a migration. It stands for a moment before it is pinned, and
	// nobody may take it for a leader then.
	Gate bool
}

// behind is what stands behind the sign.
type behind struct {
	Rank
	Gate bool `json:"gate,omitempty"`
}

// A Rank says how a candidate compares with others of its line. The zero Rank is not written.
type Rank struct {
	Priority int    `json:"priority,omitempty"`
	Site     string `json:"site,omitempty"`
}

// sign stands in no ID, Text or Site. It begins a line of its own, because foreign clients show the
// first line.
const sign = "\x1e"

// MaxSite is the longest Site, in bytes: the header has it too.
const MaxSite = 255

// String returns the value of the member.
func (o Of) String() string {
	s := o.ID
	if o.Text != "" {
		s += "\n" + o.Text
	}
	more := behind{o.Rank, o.Gate}
	if more == (behind{}) {
		return s
	}
	b, err := json.Marshal(more)
	if err != nil {
		panic(err) // numbers and strings always marshal
	}
	return s + "\n" + sign + string(b)
}

// Parse splits the value of a member, of any library. What stands behind the sign is nothing if it cannot be read,
// as that of a later version.
func Parse(s string) (o Of) {
	s, rest, found := strings.Cut(s, "\n"+sign)
	var more behind
	if found && json.Unmarshal([]byte(rest), &more) == nil {
		o.Rank, o.Gate = more.Rank, more.Gate
	}
	o.ID, o.Text, _ = strings.Cut(s, "\n")
	return o
}

// ID returns the ID in the value of a member.
func ID(s string) string { return Parse(s).ID }

// Check returns why o cannot be written and read again. The error wraps [backend.ErrInvalid].
func (o Of) Check() error {
	switch {
	case strings.ContainsAny(o.ID, "\r\n"):
		return fmt.Errorf("%w ID %q: it is more than one line", backend.ErrInvalid, o.ID)
	case strings.ContainsAny(o.Site, "\r\n"):
		return fmt.Errorf("%w Site %q: it is more than one line", backend.ErrInvalid, o.Site)
	case strings.Contains(o.ID+o.Text+o.Site, sign):
		return fmt.Errorf("%w ID, Value or Site: the character U+001E stands between them and the priority; leave it out", backend.ErrInvalid)
	case len(o.Site) > MaxSite:
		return fmt.Errorf("%w Site %.32q...: %d bytes, at most %d are possible", backend.ErrInvalid, o.Site, len(o.Site), MaxSite)
	}
	if err := backend.CheckValue(o.String()); err != nil {
		return fmt.Errorf("ID, Value, Priority and Site: %w", err)
	}
	return nil
}

// Named names a member in messages.
func Named(m backend.Member) string { return fmt.Sprintf("%s (%s)", ID(m.Value), m.Key) }
