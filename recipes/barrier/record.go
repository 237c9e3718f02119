package barrier

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/value"
)

// A round is the calls that were counted when a barrier opened: the id of each, and the position of
// its member.
type round map[string]uint64

// has reports whether m was counted in the round.
func (r round) has(m backend.Member) bool {
	p, ok := partOf(m)
	return ok && r[p.id] == m.Position
}

// An opening is the record of a barrier: the rounds for which it has opened. It begins unlike the
// record of an election.
//
// A call whose session has ended looks here for itself when it has a new one. So a round is kept
// while one of its calls stands in line, and after that until a few hundred more have been counted.
type opening struct {
	Rounds []round `json:"rounds"`
	// Forgotten is the largest position in a round that was dropped.
	Forgotten uint64 `json:"forgotten,omitempty"`
}

// remembered is how many calls the kept rounds may have, not counting the rounds of which a call
// stands in line.
const remembered = 256

func parse(r backend.Record) (o opening, err error) {
	if r.Version == backend.Absent {
		return o, nil
	}
	dec := json.NewDecoder(bytes.NewReader(r.Value))
	dec.DisallowUnknownFields()
	err = dec.Decode(&o)
	if _, more := dec.Token(); err == nil && more != io.EOF {
		err = fmt.Errorf("more follows it")
	}
	if err != nil {
		return o, fmt.Errorf("barrier: %w record %s: it is not that of a barrier: %v; choose a name that nothing else uses", backend.ErrInvalid, r.Name, err)
	}
	return o, nil
}

func (o opening) encode() []byte {
	b, err := json.Marshal(o)
	if err != nil {
		panic(err) // numbers always marshal
	}
	return b
}

// of returns the round in which a call was counted, or nil.
func (o opening) of(id string) round {
	for _, r := range o.Rounds {
		if _, counted := r[id]; counted {
			return r
		}
	}
	return nil
}

// with returns o with one more round, and without the rounds that need not be remembered.
func (o opening) with(r round, line []backend.Member) opening {
	out := opening{Rounds: []round{r}, Forgotten: o.Forgotten}
	calls := len(r)
	for _, old := range slices.Backward(o.Rounds) {
		stands := slices.ContainsFunc(line, func(m backend.Member) bool {
			p, ok := partOf(m)
			return ok && old[p.id] != 0
		})
		if calls += len(old); stands || calls <= remembered {
			out.Rounds = append(out.Rounds, old)
			continue
		}
		for _, position := range old {
			out.Forgotten = max(out.Forgotten, position)
		}
	}
	slices.Reverse(out.Rounds)
	return out
}

// largest returns the largest position of a call that was counted.
func (o opening) largest() uint64 {
	position := o.Forgotten
	for _, r := range o.Rounds {
		for _, p := range r {
			position = max(position, p)
		}
	}
	return position
}

// forgotten reports whether the call may have been counted in a round that was dropped.
func (o opening) forgotten(p part) bool { return p.first != 0 && p.first <= o.Forgotten }

// waiting returns the members that wait for the barrier to open: the newest member of each call
// that was not counted. An earlier member of a call may stand for a while after its session. A call
// that may have been counted in a dropped round does not wait: it is about to fail.
func (o opening) waiting(line []backend.Member) (out []backend.Member) {
	seen := make(map[string]bool)
	for _, m := range slices.Backward(line) {
		if p, ok := partOf(m); ok && !seen[p.id] && o.of(p.id) == nil && !o.forgotten(p) {
			seen[p.id] = true
			out = append(out, m)
		}
	}
	slices.Reverse(out)
	return out
}

// A part is what a member says of its call, after the ID.
type part struct {
	n  int    // the number of participants
	id string // tells the call from all others; all members of the call, one after the other, have it
	// first is 0 in the call's first member. Later members have the position of that one here. If it
	// is not known, they have one that is not larger.
	first uint64
}

const since = " since %d"

func (p part) String() string {
	s := fmt.Sprintf("barrier of %d: %s", p.n, p.id)
	if p.first != 0 {
		s += fmt.Sprintf(since, p.first)
	}
	return s
}

// partOf returns what m says, or false if it is no participant of a barrier.
func partOf(m backend.Member) (p part, ok bool) {
	first, _, _ := strings.Cut(value.Parse(m.Value).Text, "\n")
	n, _ := fmt.Sscanf(first, "barrier of %d: %s since %d", &p.n, &p.id, &p.first)
	return p, n >= 2
}
