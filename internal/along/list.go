// Package along writes down which records go with an election when it moves to another coordinator:
// those that its leaders guard. Package migrate moves them, and package spread notes them for elections
// that may be moved later.
package along

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/again"
	"github.com/succession-dev/succession/internal/naming"
)

// Before a leader guards a record for the first time, it adds the name to a
// list: a record beside the election, on the coordinator where that is. So the process that
// completes a cutover knows what to carry over, also when the leader has crashed. A name stays in
// the list, also when the record is deleted: the way back and later migrations need it too.
//
// Every candidate of the election may write the list, and the process that completes a cutover may
// have more rights than they have. So the list only says where to look. The note beside a record,
// which only a process with a right there can write, says that the record goes with the election.
// The leader writes the note before the list.
const guardedSuffix = naming.Guarded

// A Guarded is such a list.
type Guarded struct {
	Election string   `json:"election"`
	Records  []string `json:"records"` // sorted; without the history, which always goes along
	More     bool     `json:"more,omitempty"`
	// Unclaimed are records of the list whose notes do not say that they go with the election. Only
	// Read fills it in.
	Unclaimed []string `json:"-"`
}

// Has reports whether the record is in the list.
func (g Guarded) Has(name string) bool {
	_, found := slices.BinarySearch(g.Records, name)
	return found
}

// maxGuarded is how many names a list has at most. A leader that guards more has a record for each
// piece of its work, and would write the list for each.
const maxGuarded = 1000

// With returns the list with more names, as far as there is room.
func (g Guarded) With(names ...string) Guarded {
	g.Records = slices.Clone(g.Records)
	for _, name := range names {
		if i, found := slices.BinarySearch(g.Records, name); found {
			continue
		} else if len(g.Records) < maxGuarded {
			g.Records = slices.Insert(g.Records, i, name)
		} else {
			g.More = true
		}
	}
	return g
}

func (g Guarded) encode() []byte {
	b, err := json.Marshal(g)
	if err != nil {
		panic(err) // names always marshal
	}
	return b
}

// Read returns which records the leaders of the election guard, as one coordinator knows. If a
// stranger wrote the list, there may be more. It blocks for about a round trip for sixteen of them.
func Read(ctx context.Context, part backend.Session, election string) (Guarded, error) {
	g, _, ours, err := ReadList(ctx, part, election)
	if err != nil {
		return Guarded{}, err
	}
	g.More = g.More || !ours
	all := g.Records
	g.Records = nil
	notes := make([]Note, len(all))
	err = again.AtOnce(ctx, len(all), func(ctx context.Context, i int) (err error) {
		notes[i], _, err = NoteOf(ctx, part, all[i])
		return err
	})
	if err != nil {
		return Guarded{}, err
	}
	for i, name := range all {
		if notes[i].Election == election {
			g.Records = append(g.Records, name)
		} else {
			g.Unclaimed = append(g.Unclaimed, name)
		}
	}
	return g, nil
}

// ReadList returns the list as it is, and its version. ours is false if a stranger wrote it.
func ReadList(ctx context.Context, part backend.Session, election string) (g Guarded, at backend.Version, ours bool, err error) {
	r, err := part.Get(ctx, naming.Beside(election, guardedSuffix))
	if err != nil {
		return Guarded{}, 0, false, err
	}
	if r.Version == backend.Absent {
		return Guarded{Election: election}, r.Version, true, nil
	}
	g, ours = parseList(r.Value, election)
	return g, r.Version, ours, nil
}

// parseList returns the list of the election. It leaves out names that no record can have or
// that belong to an election, because each name is carried over, and names after the first
// maxGuarded. ours is false if the list is not that of the election.
func parseList(value []byte, election string) (g Guarded, ours bool) {
	if json.Unmarshal(value, &g) != nil || g.Election != election {
		return Guarded{Election: election}, false
	}
	g.Records = slices.DeleteFunc(g.Records, func(name string) bool {
		_, _, kept := naming.Kept(name)
		return kept || backend.CheckName(name) != nil
	})
	slices.Sort(g.Records)
	g.Records = slices.Compact(g.Records)
	if len(g.Records) > maxGuarded {
		g.Records, g.More = g.Records[:maxGuarded], true
	}
	return g, true
}

// Claim notes beside a record, on the coordinator where the election is, that it goes with the
// election, while m stands. It fails with [backend.ErrInvalid] if there is another note.
func Claim(ctx context.Context, part backend.Session, election string, m backend.Member, name string) error {
	n, at, err := NoteOf(ctx, part, name)
	switch {
	case err != nil || n.Election == election:
		return err
	case at != backend.Absent:
		return Other(name, n.Election)
	}
	_, err = Note{Record: name, Election: election}.Write(ctx, part, at, m)
	return err
}

// Add adds names to the list of one coordinator, while m stands there, and returns the list. It fails
// with [backend.ErrInvalid] if a stranger wrote the list.
func Add(ctx context.Context, part backend.Session, election string, m backend.Member, names ...string) (Guarded, error) {
	var longer Guarded
	err := again.Try(ctx, written, func() error {
		g, at, ours, err := ReadList(ctx, part, election)
		if err != nil {
			return err
		}
		longer = g.With(names...)
		if !ours {
			return fmt.Errorf("%w record %s: it is not the list of the records that %s guards; delete it", backend.ErrInvalid, naming.Beside(election, guardedSuffix), election)
		}
		if len(longer.Records) == len(g.Records) && longer.More == g.More {
			return nil
		}
		_, err = part.Put(ctx, naming.Beside(election, guardedSuffix), longer.encode(), &backend.If{Version: at, Member: m})
		return err
	})
	return longer, err
}

// written reports whether somebody else has written at the same time.
func written(err error) bool { return errors.Is(err, backend.ErrVersion) }

// Goes adds the record to the list, and claims it first if claim is set, while m stands. If that cannot be done, however
// often it is tried, Goes only says so: the record itself may be written. A record that cannot be claimed is in the
// list nevertheless, so that it is named when it is left behind.
func Goes(ctx context.Context, part backend.Session, election string, m backend.Member, name string, claim bool, log *slog.Logger) (all Guarded, err error) {
	var unclaimed error
	if claim {
		if unclaimed = Claim(ctx, part, election, m, name); unclaimed != nil && !Stays(unclaimed) {
			return all, unclaimed
		}
	}
	all, err = Add(ctx, part, election, m, name)
	if err != nil && !Stays(err) {
		return all, err
	}
	if err = errors.Join(unclaimed, err); err != nil {
		log.Warn("could not write down that this record goes with its election; it may be left behind when that is moved", "election", election, "record", name, "err", err)
	}
	return all, nil
}

// Unclaimed returns the error for a record of the list whose note does not say that it goes with the election.
func Unclaimed(election, name string) error {
	return fmt.Errorf("%w record %s: it is in the list of %s, and no record %s says that it goes with that election",
		backend.ErrInvalid, name, election, naming.Beside(name, noteSuffix))
}

// Other returns the error for a record whose note says that it goes with another election.
func Other(name, election string) error {
	return fmt.Errorf("%w record %s: %s says that it goes with the election %q; if it does not, delete that record",
		backend.ErrInvalid, name, naming.Beside(name, noteSuffix), election)
}

// Stays reports whether a record cannot be carried over, or noted, however often that is tried.
func Stays(err error) bool {
	return errors.Is(err, backend.ErrDenied) || errors.Is(err, backend.ErrInvalid)
}

// Unsettled returns the error for the caller of a write beside the caller's record. If another
// process wrote there at the same time, that does not mean that the caller's record has another
// version.
func Unsettled(err error) error {
	if errors.Is(err, backend.ErrVersion) {
		return fmt.Errorf("%w: what goes with the election was written down by another process at the same time: %v", backend.ErrUnavailable, err)
	}
	return err
}
