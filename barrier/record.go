package barrier

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/succession-dev/succession/backend"
)

// rounds are for whom a barrier has opened: of each round the positions of those who were counted,
// in order. It is what the record of the barrier says. Rounds of which nobody stands any more are dropped,
// except for the newest.
type rounds [][]uint64

// stored is the record of a barrier. It begins unlike that of an election.
type stored struct {
	Rounds rounds `json:"rounds"`
}

// suffix is added to the name of a barrier to name its record.
const suffix = "-open"

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

// of returns the round in which m was counted, or nil.
func (rs rounds) of(m backend.Member) []uint64 {
	for _, round := range rs {
		if _, counted := slices.BinarySearch(round, m.Position); counted {
			return round
		}
	}
	return nil
}

// with returns rs with one round more, and without those of which nobody is in line.
func (rs rounds) with(round []uint64, line []backend.Member) rounds {
	var out rounds
	for _, old := range rs {
		if slices.ContainsFunc(line, func(m backend.Member) bool { return rounds{old}.of(m) != nil }) {
			out = append(out, old)
		}
	}
	return append(out, round)
}

// A size is how many participants a barrier is for. The value of a member begins with it, after
// the ID.
type size int

const sizeText = "barrier of "

func (n size) String() string { return sizeText + strconv.Itoa(int(n)) }

// sizeOf returns what m says, or false if it is no participant of a barrier.
func sizeOf(m backend.Member) (size, bool) {
	_, value, _ := strings.Cut(m.Value, "\n")
	first, _, _ := strings.Cut(value, "\n")
	digits, is := strings.CutPrefix(first, sizeText)
	n, err := strconv.Atoi(digits)
	return size(n), is && err == nil
}
