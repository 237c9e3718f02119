package backend

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

// Token returns the token of m, should it lead.
func (l Line) Token(m Member) uint64 { return l.Header.Fence + m.Position }
