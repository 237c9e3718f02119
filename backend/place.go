package backend

// A Place says where a member stands: first, or behind another one.
type Place struct {
	// First is true if nobody stands in front: the member leads.
	First bool
	// Token is the token of the term that begins; if First only.
	Token uint64
	// Ahead is the member just in front; if not First only.
	Ahead Member
	// Header is the election's header, read no earlier than the line.
	Header Header
}

// PlaceOf decides where m stands, for all drivers. m is as the line has it now: it counts
// whether m is pinned. ahead is the member just in front of m, or nil. h is the header, read
// no earlier than the line.
//
// If the election is sealed, the seal stands pinned at the head of its line. For every
// other member PlaceOf fails with a [*SealedError], also for one that is at the head because
// the seal was removed.
func PlaceOf(m Member, ahead *Member, h Header) (Place, error) {
	switch {
	case h.Sealed != "" && !(ahead == nil && m.Pinned):
		return Place{}, &SealedError{To: h.Sealed}
	case ahead != nil:
		return Place{Ahead: *ahead, Header: h}, nil
	}
	return Place{First: true, Token: h.Fence + m.Position, Header: h}, nil
}
