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

// A Divided is a Backend that keeps each election on one of several coordinators, as package spread
// does. A session has one end and one deadline, and these differ between coordinators. So Session
// fails with [ErrInvalid], and each election has a backend of its own, for which package elect asks
// by itself.
type Divided interface {
	Backend
	// For returns the backend of one election, and of the records that belong to it. It does not
	// block. The caller closes the whole, and not what For returns.
	For(election string) Backend
	// Reach blocks until the coordinators have said which they are. It fails if these are not the
	// ones that this backend divides by, or, as Session does, if none of them can say.
	Reach(ctx context.Context) error
}

// For returns the backend of one election: if b is a [Divided], that is b.For(election), and
// otherwise b.
func For(b Backend, election string) Backend {
	if d, ok := b.(Divided); ok {
		return d.For(election)
	}
	return b
}

// A Holder is a Backend some or all of whose members are held by open files. Such a member goes as
// soon as no process has its files open any more; there is no session time.
type Holder interface {
	// Hold returns files that hold m, which the session joined. If this process dies,
	// m stands until they are closed too. Give them to a child process that does the
	// leader's work ([os/exec.Cmd] ExtraFiles): nobody else leads before the child has
	// ended. Leave and Close remove m nevertheless. Hold returns no files if m is not
	// held by files. The caller closes them. Hold does not block. It fails with
	// [ErrNotMember] if the session does not hold m.
	Hold(m Member) ([]*os.File, error)
}

// A Session keeps members in line: they go when it ends. Its methods, except Close,
// fail with [ErrSessionEnded] once it has ended, with [ErrUnavailable] if the
// coordinator could not be reached or its answer was lost, and with the cause of ctx if
// ctx ends first. It is safe for concurrent use. A driver whose coordinator has no
// shared members, no pins, no items, or no records, embeds their substitutes of package kit in its
// session: kit.NoShares, kit.NoPins and so on. A wrapper that embeds a Session
// passes on all that it does not change.
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

	Sharer
	Pinner
	Items
	Records
	Refresher
	Lister
	Surveyor
	ImportFinder
	Dater

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
