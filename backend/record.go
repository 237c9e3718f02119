package backend

import (
	"fmt"
)

// A Version names one state of a record: a positive number. Each write gives the record
// another one. A record never has the same version twice, not even after it was deleted and written
// again.
type Version int64

const (
	// Absent is the version of a record that does not exist.
	Absent Version = -1
	// Any stands for any version, also Absent, in the condition of a write. No record has it.
	Any Version = 0
)

// A Record is a small persistent value under a name.
type Record struct {
	Name    string
	Value   []byte
	Version Version // Absent when there is no such record
}

// If is the condition of a write. The zero value and nil are no condition.
type If struct {
	// Version is the version that the record must still have. The zero value, [Any], means any; [Absent]
	// means that there must be no record.
	Version Version
	// Member must still stand in its line; the zero Member means no such condition.
	// The coordinator checks it in the same atomic step in which it writes. So it
	// refuses the write once another member can lead, whatever clocks do.
	Member Member
}

// A Header is the record of an election (law L7), stored as JSON. It has what drivers decide by, and
// the notes of the packages above them.
type Header struct {
	// Fence is added to a member's position to make its token. It is at most [MaxFence].
	Fence uint64 `json:"fence,omitempty"`
	// Gate is the position of the gate of a move: a pinned member, which stands at the head of the line
	// on the coordinator that the election moves to, and may have gone since. The member just behind it
	// may lead ([Session] Deadline): a leader on the old coordinator has its place there before the
	// election moves. 0 means that no gate was set.
	Gate uint64 `json:"gate,omitempty"`
	// Sealed is the URL of the coordinator that the election has moved to: nobody
	// leads here again. Empty means that the election is here.
	Sealed string `json:"sealed,omitempty"`
	// Needs says, for people, what whoever leads must know of, if a later version has noted something
	// that no leader may ignore; see [Header.Understood]. This version writes none.
	Needs string `json:"needs,omitempty"`
	// Notes is what the packages that use drivers keep here, and drivers pass on: a JSON object with a
	// member for each package, or empty. "elect" and "migrate" are those of this module. Others keep
	// what they find, and it moves along with the election.
	Notes string `json:"notes,omitempty"`
}

// MaxFence is the largest fence of an election. Positions are smaller than it too. So a token,
// their sum, never wraps, and fits the signed 64-bit number of a database.
const MaxFence uint64 = 1 << 62

// Token returns the token of a member at the position: the sum of the fence and the position. It
// fails with [ErrHeader] if the fence is larger than [MaxFence], or the position is not smaller
// than it: a token that wrapped would be smaller than those before it.
func (h Header) Token(position uint64) (uint64, error) {
	if err := h.check(); err != nil {
		return 0, err
	}
	if position >= MaxFence {
		return 0, fmt.Errorf("%w: position %d gives no token, as positions are smaller than 2^62 = %d; find out why the log of the coordinator is that far",
			ErrHeader, position, MaxFence)
	}
	return h.Fence + position, nil
}

// check fails if the fence is too large.
func (h Header) check() error {
	if h.Fence <= MaxFence {
		return nil
	}
	return fmt.Errorf("%w: its fence %d is larger than 2^62 = %d, and tokens would wrap. Find out who wrote it; "+
		"delete the record of the election, and the one of that name with .fence behind it, by the coordinator's own tools; "+
		"then raise the fence above every token that anybody holds", ErrHeader, h.Fence, MaxFence)
}
