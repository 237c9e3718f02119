package backend

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

// Joined is a member that was just joined, and what its join has told of its place and of a record.
type Joined struct {
	Member
	Place *Place // nil if it is not known: Ahead tells
	// Record is nil if it is not known: Get tells. It may say [Absent] also of a record that has come into
	// being since, if the line has stood, with its header unchanged, since there was no such record. A
	// candidate does not need such a record; see [Session] Outlived.
	Record *Record
}

// A Line is a whole line in order, the first member first, and the election's header,
// which was read no earlier than the members.
type Line struct {
	Members []Member
	Header  Header
	Version Version // of the header; [Absent] if there is none
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
