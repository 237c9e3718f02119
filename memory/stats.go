package memory

import (
	"maps"
	"slices"
	"time"

	"github.com/succession-dev/succession/backend"
)

// An Op is a kind of request. It is also the Op of a [backend.Error].
type Op string

// The operations: those of a session, and the heartbeats that keep it.
const (
	OpOpen       Op = "session"
	OpHeartbeat  Op = "heartbeat"
	OpClose      Op = "close"
	OpJoin       Op = "join"
	OpAhead      Op = "ahead"
	OpWatchPlace Op = "watch place"
	OpGone       Op = "gone"
	OpLeave      Op = "leave"
	OpPin        Op = "pin"
	OpLine       Op = "line"
	OpHead       Op = "head"
	OpLines      Op = "lines"
	OpSurvey     Op = "survey"
	OpWatchLine  Op = "watch line"
	OpAppend     Op = "append"
	OpRemove     Op = "remove"
	OpFree       Op = "free"
	OpClaim      Op = "claim"
	OpGet        Op = "get"
	OpPut        Op = "put"
	OpDelete     Op = "delete"
	OpList       Op = "list"
	OpReadAll    Op = "read all"
	OpWatch      Op = "watch"
	OpRefresh    Op = "refresh"
)

// A Source is the key of Counts: a client and an operation.
type Source struct {
	Client string // the name given to [Coordinator.Client]
	Op     Op
}

// Counts are numbers of requests or wake-ups. They are a copy, which the caller may change.
type Counts map[Source]int

// Total returns the sum over all clients, of the given ops or, if there are none, of all.
func (n Counts) Total(ops ...Op) int {
	return n.sum(func(s Source) bool { return len(ops) == 0 || slices.Contains(ops, s.Op) })
}

// Of returns the sum for one client, of the given ops or, if there are none, of all.
func (n Counts) Of(client string, ops ...Op) int {
	return n.sum(func(s Source) bool {
		return s.Client == client && (len(ops) == 0 || slices.Contains(ops, s.Op))
	})
}

// Since returns the differences to earlier, without zeros.
func (n Counts) Since(earlier Counts) Counts {
	out := make(Counts)
	for s, k := range n {
		if d := k - earlier[s]; d != 0 {
			out[s] = d
		}
	}
	return out
}

func (n Counts) sum(pick func(Source) bool) int {
	total := 0
	for s, k := range n {
		if pick(s) {
			total += k
		}
	}
	return total
}

// Requests returns how many requests have arrived at the coordinator since New.
func (c *Coordinator) Requests() Counts {
	c.lock()
	defer c.unlock()
	return maps.Clone(c.requests)
}

// Bytes returns how many bytes of keys and values the coordinator's answers to the client had, since
// New.
func (c *Coordinator) Bytes(client string) int64 {
	c.lock()
	defer c.unlock()
	return c.bytes[client]
}

// size returns how many bytes of keys and values an answer has.
func size(answer any) (n int64) {
	switch v := answer.(type) {
	case backend.Member:
		return int64(len(v.Key) + len(v.Value))
	case backend.Place:
		return size(v.Ahead)
	case backend.Line:
		for _, m := range v.Members {
			n += size(m)
		}
	case backend.Record:
		return int64(len(v.Value))
	case []string:
		for _, name := range v {
			n += int64(len(name))
		}
	}
	return n
}

// Wakeups returns how many blocking calls (Gone, WatchPlace, WatchLine, Watch) the coordinator has answered
// because of an event, since New. It does not count calls that could be answered at once.
func (c *Coordinator) Wakeups() Counts {
	c.lock()
	defer c.unlock()
	return maps.Clone(c.wakeups)
}

// SessionInfo is what the coordinator knows of a session.
type SessionInfo struct {
	Client  string
	Expires time.Time        // when it ends if the client stays silent; while paused, the time before Pause
	Members []backend.Member // the members that it joined and that are not pinned, in the order of joining
}

// Sessions returns the sessions that have not ended, oldest first.
func (c *Coordinator) Sessions() []SessionInfo {
	c.lock()
	defer c.unlock()
	var out []SessionInfo
	for _, l := range c.sorted() {
		out = append(out, SessionInfo{l.of.name, l.expires, slices.Clone(l.members)})
	}
	return out
}

// Members returns the members of the line in order, as the coordinator knows them.
func (c *Coordinator) Members(line string) []backend.Member {
	c.lock()
	defer c.unlock()
	return c.store.members(line)
}

// Record returns the record as the coordinator knows it. Its Version is [backend.Absent] if
// there is none.
func (c *Coordinator) Record(name string) backend.Record {
	c.lock()
	defer c.unlock()
	return c.store.get(name)
}

// Index returns the index of the newest change in the log.
func (c *Coordinator) Index() uint64 {
	c.lock()
	defer c.unlock()
	return c.store.index
}
