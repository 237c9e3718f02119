package backend

import (
	"context"
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

// Records is a coordinator's store of small values, beside the lines. Names follow
// [CheckName]; the record with the name of an election is its [Header]. The methods block
// for about a round trip, except Watch.
type Records interface {
	// Get returns the record, at least as fresh as this session's last write and last [Refresher] Refresh. A
	// record that does not exist has the version [Absent] and is not an error.
	Get(ctx context.Context, name string) (Record, error)

	// Put writes value, at most [MaxRecord] bytes, if the condition holds, and returns
	// the record's new version. Otherwise it fails with [ErrVersion] or
	// [ErrNotMember]. After [ErrUnavailable] the write may have happened: Get tells.
	Put(ctx context.Context, name string, value []byte, cond *If) (Version, error)

	// Delete removes the record if the condition holds. It is not an error that there
	// is no record, unless the condition names a version.
	Delete(ctx context.Context, name string, cond *If) error

	// List returns the full names of the records directly under dir, sorted; dir
	// follows [CheckName]. A coordinator that keeps records in folders may list a
	// folder like a record.
	List(ctx context.Context, dir string) ([]string, error)

	// ReadAll returns the records directly under dir in the order of their names: those of List, each as fresh
	// as by Get. They need not have been read at one instant. If the coordinator can be asked for
	// the values of a folder, ReadAll takes as few requests for many records as for one.
	ReadAll(ctx context.Context, dir string) ([]Record, error)

	// Watch blocks until the record has another version than after, and returns the
	// record as it then is. A slow caller may miss versions, but never the newest one.
	// If after is 0, which is no record's version, Watch returns at once.
	Watch(ctx context.Context, name string, after Version) (Record, error)
}

// A Header is the record of an election (law L7). It has all that must be known of the election
// besides its members, and is stored as JSON.
type Header struct {
	// Fence is added to a member's position to make its token. It is at most [MaxFence].
	Fence uint64 `json:"fence,omitempty"`
	// Acknowledged is the token of the newest term whose leader has said that its work
	// has begun.
	Acknowledged uint64 `json:"acknowledged,omitempty"`
	// Resign is the token of the newest term whose leader has been asked to
	// resign. No leader obeys a larger number than its own token.
	Resign uint64 `json:"resign,omitempty"`
	// Asked is for people. It says who has asked for Resign, and after a newline why; or it is
	// empty.
	Asked string `json:"asked,omitempty"`
	// Sealed is the URL of the coordinator that the election has moved to: nobody
	// leads here again. Empty means that the election is here.
	Sealed string `json:"sealed,omitempty"`
	// Choice says who is to lead, where that is not simply the next in line. The zero value means
	// that it is.
	Choice Choice `json:"choice,omitzero"`
	// Migration is the newest move of this election between two coordinators; the zero
	// value means that there was none.
	Migration Migration `json:"migration,omitzero"`
	// Later has the fields of the header, and of its Choice and Migration, that only a later
	// version of this package knows, as a JSON object. It may be empty. It is kept when the header
	// is written again.
	Later string `json:"-"`
}

// A Choice is what a header says of who is to lead. Package elect writes and reads it; drivers need not.
// The line is never reordered: a candidate that is first and not the one to lead leaves, and joins again.
type Choice struct {
	// Readiness says that there are, or were, candidates that can be unready.
	Readiness bool `json:"readiness,omitempty"`
	// Ranked says that there are, or were, candidates with a priority or a site.
	Ranked bool `json:"ranked,omitempty"`
	// Site is that of the newest leader that had a site.
	Site string `json:"site,omitempty"`
	// Wish names the member that is to lead next.
	Wish Wish `json:"wish,omitzero"`
	// Gate is the position of the gate that pauses the election; see [Line.Paused].
	Gate uint64 `json:"gate,omitempty"`
}

// A Wish names a member that is to lead. It lapses when that member leads or has gone, or when
// Until has passed.
type Wish struct {
	Key      string `json:"key,omitempty"`
	Position uint64 `json:"position,omitempty"`
	// Until is in milliseconds since 1970, by the clocks of the candidates. No guarantee rests on it.
	Until int64 `json:"until,omitempty"`
}

// A Migration is what a header says of the election's move from one coordinator to
// another. Package migrate writes and reads it. Drivers read only Gate, which says who
// may lead without being first ([Session] Deadline).
type Migration struct {
	// ID tells this migration from every other.
	ID string `json:"id,omitempty"`
	// From and To are the addresses of the two coordinators.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Step is how far the migration has come, as far as this coordinator knows.
	Step string `json:"step,omitempty"`
	// Gate is the position of the gate. It stands on the coordinator that the election
	// moves to; in the header on the other one Gate is 0.
	Gate uint64 `json:"gate,omitempty"`
	// Seal says that the gate was a seal before the migration began. If the migration
	// is aborted, it is a seal again.
	Seal bool `json:"seal,omitempty"`
	// Over is the position of the gate of a migration in the opposite direction that
	// was begun at the same time and has to give way to this one; 0 if there is none.
	Over uint64 `json:"over,omitempty"`
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
