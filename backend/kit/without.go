package kit

import (
	"context"
	"errors"
	"os"

	"github.com/succession-dev/succession/backend"
)

// NoSurvey is for sessions that would need a request for each line. Such a session embeds it. Its
// method returns [errors.ErrUnsupported].
type NoSurvey struct{}

func (NoSurvey) Survey(context.Context) (map[string]backend.Standing, error) {
	return nil, errors.ErrUnsupported
}

// AlwaysFresh is for sessions whose reads are always fresh. Such a session embeds it. Its method
// does nothing.
type AlwaysFresh struct{}

func (AlwaysFresh) Refresh(context.Context) error { return nil }

// NoShares is for sessions without shared members, which embed it. Its methods return
// [errors.ErrUnsupported].
type NoShares struct{}

// Shares has an [Adapter] refuse shared members before it looks at anything else. A session that lacks them only with some options
// does not embed NoShares, and has a Shares of its own, which says why there are none, or returns nil. It must not block.
func (NoShares) Shares() error { return errors.ErrUnsupported }

func (NoShares) JoinShared(context.Context, string, string, string) (backend.Joined, error) {
	return backend.Joined{}, errors.ErrUnsupported
}

func (NoShares) Claim(context.Context, string, string, string, backend.Member) (backend.Joined, error) {
	return backend.Joined{}, errors.ErrUnsupported
}

// NoPins is for sessions without pins, which embed it. Their elections cannot be sealed or
// migrated. Its method returns [errors.ErrUnsupported].
type NoPins struct{}

func (NoPins) Pin(context.Context, backend.Member, backend.Header, backend.Version) error {
	return errors.ErrUnsupported
}

// NoItems is for sessions without items, which embed it. Its methods return
// [errors.ErrUnsupported].
type NoItems struct{}

func (NoItems) Append(context.Context, string, string) (backend.Member, error) {
	return backend.Member{}, errors.ErrUnsupported
}

func (NoItems) Remove(context.Context, backend.Member, backend.Member) error {
	return errors.ErrUnsupported
}

func (NoItems) Free(context.Context, string, string) (backend.Member, error) {
	return backend.Member{}, errors.ErrUnsupported
}

// NoRecords is for sessions without records, which embed it. Their lines have the zero
// [backend.Header] and the version [backend.Absent]. Elections work without records, but nobody can then
// acknowledge a term, ask a leader to resign, raise a fence or make a guarded write. The
// methods return [errors.ErrUnsupported].
type NoRecords struct{}

func (NoRecords) Get(context.Context, string) (backend.Record, error) {
	return backend.Record{}, errors.ErrUnsupported
}

func (NoRecords) Put(context.Context, string, []byte, *backend.If) (backend.Version, error) {
	return 0, errors.ErrUnsupported
}

func (NoRecords) Delete(context.Context, string, *backend.If) error { return errors.ErrUnsupported }

func (NoRecords) List(context.Context, string) ([]string, error) {
	return nil, errors.ErrUnsupported
}

func (NoRecords) ReadAll(context.Context, string) ([]backend.Record, error) {
	return nil, errors.ErrUnsupported
}

func (NoRecords) Watch(context.Context, string, backend.Version) (backend.Record, error) {
	return backend.Record{}, errors.ErrUnsupported
}

// NoLines is for sessions that cannot say which lines there are. Such a session embeds it, and
// people must then know the names. Its method returns [errors.ErrUnsupported].
type NoLines struct{}

func (NoLines) Lines(context.Context) (map[string]int, error) { return nil, errors.ErrUnsupported }

// NoImports is for sessions on coordinators where only sessions can make members. Such a session
// embeds it. Its method returns [errors.ErrUnsupported].
type NoImports struct{}

func (NoImports) Imported(context.Context, string) ([]backend.Member, error) {
	return nil, errors.ErrUnsupported
}

// NoFiles is for sessions whose members are not held by open files. Such a session embeds it. Its
// method returns none.
type NoFiles struct{}

func (NoFiles) Files(backend.Member) ([]*os.File, error) { return nil, nil }

// NoDates is for sessions on coordinators whose rights cover each name, also one that nobody has
// taken yet. Such a session embeds it: the client that wrote a record had a right on just that
// name. Its method returns true.
type NoDates struct{}

func (NoDates) Outlived(context.Context, string, string) (bool, error) { return true, nil }
