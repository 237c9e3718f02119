package backend

import (
	"context"
	"time"
)

// A Pinner makes members outlive their session. A session that cannot do that embeds
// kit.NoPins.
type Pinner interface {
	// Pin makes m, which this session joined, outlive the session; m keeps its place.
	// In the same atomic step Pin writes h as the header of m's election, if the header
	// still has the version at ([Absent]: if there is none). Otherwise it does nothing
	// and fails with [ErrVersion]. It fails with [ErrDenied] if another session joined
	// m. It is not an error that m is pinned already and the header is h.
	Pin(ctx context.Context, m Member, h Header, at Version) error
}

// A Sharer lets members of a line be first together, as readers do that share a lock. A session
// that cannot do that embeds kit.NoShares.
type Sharer interface {
	// JoinShared is Join for a member that waits only for members that are not shared (law
	// L9).
	JoinShared(ctx context.Context, line, value, record string) (Joined, error)

	// Claim is JoinShared for a member that claims an item of another line ([Items]). The value
	// ends with a newline and the item's [Member.Subject]. Claim fails with [ErrTaken], and leaves
	// no member, if the item does not stand, or if another claim for it stands in front. So as long
	// as a claim that Claim has returned stands, nobody else gets one for the item. If two sessions
	// claim an item at the same moment, both may fail.
	Claim(ctx context.Context, line, value, record string, item Member) (Joined, error)
}

// Items are members that wait for nobody and belong to no session, such as the items of a queue:
// each is pinned from the start, and stands until somebody removes it. A session that cannot keep
// items embeds kit.NoItems.
type Items interface {
	// Append adds an item with the given value at the end of the line, and returns it (law
	// L10). A line that does not exist comes into being. Append does not try again if its answer is
	// lost. So if it fails with [ErrUnavailable], or because ctx or the session has ended, the item
	// may stand, or come to stand: give each item a value of its own to find out.
	Append(ctx context.Context, line, value string) (Member, error)

	// Remove removes the item m if the member by, which stands in any line, still stands.
	// The coordinator checks that in the same atomic step; otherwise nothing is removed, and
	// Remove fails with [ErrNotMember]. It is not an error that m has gone already, if by
	// stands. Remove fails with [ErrDenied] if m stands and is not pinned. After
	// [ErrUnavailable] m may have gone: Remove may be repeated.
	Remove(ctx context.Context, m, by Member) error

	// Free returns the first member of the line items for which no claim stands in the line claims.
	// It reads both at one instant, or the claims first. It fails with [ErrTaken] if there is none,
	// and with [ErrForeign] if it meets a member that is no item, or no claim. It is as fresh as
	// Line. If the coordinator can be asked for the first of many, the cost does not grow with the
	// length of the line items.
	Free(ctx context.Context, items, claims string) (Member, error)
}

// A Refresher can make the reads of a session fresh. A session whose reads are always fresh embeds
// kit.AlwaysFresh.
type Refresher interface {
	// Refresh returns when the session's reads, such as Get, List, Line and Head, are at least as fresh as each
	// write that had been answered when Refresh was called, whosever it was. Without it they may be
	// older, if the coordinator answers reads from servers that lag behind; there Refresh blocks
	// for about a round trip. A caller that only follows changes needs no Refresh, nor does one
	// that writes on condition, unless it finds that there is nothing to write.
	Refresh(ctx context.Context) error
}

// Joined is a member that was just joined, and what its join has told of its place and of a record.
type Joined struct {
	Member
	Place *Place // nil if it is not known: Ahead tells
	// Record is nil if it is not known: Get tells. It may say [Absent] also of a record that has come into
	// being since, if the line has stood, with its header unchanged, since there was no such record. A
	// candidate does not need such a record; see [Dater].
	Record *Record
}

// A Heartbeat is a request that has kept a session alive.
type Heartbeat struct {
	// Number tells it from all other heartbeats of the process. All callers that trace a session
	// get the same number for the same heartbeat. 0 if the driver does not number them.
	Number uint64
	// RoundTrip is the time from when it was sent until it was known to count.
	RoundTrip time.Duration
	// Slack is how far ahead the session's Deadline was just before the heartbeat moved it; 0 if it
	// had passed.
	Slack time.Duration
}

// A Lister says which lines there are. Only people and their tools ask for that: an election knows
// its name. A session that cannot do that embeds kit.NoLines.
type Lister interface {
	// Lines returns the names of all lines in which members stand, and how many stand in each. It
	// is at least as fresh as Line. It reads the names of all members and records of the backend,
	// without their values. It blocks for about a round trip, or for one per name if the
	// coordinator knows no other way.
	Lines(ctx context.Context) (map[string]int, error)
}

// A Surveyor tells in one request how all elections stand, for tools that show a thousand of them.
// Elections never ask that. A session that would need a request for each line embeds kit.NoSurvey:
// Lines and Head tell the same.
type Surveyor interface {
	// Survey returns what is at each name of the backend: the first member of the line of that name, as Head
	// returns it, how many stand in the line, and the record of that name. A name with a record and
	// without members, such as an election with a header where nobody stands, is in the answer too.
	// It is at least as fresh as Line, and blocks for about a round trip. The answer is as long as
	// all that is stored.
	Survey(ctx context.Context) (map[string]Standing, error)
}

// A Standing is what a survey has of one name.
type Standing struct {
	Stand  int    // how many stand in the line
	First  Member // of the line; the zero value if Stand is 0
	Record Record // its Version is [Absent] if there is none
}

// Line returns the line with its first member alone, as Head does.
func (s Standing) Line() (l Line, err error) {
	l.Version = s.Record.Version
	if s.Stand > 0 {
		l.Members = []Member{s.First}
	}
	l.Header, err = ParseHeader(s.Record.Value)
	return l, err
}

// An ImportFinder finds members that no session has joined: somebody has imported them from
// elsewhere, or written them by hand. They stand for ever and are shown as pinned. Only people ask
// for that, after a restore; Leave removes such a member. On a coordinator where only sessions can
// make members, the session embeds kit.NoImports.
type ImportFinder interface {
	// Imported returns the imported members of a line, in order. It is at least as fresh as Line.
	Imported(ctx context.Context, line string) ([]Member, error)
}

// A Dater is for a coordinator whose rights do not cover names that nobody has taken yet. On
// ZooKeeper a client that may create one name on the prefix may create any. So a record beside an
// election, such as the copy of its fence, may come from a client without a right on the election.
// On all other coordinators a session embeds kit.NoDates, and every such record is believed.
type Dater interface {
	// Outlived reports whether the record is older than what the line has now: the line does not
	// exist, or it came into being, or lost its header, after the record came into being. It needs
	// no right on either.
	Outlived(ctx context.Context, record, line string) (bool, error)
}
