package barrier

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/succession-dev/succession/backend"
)

// A round is who was counted when a barrier opened: of each call its id, and the position of its
// member.
type round map[string]uint64

// has reports whether m was counted in the round.
func (r round) has(m backend.Member) bool {
	p, ok := partOf(m)
	return ok && r[p.id] == m.Position
}

// rounds are those for which a barrier has opened, as its record says. Rounds of which nobody
// stands any more are dropped, except for the newest.
type rounds []round

// stored is the record of a barrier. It begins unlike that of an election.
type stored struct {
	Rounds rounds `json:"rounds"`
}

func parse(r backend.Record) (rounds, error) {
	if r.Version == backend.Absent {
		return nil, nil
	}
	var st stored
	dec := json.NewDecoder(bytes.NewReader(r.Value))
	dec.DisallowUnknownFields()
	err := dec.Decode(&st)
	if _, more := dec.Token(); err == nil && more != io.EOF {
		err = fmt.Errorf("more follows it")
	}
	if err != nil {
		return nil, fmt.Errorf("barrier: %w record %s: it is not that of a barrier: %v; choose a name that nothing else uses", backend.ErrInvalid, r.Name, err)
	}
	return st.Rounds, nil
}

func (rs rounds) encode() []byte {
	b, err := json.Marshal(stored{rs})
	if err != nil {
		panic(err) // numbers always marshal
	}
	return b
}

// of returns the round in which a call was counted, or nil.
func (rs rounds) of(id string) round {
	for _, r := range rs {
		if _, counted := r[id]; counted {
			return r
		}
	}
	return nil
}

// with returns rs with one round more, and without those of which no call stands in line.
func (rs rounds) with(r round, line []backend.Member) rounds {
	var out rounds
	for _, old := range rs {
		if slices.ContainsFunc(line, func(m backend.Member) bool {
			p, ok := partOf(m)
			return ok && old[p.id] != 0
		}) {
			out = append(out, old)
		}
	}
	return append(out, r)
}

// waiting returns those in line who wait for the barrier to open: of each call that was not counted
// the newest member. An earlier one may stand a while longer than its session.
func (rs rounds) waiting(line []backend.Member) (out []backend.Member) {
	seen := make(map[string]bool)
	for _, m := range slices.Backward(line) {
		if p, ok := partOf(m); ok && !seen[p.id] && rs.of(p.id) == nil {
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
	id string // tells the call from all others; members that it has one after the other share it
}

func (p part) String() string { return fmt.Sprintf("barrier of %d: %s", p.n, p.id) }

// partOf returns what m says, or false if it is no participant of a barrier.
func partOf(m backend.Member) (p part, ok bool) {
	_, value, _ := strings.Cut(m.Value, "\n")
	first, _, _ := strings.Cut(value, "\n")
	_, err := fmt.Sscanf(first, "barrier of %d: %s", &p.n, &p.id)
	return p, err == nil
}
