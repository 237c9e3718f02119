package backend

import (
	"context"
	"errors"
)

// A Pinner can make a member permanent. A session that cannot embeds [NoPins].
type Pinner interface {
	// Pin makes m, which this session joined, permanent: it outlives the session
	// and keeps its place. In the same atomic step it writes h as the record of
	// m's election, where that still has the version at ([Absent] for none;
	// [ErrVersion] otherwise). Pinning a member that is pinned, where the record
	// is h already, is not an error; one that another session joined is
	// [ErrDenied].
	Pin(ctx context.Context, m Member, h Header, at Version) error
}

// NoPins is what a session embeds whose coordinator cannot pin: there is no seal and no
// migration then. Its method returns [errors.ErrUnsupported].
type NoPins struct{}

func (NoPins) Pin(context.Context, Member, Header, Version) error { return errors.ErrUnsupported }

// NoRecords is what a session embeds whose coordinator keeps no records. Its lines have the
// zero [Header] and the version [Absent]. Elections work without: nobody can acknowledge
// a term, ask a leader to resign, raise a fence or make a guarded write. Its methods
// return [errors.ErrUnsupported].
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
