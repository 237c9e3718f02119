package backend

import (
	"fmt"
	"slices"
)

// A Member is one entry in a line. Members are values: two are the same member if they are equal in
// all fields except Pinned.
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
	// Value is the value that was given to Join. Ahead may leave it empty, like Position.
	Value string
	// Shared says that the member was joined by JoinShared: it waits only for members that
	// are not shared.
	Shared bool
	// Pinned says that the member does not go with its session. Ahead may leave it false, like
	// Position.
	Pinned bool
}

// Subject names the item m in the value of a claim: by its key and its position. No other item of
// any line has the same subject. The value of a claim ends with the subject of its item, behind a
// newline ([Sharer] Claim).
func (m Member) Subject() string { return fmt.Sprintf("%s %d", m.Key, m.Position) }

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

// Token returns the token that m has if it leads, for people and comparisons. It returns 0 if no
// token can be made, so that m cannot lead; see [Header.Token].
func (l Line) Token(m Member) uint64 {
	token, err := l.Header.Token(m.Position)
	if err != nil {
		return 0
	}
	return token
}

// A Place says where a member stands: first, or behind another one.
type Place struct {
	// First is true if nobody stands in front: the member leads.
	First bool
	// Token is the token of the term that begins. It is set only if First is true.
	Token uint64
	// Ahead is the member just in front. For a shared member it is the nearest in front that is not
	// shared. It is set only if First is false.
	Ahead Member
	// Header is the election's header, read no earlier than the line.
	Header Header
}
