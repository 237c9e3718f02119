package backend

import "slices"

// A Member is one entry in a line. Members are values: two are the same member if they
// are equal but for Pinned.
type Member struct {
	// Line is the name of the election.
	Line string
	// Key is the member's name within its line, as the coordinator and foreign
	// clients know it, such as n_0000000133. A later member may have the same key,
	// but never the same Position.
	Key string
	// Position is the creation index in the coordinator's log. It grows from member to
	// member, and pinning does not change it. Ahead may leave it 0 in a [Place], if
	// the driver would need another request to know it.
	Position uint64
	// Value is the value that was given to Join. Ahead may leave it empty, as Position.
	Value string
	// Shared says that the member was joined by JoinShared: it waits only for members that
	// are not shared.
	Shared bool
	// Pinned says that the member does not go with its session. Ahead may leave it
	// false, as Position.
	Pinned bool
}

// A Line is a whole line in order, the first member first, and the election's header,
// which was read no earlier than the members.
type Line struct {
	Members []Member
	Header  Header
	Version Version // of the header; [Absent] if there is none
}

// SameMembers reports whether the same members stand in l and in o, two states of one line.
func (l Line) SameMembers(o Line) bool {
	return slices.EqualFunc(l.Members, o.Members, func(a, b Member) bool { return a.Key == b.Key && a.Position == b.Position })
}

// Token returns the token of m, should it lead, for people and comparisons. It returns 0 if m cannot lead, because
// no token can be made; see [Header.Token].
func (l Line) Token(m Member) uint64 {
	token, err := l.Header.Token(m.Position)
	if err != nil {
		return 0
	}
	return token
}

// Paused returns the gate of a pause, which its header names, if it stands in the line. Its value says who
// set it and why: an ID, and after a newline the reason.
func (l Line) Paused() (gate Member, paused bool) {
	if l.Header.Choice.Gate == 0 {
		return Member{}, false
	}
	for _, m := range l.Members {
		if m.Pinned && m.Position == l.Header.Choice.Gate {
			return m, true
		}
	}
	return Member{}, false
}

// A Place says where a member stands: first, or behind another one.
type Place struct {
	// First is true if nobody stands in front: the member leads.
	First bool
	// Token is the token of the term that begins; if First only.
	Token uint64
	// Ahead is the member just in front or, of a shared member, the nearest in front that is
	// not shared; if not First only.
	Ahead Member
	// Header is the election's header, read no earlier than the line.
	Header Header
}

// PlaceOf decides where m stands, for all drivers. m is as the line has it now: it counts
// whether m is pinned. ahead is the member that m waits for, or nil; see [Awaited]. h is the header, read
// no earlier than the line.
//
// If the election is sealed, the seal stands pinned at the head of its line. For every
// other member PlaceOf fails with a [*SealedError], also for one that is at the head because
// the seal was removed. It fails with [ErrHeader] if m is first and has no token, and for every member if
// this version does not know of what the header says that a leader needs ([Header.Understood]).
func PlaceOf(m Member, ahead *Member, h Header) (Place, error) {
	if h.Sealed != "" && !(ahead == nil && m.Pinned) {
		return Place{}, &SealedError{To: h.Sealed}
	}
	if err := h.Understood(); err != nil {
		return Place{}, err
	}
	if ahead != nil {
		return Place{Ahead: *ahead, Header: h}, nil
	}
	token, err := h.Token(m.Position)
	if err != nil {
		return Place{}, err
	}
	return Place{First: true, Token: token, Header: h}, nil
}

// Awaited returns the index of the member that the i-th in line waits for, or -1 if that is
// first (law L9). shared says of each in front, and of the i-th itself, whether it is shared.
func Awaited(i int, shared func(i int) bool) int {
	front := i - 1
	if i > 0 && shared(i) {
		for front >= 0 && shared(front) {
			front--
		}
	}
	return front
}
