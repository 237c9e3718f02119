package backend

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
)

// A Version is one state of a record: a positive number. It changes with every
// write, also across deletion, and a record never has the same version twice.
type Version int64

// Absent is the version of a record that does not exist.
const Absent Version = -1

// A Record is a small persistent value under a name.
type Record struct {
	Name    string
	Value   []byte
	Version Version // Absent when there is no such record
}

// If is the condition of a write. The zero value and nil are no condition.
type If struct {
	// Version is the version that the record must still have; 0 is any, [Absent]
	// demands that there is no record.
	Version Version
	// Member must still stand in its line; the zero Member demands nothing. The
	// coordinator checks it in the same atomic step as it writes, so the write is
	// refused once the member's term is over, whatever clocks do.
	Member Member
}

// Records is a coordinator's store of small persistent values. Names follow
// [CheckName]; the name of an election is the name of its own record ([Header]).
// Methods block for about a round trip, except for Watch.
type Records interface {
	// Get returns the record, at least as fresh as this session's last write. A
	// record that does not exist has the version [Absent] and is not an error.
	Get(ctx context.Context, name string) (Record, error)

	// Put writes value, at most [MaxRecord] bytes, where the condition holds, and
	// returns the record's new version. It fails with [ErrVersion] or
	// [ErrNotMember] where the condition does not hold. After [ErrUnavailable] the
	// write may or may not have happened: Get tells.
	Put(ctx context.Context, name string, value []byte, cond *If) (Version, error)

	// Delete removes the record where the condition holds. A record that does
	// not exist is not an error, unless the condition names a version.
	Delete(ctx context.Context, name string, cond *If) error

	// List returns the whole names of the records directly under dir, sorted; dir
	// follows [CheckName]. Where records are kept in folders, a folder on the way
	// to a record may be listed like a record.
	List(ctx context.Context, dir string) ([]string, error)

	// Watch blocks until the record has another version than after, and returns
	// it as it then is; a slow caller misses what lay between, never the newest.
	// After 0, which no record has, it returns at once.
	Watch(ctx context.Context, name string, after Version) (Record, error)
}

// A Header is the record of an election (law L7): what must be known of it apart
// from who stands in line. It is stored as JSON.
type Header struct {
	// Fence is added to a member's position to make its token.
	Fence uint64 `json:"fence,omitempty"`
	// Acknowledged is the token of the newest term whose leader has said that it
	// has taken up its work.
	Acknowledged uint64 `json:"acknowledged,omitempty"`
	// Resign is the token of the newest term whose leader has been asked to
	// resign.
	Resign uint64 `json:"resign,omitempty"`
	// Sealed is where the election went: nobody leads here again. Empty while
	// the election is open.
	Sealed string `json:"sealed,omitempty"`
	// Migration is the move between two coordinators that this election is part
	// of, or was; the zero value where it never moved.
	Migration Migration `json:"migration,omitzero"`
}

// A Migration is what an election's record says of its move from one coordinator
// to another. Package migrate writes it, and is alone to interpret it; to a driver
// the Gate says who may lead without being first ([Session] Deadline).
type Migration struct {
	// ID tells this migration from every other.
	ID string `json:"id,omitempty"`
	// From and To are the addresses of the two coordinators.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Step is how far the migration has come, as this coordinator knows it.
	Step string `json:"step,omitempty"`
	// Gate is the position of the gate, the pinned member at the head of the line
	// of the coordinator that the election moves to; 0 in the other's record.
	Gate uint64 `json:"gate,omitempty"`
	// Seal says that the gate was a seal before the migration began: it becomes
	// one again if that is aborted.
	Seal bool `json:"seal,omitempty"`
	// Over is the position of the gate of an opposite migration over which this one
	// goes on; 0 for none.
	Over uint64 `json:"over,omitempty"`
}

// storedHeader begins every stored header with {"succession":FORMAT. An
// election's path may have carried a stranger's data before (peers create it with
// data of their own): what does not begin so is not ours, and counts as no header.
type storedHeader struct {
	Format int `json:"succession"`
	Header
}

// Encode returns h as it is stored.
func (h Header) Encode() []byte {
	b, err := json.Marshal(storedHeader{Format: 1, Header: h})
	if err != nil {
		panic(err) // numbers and strings always marshal
	}
	return b
}

// ParseHeader reads the record of an election. Data that is empty, or that no
// driver of this project wrote, is the zero Header. Data that begins as ours does
// and cannot be understood is an error: to take its fence for 0 would let tokens
// fall.
func ParseHeader(b []byte) (Header, error) {
	if !bytes.HasPrefix(b, []byte(`{"succession":`)) {
		return Header{}, nil
	}
	var s storedHeader
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil {
		return Header{}, fmt.Errorf("%w: %v", ErrHeader, err)
	}
	if dec.More() {
		return Header{}, fmt.Errorf("%w: more follows it", ErrHeader)
	}
	if s.Format != 1 {
		return Header{}, fmt.Errorf("%w: format %d, this version reads format 1", ErrHeader, s.Format)
	}
	return s.Header, nil
}
