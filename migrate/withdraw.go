package migrate

import (
	"context"
	"fmt"

	"github.com/succession-dev/succession/backend"
)

// Two migrations in opposite directions keep each other's clients from leading: a gate
// stands on either coordinator, and nobody leads. One of the two has to be aborted, and
// never both, or no gate would stand: an operator's request that takes a gate away may be
// long on its way. So which one is decided before, by a write to one record that names its
// version. It is the same record whichever of the two an operator aborts.

// withdraw aborts a migration whose From has the gate of the opposite one. Nobody leads
// by either, and the election was in use on neither coordinator, as both were begun:
// what was begun here is forgotten, and the other migration goes on.
func (b *Backend) withdraw(ctx context.Context, election string, k look) (again bool, err error) {
	to, l := k.half[sideTo], k.line[sideTo]
	ours, theirs := l.Header.Migration, k.line[sideFrom].Header.Migration
	switch {
	case ours.Seal:
		return false, refused("its gate on %s is the seal of an earlier migration, so the election is in use; abort the one from %s to %s", b.o.To, b.o.To, b.o.From)
	case theirs.Step == stepWithdrawn || ours.Over != 0 && ours.Over == theirs.Gate:
		return false, refused("migration %s from %s to %s is being aborted; finish that", theirs.ID, theirs.From, theirs.To)
	case ours.Step != stepWithdrawn && theirs.Over != ours.Gate:
		return true, giveWay(ctx, election, k)
	}
	if g, stands := gate(l); stands {
		if len(l.Members) > 1 {
			return true, fmt.Errorf("%w: on %s these stand behind the gate: %s; stop those that run with it alone", backend.ErrUnavailable, b.o.To, names(l.Members[1:]))
		}
		return true, to.Leave(ctx, g)
	}
	h := l.Header
	h.Migration = backend.Migration{}
	_, err = to.Put(ctx, election, h.Encode(), &backend.If{Version: l.Version})
	return false, err
}

// giveWay writes down that of two opposed migrations the one to To is withdrawn. Of the
// two records it writes that of the migration whose From comes first in the alphabet: as
// long as both gates stand nobody writes another address there.
func giveWay(ctx context.Context, election string, k look) error {
	sd := sideTo
	ours, theirs := k.line[sideTo].Header.Migration, k.line[sideFrom].Header.Migration
	h := k.line[sideTo].Header
	h.Migration.Step = stepWithdrawn
	if theirs.From < ours.From {
		sd, h = sideFrom, k.line[sideFrom].Header
		h.Migration.Over = ours.Gate
	}
	_, err := k.half[sd].Put(ctx, election, h.Encode(), &backend.If{Version: k.line[sd].Version})
	return err
}
