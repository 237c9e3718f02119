package backend

// A Place is what stands in front of a member.
type Place struct {
	// First is true when nobody does: the member leads.
	First bool
	// Token is the fencing token of the term that begins, if First.
	Token uint64
	// Ahead is the member just in front, if not First.
	Ahead Member
	// Header is the election's record, as of no earlier than the rest.
	Header Header
}

// PlaceOf decides where m stands, for all drivers alike. m is as the line has it now:
// whether it is pinned counts. ahead is the member just in front of m; nil where nobody
// is. h is the election's record, as of no earlier than the line.
//
// Who sealed an election stands pinned at its head. Anybody else has lost it to another
// coordinator, even at the head once the seal's member was removed, and gets a
// [*SealedError].
func PlaceOf(m Member, ahead *Member, h Header) (Place, error) {
	switch {
	case h.Sealed != "" && !(ahead == nil && m.Pinned):
		return Place{}, &SealedError{To: h.Sealed}
	case ahead != nil:
		return Place{Ahead: *ahead, Header: h}, nil
	}
	return Place{First: true, Token: h.Fence + m.Position, Header: h}, nil
}
