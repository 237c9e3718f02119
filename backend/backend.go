package backend

import (
	"context"
	"os"
	"time"
)

// A Backend is a process's handle on one coordinator. It has at most one session at a
// time. It is safe for concurrent use.
type Backend interface {
	// Session returns the live session, and opens one if there is none. It blocks
	// until the coordinator has confirmed a new session, ctx ends, or the driver's
	// connect timeout passes ([ErrUnavailable]). A session that has ended never comes
	// back: after [ErrSessionEnded] call Session again, and join again.
	//
	// It fails with [ErrReset] if the coordinator's log has gone back since this
	// backend last saw it, with [ErrDenied] if the coordinator refuses the
	// credentials, and with [ErrClosed] after Close.
	Session(ctx context.Context) (Session, error)

	// Close ends the session, if there is one, and releases everything that the
	// backend holds. It blocks for a bounded time, also if the coordinator cannot be
	// reached: the error then says that the members stand until the coordinator ends
	// the session. Closing twice is not an error.
	Close() error
}

// For returns the backend of one election, for a b that keeps each election on one of several
// coordinators, as that of package spread does: b then has a method For(election string) Backend. A session
// has one end and one deadline, and these differ between coordinators, so the Session of such a b fails
// with [ErrInvalid]. Package elect calls For by itself. For any other b it returns b. It does not block. The
// caller closes b, and not what For returns.
//
// Such a b may also have a method Reach(context.Context) error, which does not return before its coordinators
// can be used, as Session does not for others. A type that embeds a Backend, and is to work with such a b,
// has a method For too, which calls For of what it embeds.
func For(b Backend, election string) Backend {
	if d, ok := b.(interface{ For(election string) Backend }); ok {
		return d.For(election)
	}
	return b
}

// A Session keeps members in line: they go when it ends. Its methods that return an error, except Close and Files,
// fail with [ErrSessionEnded] once it has ended, with [ErrUnavailable] if the
// coordinator could not be reached or its answer was lost, and with the cause of ctx if
// ctx ends first. It is safe for concurrent use. A driver whose coordinator lacks something embeds its
// substitute of package kit in its session: kit.NoShares, kit.NoPins and so on. A wrapper that embeds a
// Session passes on all that it does not change.
type Session interface {
	// Join adds one member with the given value at the end of the line, and returns
	// it (law L1). A line that does not exist comes into being.
	//
	// If record is not empty, Join also returns what Ahead of the new member, and Get of that
	// record, would return right after it, as far as the driver learns that on the way. An election
	// then needs neither call. If Join returns a place, all that Ahead promises holds from then on,
	// also about the Deadline.
	Join(ctx context.Context, line, value, record string) (Joined, error)

	// Ahead says where m stands: first, or behind which member (laws L2 and L9). It fails with
	// [ErrNotMember] if m is not in line any more, and with a [*SealedError] if the
	// election is sealed and m is not the seal.
	Ahead(ctx context.Context, m Member) (Place, error)

	// WatchPlace blocks until m stands otherwise than p says, and then sets p to where it
	// stands. It fails as Ahead does; p then says nothing. It wakes when the member that p
	// names as Ahead has gone or was pinned, when m itself has gone or was pinned, and, if p
	// says First, when the header changes (law L3). If p.Ahead is pinned or foreign, it also wakes
	// when the header says that the election has moved, because such a member does not leave then.
	// WatchPlace may also return at other times if p does not say First: p is then as before,
	// except for the header and for what Ahead may leave out of a member. Package elect waits by
	// WatchPlace alone.
	//
	// A Place goes by pointer here, because most of what a waiter costs is the stack on which it
	// waits.
	WatchPlace(ctx context.Context, m Member, p *Place) error

	// Gone blocks until m has gone, and then returns nil (law L3). m may be any member
	// of any line. A leader watches its own: so it learns that an operator has removed
	// it. Gone may also return because m was pinned, which is not a departure; the
	// next Ahead tells.
	Gone(ctx context.Context, m Member) error

	// Leave removes m (law L4). This session must have joined it, or it must be pinned:
	// a pinned member belongs to no session. Leave fails with [ErrDenied] if another
	// session joined m. It is not an error that m has gone already.
	Leave(ctx context.Context, m Member) error

	// Line returns the whole line in order, and the header, read no earlier. It is for
	// people and observers; an election asks Ahead. A line that does not exist is
	// empty.
	Line(ctx context.Context, line string) (Line, error)

	// Head is Line with the first member alone, or with none if the line is empty. On many
	// coordinators it costs less.
	Head(ctx context.Context, line string) (Line, error)

	// WatchLine blocks until other members stand in the line than in after, and returns the
	// line as it then is (law L3). After the zero Line, which is empty, WatchLine waits until a
	// member stands. A slow caller may miss states, but never the newest one. WatchLine need not
	// read members again that stand in after. Every join and every exit wakes all callers for the
	// line. So in a long line only one caller at a time should call it.
	WatchLine(ctx context.Context, line string, after Line) (Line, error)

	// Shared members can be first together, as readers do that share a lock (law L9). A session without
	// them embeds kit.NoShares.

	// JoinShared is Join for a member that waits only for members that are not shared (law
	// L9).
	JoinShared(ctx context.Context, line, value, record string) (Joined, error)

	// Claim is JoinShared for a member that claims an item of another line. The value ends with
	// a newline and the item's subject (kit.Subject). Claim fails with [ErrTaken], and leaves
	// no member, if the item does not stand, or if another claim for it stands in front. So as long
	// as a claim that Claim has returned stands, nobody else gets one for the item. If two sessions
	// claim an item at the same moment, both may fail.
	Claim(ctx context.Context, line, value, record string, item Member) (Joined, error)

	// Pinned members outlive their session. A session without them embeds kit.NoPins.

	// Pin makes m, which this session joined, outlive the session; m keeps its place.
	// In the same atomic step Pin writes h as the header of m's election, if the header
	// still has the version at ([Absent]: if there is none). Otherwise it does nothing
	// and fails with [ErrVersion]. It fails with [ErrDenied] if another session joined
	// m. It is not an error that m is pinned already and the header is h.
	Pin(ctx context.Context, m Member, h Header, at Version) error

	// Items are members that wait for nobody and belong to no session, such as those of a queue: each
	// is pinned from the start, and stands until somebody removes it (law L10). A session without them
	// embeds kit.NoItems.

	// Append adds an item with the given value at the end of the line, and returns it (law
	// L10). If somebody has removed the item meanwhile, the Position may be 0. A line that does
	// not exist comes into being. Append does not try again if its answer is lost. So if it
	// fails with [ErrUnavailable], or because ctx or the session has ended, the item may stand,
	// or come to stand: give each item a value of its own to find out.
	Append(ctx context.Context, line, value string) (Member, error)

	// Remove removes the item m if the member by, which stands in any line, still stands.
	// The coordinator checks that in the same atomic step; otherwise nothing is removed, and
	// Remove fails with [ErrNotMember]. It is not an error that m has gone already, if by
	// stands. Remove fails with [ErrDenied] if m stands and is not pinned. If it fails with
	// [ErrUnavailable], or because ctx or the session has ended, m may have gone: Remove may be repeated.
	Remove(ctx context.Context, m, by Member) error

	// Free returns the first member of the line items for which no claim stands in the line claims.
	// It reads both at one instant, or the claims first. It fails with [ErrTaken] if there is none,
	// and with [ErrForeign] if it meets a member that is no item, or no claim. It is as fresh as
	// Line. If the coordinator can be asked for the first of many, the cost does not grow with the
	// length of the line items.
	Free(ctx context.Context, items, claims string) (Member, error)

	// Records are small values, beside the lines. Names follow [CheckName]. The record with the name of an
	// election is its [Header]. These methods block for about a round trip, except Watch. A session without
	// them embeds kit.NoRecords.

	// Get returns the record, at least as fresh as this session's last write and last Refresh. A
	// record that does not exist has the version [Absent] and is not an error.
	Get(ctx context.Context, name string) (Record, error)

	// Put writes value, at most [MaxRecord] bytes, if the condition holds, and returns
	// the record's new version. Otherwise it fails with [ErrVersion] or
	// [ErrNotMember]. If it fails with [ErrUnavailable], or because ctx or the session has ended, the
	// write may have happened: Get tells after a Refresh.
	Put(ctx context.Context, name string, value []byte, cond *If) (Version, error)

	// Delete removes the record if the condition holds. It is not an error that there
	// is no record, unless the condition names a version other than [Absent]. It fails as Put does.
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

	// Refresh returns when the session's reads, such as Get, List, Line and Head, are at least as fresh as each
	// write that had been answered when Refresh was called, whosever it was. Without it they may be
	// older, if the coordinator answers reads from servers that lag behind; there Refresh blocks
	// for about a round trip. A caller that only follows changes needs no Refresh, nor does one
	// that writes on condition, unless it finds that there is nothing to write. A session whose reads are
	// always fresh embeds kit.AlwaysFresh.
	Refresh(ctx context.Context) error

	// The next three are for people and their tools: an election knows its name.

	// Lines returns the names of all lines in which members stand, and how many stand in each. It
	// is at least as fresh as Line. It reads the names of all members and records of the backend,
	// without their values. It blocks for about a round trip, or for one per name if the
	// coordinator knows no other way. A session that cannot tell embeds kit.NoLines.
	Lines(ctx context.Context) (map[string]int, error)

	// Survey returns what is at each name of the backend: the first member of the line of that name, as Head
	// returns it, how many stand in the line, and the record of that name. A name with a record and
	// without members, such as an election with a header where nobody stands, is in the answer too.
	// It is at least as fresh as Line, and blocks for about a round trip. The answer is as long as
	// all that is stored. A session that would need a request for each line embeds kit.NoSurvey: Lines
	// and Head tell the same.
	Survey(ctx context.Context) (map[string]Standing, error)

	// Imported returns the members of a line that no session has joined, in order: somebody has imported
	// them from elsewhere, or written them by hand. They stand for ever and are shown as pinned, until
	// Leave removes them. People ask for them after a restore. It is at least as fresh as Line. Where only
	// sessions can make members, the session embeds kit.NoImports.
	Imported(ctx context.Context, line string) ([]Member, error)

	// The next two are for one kind of coordinator.

	// Outlived reports whether the record is older than what the line has now: the line does not
	// exist, or it came into being, or lost its header, after the record came into being. It needs
	// no right on either. It is for a coordinator whose rights do not cover names that nobody has taken
	// yet: on ZooKeeper a client that may create one name on the prefix may create any. So a record beside
	// an election, such as the copy of its fence, may come from a client without a right on the election.
	// Elsewhere a session embeds kit.NoDates, and every such record is believed.
	Outlived(ctx context.Context, record, line string) (bool, error)

	// Files returns files that hold m, which the session joined, where members are held by open files: such
	// a member goes as soon as no process has its files open any more. If this process dies,
	// m stands until they are closed too. Give them to a child process that does the
	// leader's work ([os/exec.Cmd] ExtraFiles): nobody else leads before the child has
	// ended. Leave and Close remove m nevertheless. The caller closes the files. It does not block. It
	// fails with [ErrNotMember] if the session does not hold m. A session whose members no files hold embeds
	// kit.NoFiles: Files then returns none, whatever m is.
	Files(m Member) ([]*os.File, error)

	// TTL is the session time that the coordinator has granted: it ends a session that
	// it has not heard from for so long. TTL is 0 if only the end of the process ends
	// the session. It does not block.
	TTL() time.Duration

	// Deadline is the instant before which the coordinator cannot have ended the
	// session (law L6), on the clock of time.Now at the moment of this call. The zero
	// time means that there is no deadline: TTL is 0. Once the session has ended, for
	// whatever reason, Deadline has passed.
	//
	// The session keeps Deadline in the future as long as one of its members stands first or second
	// in a line, or is shared and first (law L9). Otherwise Deadline may lie in the past until the
	// next Ahead. A member just behind the gate that the header names ([Header] Gate) may lead,
	// together with a member on another coordinator. So once Ahead has returned that gate, law L6
	// holds for the member's session as for a leader's. Deadline does not block.
	Deadline() time.Time

	// MaxMargin is the longest margin that a term can have: as long as requests are answered soon,
	// Deadline is always further ahead than MaxMargin. It is TTL minus the time between two
	// heartbeats and minus what the driver holds back itself; 0 if TTL is 0. It does not block.
	MaxMargin() time.Duration

	// TraceHeartbeats calls f each time that the coordinator has confirmed the session and so has
	// moved its Deadline, from a goroutine of the session, until stop is called. One call may still
	// be under way then. If f is slow, it misses some. A session without a session time never calls
	// f. A driver that sends fewer heartbeats while none of its members is near the head tells of
	// fewer.
	TraceHeartbeats(f func(Heartbeat)) (stop func())

	// Done is closed when the session has ended.
	Done() <-chan struct{}

	// When the session ends, for whatever reason, OnEnd calls f with what Err then returns. If this
	// process ends the session, the coordinator hears of that only after f has returned (law L5).
	// So all that depends on the session ends before anybody else can take its place. f must
	// neither block nor call methods of the session. If the session has ended before, OnEnd calls f
	// at once. The func stop takes f away again. A kit.Ender implements OnEnd.
	OnEnd(f func(why error)) (stop func())

	// Err returns nil while the session lives, and afterwards an error that wraps
	// [ErrSessionEnded] and says why the session has ended.
	Err() error

	// Close ends the session: its members go, except those that are pinned. It blocks
	// until the coordinator has confirmed that, or ctx ends. In the second case the
	// error says that the members stand until the coordinator ends the session.
	Close(ctx context.Context) error
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
