package example

import "time"

// A request is the body of POST /operation. Each operation uses the fields that it needs.
type request struct {
	Log           string // the log that the client knows; empty for any
	Session       string
	TTL           time.Duration
	Line, Key     string  // of a member
	Position      uint64  // 0 for any
	Members       *int    // of the line that the client knows, of which Position is the last; nil if it does not wait for another
	Place         *uint64 // the position in front of the member, or its own, that the client knows, with RecordVersion; nil if it does not wait for another
	Name          string  // of a record
	Value         []byte
	RecordVersion int64  // 0 for any, -1 for a record that does not exist
	Once          string // by this the server knows a pin that it has done before
}

// An answer is the body of an answer with status 200. Other statuses have no fields.
type answer struct {
	Log, Session string
	Line         []entry
	Names        []string
	record
}

// An entry is a member of a line. Session is empty if the member is pinned, by the request with that Once.
type entry struct {
	Key, Session string
	Value        []byte
	Position     uint64
	Once         string
}

type record struct {
	Value   []byte
	Version int64
}
