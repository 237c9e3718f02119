// Package unready has the records in which candidates say that they are not ready to lead.
//
// A candidate that is not ready says so in a record beside the election E, named after the position of its
// member: E.unready/POSITION, with the reason. It writes and deletes the record only when its readiness
// changes, on condition that its member stands. So a record whose member has gone is left from a
// candidate that has crashed, and everybody who lists the records may delete it.
//
// Nobody can watch a folder for the deletion of a record. So a candidate that becomes ready also
// writes the record E.unready, the bell. A member that is first and not ready watches it.
package unready

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/naming"
)

// Folder returns the name of the bell, and of the folder of the records. It returns "" if the name
// of the election is too long for them: then nobody can say that it is not ready.
func Folder(election string) string {
	if len(election)+len(naming.Unready)+len("/18446744073709551615") > backend.MaxName {
		return ""
	}
	return election + naming.Unready
}

// Positions is the set of positions of members that have said that they are not ready.
type Positions map[uint64]bool

// Read reads which members have said that they are not ready. On a backend without records there
// are none.
func Read(ctx context.Context, s backend.Session, election string) (Positions, error) {
	folder := Folder(election)
	if folder == "" {
		return nil, nil
	}
	names, err := s.List(ctx, folder)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return nil, err
	}
	out := make(Positions, len(names))
	for _, name := range names {
		if pos, ok := naming.Position(strings.TrimPrefix(name, folder+"/")); ok {
			out[pos] = true
		}
	}
	return out, nil
}

// Sweep deletes the records of members that are not in line. line must have been read later than
// the records. It passes over records that it may not or cannot delete.
func (p Positions) Sweep(ctx context.Context, s backend.Session, election string, line backend.Line) {
	stands := make(Positions, len(line.Members))
	for _, m := range line.Members {
		stands[m.Position] = true
	}
	for pos := range p {
		if !stands[pos] {
			delete(p, pos)
			_ = s.Delete(ctx, Record(election, pos), nil)
		}
	}
}

// Record returns the name of the record of the member with the position.
func Record(election string, pos uint64) string {
	return Folder(election) + "/" + strconv.FormatUint(pos, 10)
}

// MaxReason is the longest reason in a record, in bytes.
const MaxReason = 1 << 10

// Why returns the reason that the member with the position has given, or "" if it is ready.
func Why(ctx context.Context, s backend.Session, election string, pos uint64) (string, error) {
	r, err := s.Get(ctx, Record(election, pos))
	if err != nil || r.Version == backend.Absent {
		return "", err
	}
	return reason(r.Value), nil
}

// reason returns the reason in a record.
func reason(value []byte) string {
	why := strings.ToValidUTF8(string(value[:min(len(value), MaxReason)]), string(utf8.RuneError))
	return cmp.Or(why, "it does not say why")
}
