package backend

// A Member is one place in a line. Members are values: two are the same member
// if they are equal, except that Pinned may have changed meanwhile.
type Member struct {
	// Line is the name of the election that the member stands in.
	Line string
	// Key is the member's name within its line, as the coordinator and foreign
	// participants know it, such as n_0000000133. A later member may come to
	// stand under the same key, never with the same Position.
	Key string
	// Position is the creation index in the coordinator's log; it grows from
	// member to member, and pinning does not change it. It is 0 in [Place] where a
	// driver would have had to ask for it.
	Position uint64
	// Value is what the member said when it joined. It is empty in [Place] where
	// a driver would have had to ask for it.
	Value string
	// Pinned says that the member is permanent. It may be false in [Place] where a
	// driver would have had to ask for it.
	Pinned bool
}

// A Line is a whole line in order, first member first, with the election's own
// record as of no earlier.
type Line struct {
	Members []Member
	Header  Header
	Version Version // of the record; [Absent] where there is none
}

// Token returns the fencing token that m has when it leads.
func (l Line) Token(m Member) uint64 { return l.Header.Fence + m.Position }
