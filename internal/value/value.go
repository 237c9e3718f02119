// Package value has what the value of a member says: who it is, what it tells besides, and how it ranks.
//
//	web-1                        the ID, which clients of other libraries show as it is
//	http://10.0.0.7              what the candidate has as its Value, if anything
//	^^{"priority":2}             the rank behind U+001E, if there is one
//
// It is all that elections, recipes, migrations and the command know of that form.
package value

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/succession-dev/succession/backend"
)

// Of is what the value of a member says.
type Of struct {
	ID   string // one line
	Text string // may have several lines
	Rank
}

// A Rank is how a candidate compares with others of its line. The zero Rank is not written down.
type Rank struct {
	Priority int    `json:"priority,omitempty"`
	Site     string `json:"site,omitempty"`
}

// sign stands in no ID, Text or Site. It is at the beginning of a line, as foreign clients show the first.
const sign = "\x1e"

// MaxSite is the longest Site, in bytes: the header has it too.
const MaxSite = 255

// String returns the value of the member.
func (o Of) String() string {
	s := o.ID
	if o.Text != "" {
		s += "\n" + o.Text
	}
	if o.Rank == (Rank{}) {
		return s
	}
	b, err := json.Marshal(o.Rank)
	if err != nil {
		panic(err) // numbers and strings always marshal
	}
	return s + "\n" + sign + string(b)
}

// Parse takes the value of a member apart, whoever has written it. A rank that cannot be read, as of a later
// version, is the zero Rank.
func Parse(s string) (o Of) {
	s, rank, ranked := strings.Cut(s, "\n"+sign)
	if ranked && json.Unmarshal([]byte(rank), &o.Rank) != nil {
		o.Rank = Rank{}
	}
	o.ID, o.Text, _ = strings.Cut(s, "\n")
	return o
}

// ID returns the ID in the value of a member.
func ID(s string) string { return Parse(s).ID }

// Check says what keeps o from being written and read again. The error wraps [backend.ErrInvalid].
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
