package migrate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/succession-dev/succession/backend"
)

// Errors of a composite, for use with errors.Is. All need an operator to act.
var (
	// ErrNotBegun says that no migration of the election has begun between these
	// two coordinators.
	ErrNotBegun = errors.New("no migration has begun")

	// ErrOther says that another migration is under way than this process takes
	// part in.
	ErrOther = errors.New("another migration is under way")

	// errConflict is the ErrOther of an election that two operators have begun to move
	// in opposite directions at the same moment, until one of the two is forgotten.
	errConflict = fmt.Errorf("%w: the election was begun to be moved in opposite directions", ErrOther)

	// ErrRefused says that a step of a migration cannot be taken as things are.
	ErrRefused = errors.New("refused")
)

// The steps of a migration, in the record of the coordinator that the election
// moves to. The other one's record says stepSealed, and nothing before that.
const (
	stepBegun     = "begun"     // the gate stands
	stepAsked     = "asked"     // the leader is asked to seal
	stepAborting  = "aborting"  // the leader must not seal any more
	stepAborted   = "aborted"   // the election stays where it was: this record is sealed
	stepWithdrawn = "withdrawn" // the opposite migration goes on, and this one is to be forgotten
	stepMoved     = "moved"     // the gate is gone: the election is here
	stepSealed    = "sealed"    // the election has gone from here
)

// gated reports whether h is the record of an election that is about to move here.
func gated(h backend.Header) bool {
	return h.Sealed == "" && slices.Contains([]string{stepBegun, stepAsked, stepAborting, stepWithdrawn}, h.Migration.Step)
}

// gate returns the gate where it stands at the head of the line.
func gate(l backend.Line) (backend.Member, bool) {
	if len(l.Members) > 0 && l.Members[0].Pinned && l.Header.Migration.Gate != 0 && l.Members[0].Position == l.Header.Migration.Gate {
		return l.Members[0], true
	}
	return backend.Member{}, false
}

// behindGate reports whether m stands first behind the gate.
func behindGate(l backend.Line, m backend.Member) bool {
	_, ok := gate(l)
	return ok && len(l.Members) > 1 && same(l.Members[1], m)
}

func same(a, b backend.Member) bool {
	return a.Line == b.Line && a.Key == b.Key && a.Position == b.Position
}

func index(l backend.Line, m backend.Member) int {
	return slices.IndexFunc(l.Members, func(o backend.Member) bool { return same(o, m) })
}

// placing are the parameters of a URL that say which coordinator is meant, as the hosts do:
// an agent of Consul answers for every datacenter, namespace and partition.
var placing = []string{"dc", "namespace", "partition"}

// sameAddress reports whether two addresses mean one coordinator: two URLs do whose
// scheme, hosts in any order, path and placing parameters are the same.
func sameAddress(a, b string) bool {
	if a == b {
		return true
	}
	u, err := backend.ParseURL(a)
	if err != nil {
		return false
	}
	v, err := backend.ParseURL(b)
	if err != nil {
		return false
	}
	for _, name := range placing {
		if u.Text(name, "") != v.Text(name, "") {
			return false
		}
	}
	return u.Scheme == v.Scheme && strings.TrimSuffix(u.Path, "/") == strings.TrimSuffix(v.Path, "/") &&
		slices.Equal(slices.Sorted(slices.Values(u.Hosts)), slices.Sorted(slices.Values(v.Hosts)))
}

// A ruling is what the two records of an election say about where it is.
type ruling struct {
	// alone is the side that leads by itself, if not both.
	alone side
	both  bool
	// half says that the source is sealed and the gate still to be taken away.
	half bool
}

// rule says where the election with the records from and to is, for a process of
// b; see doc.go.
func (b *Backend) rule(from, to backend.Header) (ruling, error) {
	m := to.Migration
	switch {
	case to.Sealed == "" && m.Step == stepMoved && sameAddress(m.From, b.o.From) && sameAddress(m.To, b.o.To):
		return ruling{alone: sideTo}, nil
	case from.Sealed != "" && to.Sealed != "" && sameAddress(from.Sealed, b.o.To) && sameAddress(to.Sealed, b.o.From):
		return ruling{}, fmt.Errorf("%w: the election is sealed on both coordinators, towards each other; somebody wrote these records by hand", backend.ErrHeader)
	case from.Sealed != "" && !sameAddress(from.Sealed, b.o.To):
		return ruling{}, &backend.SealedError{To: from.Sealed}
	case from.Sealed != "":
		return ruling{alone: sideTo, half: gated(to) && m.ID == from.Migration.ID}, nil
	case to.Sealed != "" && !sameAddress(to.Sealed, b.o.From):
		return ruling{}, &backend.SealedError{To: to.Sealed}
	case to.Sealed != "":
		return ruling{alone: sideFrom}, nil
	case gated(from) && gated(to) && sameAddress(from.Migration.From, b.o.To) && sameAddress(m.From, b.o.From):
		return ruling{}, fmt.Errorf("%w: migration %s from %s to %s and migration %s from %s to %s; nobody leads until one of them is aborted",
			errConflict, m.ID, m.From, m.To, from.Migration.ID, from.Migration.From, from.Migration.To)
	case gated(from):
		return ruling{}, fmt.Errorf("%w: on %s stands the gate of migration %s from %s to %s; cut that over or abort it first, or run this process with its URLs",
			ErrOther, b.o.From, from.Migration.ID, from.Migration.From, from.Migration.To)
	case gated(to) && m.Step == stepWithdrawn:
		return ruling{}, fmt.Errorf("%w: migration %s from %s to %s is being aborted, as the opposite one goes on; abort it again", errConflict, m.ID, m.From, m.To)
	case gated(to) && b.ours(m):
		return ruling{both: true}, nil
	case gated(to):
		return ruling{}, fmt.Errorf("%w: its gate on %s is of migration %s from %s to %s, and this process takes part in %s from %s to %s; finish or abort the former, or run this process with its URLs",
			ErrOther, b.o.To, m.ID, m.From, m.To, cmpOr(b.o.ID, "one"), b.o.From, b.o.To)
	}
	return ruling{}, fmt.Errorf("%w from %s to %s; begin it, or run this process with the URL of the one where the election is", ErrNotBegun, b.o.From, b.o.To)
}

// ours reports whether b takes part in the migration.
func (b *Backend) ours(m backend.Migration) bool {
	return sameAddress(m.From, b.o.From) && sameAddress(m.To, b.o.To) && (b.o.ID == "" || m.ID == b.o.ID || strings.HasPrefix(m.ID, b.o.ID+"-"))
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// A side is one of the two coordinators.
type side uint8

const (
	sideFrom side = iota
	sideTo
)

// Keys of members of the coordinator that the election moves to are marked, as both
// may have a member under the same key.
const toPrefix = "to:"

func (sd side) tag(m backend.Member) backend.Member {
	if sd == sideTo && m.Key != "" {
		m.Key = toPrefix + m.Key
	}
	return m
}

func untag(m backend.Member) (backend.Member, side) {
	if key, ok := strings.CutPrefix(m.Key, toPrefix); ok {
		m.Key = key
		return m, sideTo
	}
	return m, sideFrom
}

// Versions carry their side in the lowest bit, so that a version of one coordinator
// is never taken for one of the other.
func (sd side) version(v backend.Version) backend.Version {
	if v <= 0 {
		return v
	}
	return v<<1 | backend.Version(sd)
}

// plain returns the coordinator's own version; false where v is of the other one.
func (sd side) plain(v backend.Version) (backend.Version, bool) {
	if v <= 0 {
		return v, true
	}
	return v >> 1, side(v&1) == sd && v > 1
}
