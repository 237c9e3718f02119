package backend

import (
	"context"
	"errors"
)

// A Pinner makes members outlive their session. A session that cannot do that embeds
// [NoPins].
type Pinner interface {
	// Pin makes m, which this session joined, outlive the session; m keeps its place.
	// In the same atomic step Pin writes h as the header of m's election, if the header
	// still has the version at ([Absent]: if there is none). Otherwise it does nothing
	// and fails with [ErrVersion]. It fails with [ErrDenied] if another session joined
	// m. It is not an error that m is pinned already and the header is h.
	Pin(ctx context.Context, m Member, h Header, at Version) error
}

// A Sharer lets members of a line be first together, as readers do that share a lock. A session
// that cannot do that embeds [NoShares].
type Sharer interface {
	// JoinShared is Join for a member that waits only for members that are not shared (law
	// L9).
	JoinShared(ctx context.Context, line, value string) (Member, error)
}

// NoShares is for sessions without shared members, which embed it. Its method returns
// [errors.ErrUnsupported].
type NoShares struct{}

func (NoShares) JoinShared(context.Context, string, string) (Member, error) {
	return Member{}, errors.ErrUnsupported
}

// NoPins is for sessions without pins, which embed it. Their elections cannot be sealed or
// migrated. Its method returns [errors.ErrUnsupported].
type NoPins struct{}

func (NoPins) Pin(context.Context, Member, Header, Version) error { return errors.ErrUnsupported }

// NoRecords is for sessions without records, which embed it. Their lines have the zero
// [Header] and the version [Absent]. Elections work without records, but nobody can then
// acknowledge a term, ask a leader to resign, raise a fence or make a guarded write. The
// methods return [errors.ErrUnsupported].
type NoRecords struct{}

func (NoRecords) Get(context.Context, string) (Record, error) {
	return Record{}, errors.ErrUnsupported
}

func (NoRecords) Put(context.Context, string, []byte, *If) (Version, error) {
	return 0, errors.ErrUnsupported
}

func (NoRecords) Delete(context.Context, string, *If) error { return errors.ErrUnsupported }

func (NoRecords) List(context.Context, string) ([]string, error) {
	return nil, errors.ErrUnsupported
}

func (NoRecords) Watch(context.Context, string, Version) (Record, error) {
	return Record{}, errors.ErrUnsupported
}
