package backend

import (
	"context"
	"os"
	"time"
)

// A Backend is a long-lived handle on one coordinator. It has at most one
// session at a time. It is safe for concurrent use.
type Backend interface {
	// Session returns the live session and opens one where there is none. It
	// blocks until the coordinator has confirmed a new session, ctx ends, or the
	// driver's connect timeout passes ([ErrUnavailable]). A session that has ended
	// is never silently continued: after [ErrSessionEnded], call Session again and
	// join anew.
	//
	// It fails with [ErrReset] when the coordinator's log has gone back since this
	// backend last saw it, with [ErrDenied] when the coordinator refuses the
	// credentials, and with [ErrClosed] after Close.
	Session(ctx context.Context) (Session, error)

	// Close ends the session, if there is one, and releases everything that the
	// backend holds. It blocks for a bounded time, also when the coordinator is
	// unreachable; the error then says that the members go only when the
	// coordinator ends the session. Closing twice is not an error.
	Close() error
}

// A Holder is a Backend some or all of whose places are held by open files: the place of
// a process that dies is free when nobody has them open any more, at once and without a
// session time.
type Holder interface {
	// Hold returns files that hold m's place, too, which the session joined: when the
	// process dies, the place stands until they are closed as well. They are for a child
	// process ([os/exec.Cmd] ExtraFiles) that acts for a leader: nobody else leads before
	// that has ended. Leave and Close give the place up nevertheless. There are none where
	// m is held otherwise. The caller closes them. It does not block, and fails with
	// [ErrNotMember] when the session does not hold m.
	Hold(m Member) ([]*os.File, error)
}

// A Session is one liveness contract with a coordinator: what it joined leaves
// the line when it ends. Except for Close, its methods fail with
// [ErrSessionEnded] once it has ended, with [ErrUnavailable] where the coordinator
// could not be reached or its answer was lost, and with the cause of ctx when
// that ends first. It is safe for concurrent use.
//
// [Records] is the store of small values beside the lines. A coordinator that has none, or
// that cannot pin, embeds [NoRecords] or [NoPins].
type Session interface {
	// Join adds one member with the given value at the end of the line and
	// returns it (law L1). The line comes into being where it does not exist.
	Join(ctx context.Context, line, value string) (Member, error)

	// Ahead says who stands just in front of m (law L2). It fails with
	// [ErrNotMember] when m is not in line any more, and with a [*SealedError]
	// when the election has been sealed and m is not the member that sealed it.
	Ahead(ctx context.Context, m Member) (Place, error)

	// Gone blocks until m has gone and then returns nil (law L3). m may be any
	// member of any line: the one in front, or the caller's own, which is how a
	// leader learns that an operator deleted its member. Pinning a member is not
	// a departure, but Gone may return for it; the next Ahead tells.
	Gone(ctx context.Context, m Member) error

	// Leave removes m, which this session joined, or which is pinned: a pinned
	// member belongs to no session (law L4). A member that has gone already is
	// not an error; one that another session joined is [ErrDenied].
	Leave(ctx context.Context, m Member) error

	// Line returns the whole line in order, and the election's record as of no
	// earlier. It is for people, observers and status, not for the election's
	// loop. A line that does not exist is empty.
	Line(ctx context.Context, line string) (Line, error)

	// Joined blocks until somebody stands in the line. It is for observers of a
	// vacant election.
	Joined(ctx context.Context, line string) error

	Pinner
	Records

	// TTL is the time after which the coordinator ends a session that it has not
	// heard from, as the coordinator granted it; 0 where only the end of the
	// process ends the session. It does not block.
	TTL() time.Duration

	// Deadline is the instant before which the coordinator cannot have ended the
	// session (law L6), on the clock of time.Now at the moment of this call. The
	// zero time means never: the coordinator knows of the end of this process at
	// once. Any other has passed when the session has ended, for whatever reason. It
	// is kept ahead as long as a member of the session stands first or second in
	// its line; otherwise it may lie in the past, until the next Ahead. Who stands
	// second, just behind the gate that the election's record names ([Migration]
	// Gate), may lead already, by another coordinator as well: once Ahead has said
	// so, law L6 holds for it as for the first. It does not block.
	Deadline() time.Time

	// MaxMargin is the longest time before Deadline at which a term may end that is to
	// last: as long as requests are answered soon, Deadline is kept further ahead than
	// that. It is shorter than TTL by what lies between two heartbeats, and by what the
	// driver holds back itself; 0 where TTL is 0. It does not block.
	MaxMargin() time.Duration

	// Done is closed when the session has ended.
	Done() <-chan struct{}

	// Err returns nil while the session lives, and then an error that wraps
	// [ErrSessionEnded] and says why it ended.
	Err() error

	// Close ends the session, and with it all members that it joined and that are
	// not pinned. It blocks until the coordinator has confirmed that, or ctx
	// ends; then the members stand until the coordinator ends the session by
	// itself, and the error says so.
	Close(ctx context.Context) error
}
