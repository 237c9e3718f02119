package along

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/naming"
)

const noteSuffix = naming.Note

// A Note says with which election a record goes, and by which migration it has come; Migration is
// empty as long as it has not moved. Over is the version of To's record that is about to be
// replaced, for an announcement; otherwise 0. Left says that To refused to replace it, so that a record
// which has another version since has not been carried over.
type Note struct {
	Record    string          `json:"record"`
	Election  string          `json:"election"`
	Migration string          `json:"migration"`
	Over      backend.Version `json:"over,omitempty"`
	Left      bool            `json:"left,omitempty"`
}

// Announces reports whether n announces that the record goes with the election as in done.
func (n Note) Announces(done Note) bool {
	over := n.Over
	n.Over, n.Left = 0, false
	return over != 0 && n == done
}

// Announce announces that To's record, which is now, is about to be replaced, unless was, the record's
// note with the version at, announces it. It returns the version that the note has then. n is the note
// that says that To's record counts.
func (n Note) Announce(ctx context.Context, to backend.Session, now backend.Record, was Note, at backend.Version, m backend.Member) (backend.Version, error) {
	if was.Announces(n) && !was.Left {
		return at, nil
	}
	n.Over = now.Version
	return n.Write(ctx, to, at, m)
}

// NoteOf reads the note of a record, and its version.
func NoteOf(ctx context.Context, to backend.Session, name string) (Note, backend.Version, error) {
	r, err := to.Get(ctx, naming.Beside(name, noteSuffix))
	if err != nil {
		return Note{}, 0, err
	}
	return parseNote(r.Value, name), r.Version, nil
}

// parseNote returns the note of the record with the name. It returns the zero note if another
// record with a long name shares the note's name, or if strangers wrote it.
func parseNote(value []byte, name string) Note {
	var n Note
	if json.Unmarshal(value, &n) != nil || n.Record != name {
		return Note{}
	}
	return n
}

// Write writes the note if it still has the version and m stands, and returns the note's new version. It succeeds, too, if
// the same note is there by then: another process wrote it at the same time, or an earlier try did, whose answer was lost.
func (n Note) Write(ctx context.Context, to backend.Session, at backend.Version, m backend.Member) (backend.Version, error) {
	value, err := json.Marshal(n)
	if err != nil {
		return 0, err
	}
	v, err := to.Put(ctx, naming.Beside(n.Record, noteSuffix), value, &backend.If{Version: at, Member: m})
	if errors.Is(err, backend.ErrVersion) {
		if now, at, gerr := NoteOf(ctx, to, n.Record); gerr == nil && now == n {
			return at, nil
		}
	}
	return v, err
}
