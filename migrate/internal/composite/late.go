package composite

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/again"
	"github.com/succession-dev/succession/internal/along"
	"github.com/succession-dev/succession/internal/naming"
)

// CarryLate carries over the records of the election's list, and its history, that the cutover has
// left behind; id is that of the migration. Clients of To alone may lead by now, and they know no
// notes. So CarryLate changes a record on To only if nobody has written it since it was to be carried
// over. That cannot always be seen: a record that was made and deleted there without an announcement
// leaves no trace. CarryLate returns what must stay on From, and why. chosen are records that an operator
// has named: these it carries over also if they may have been deleted on To.
func CarryLate(ctx context.Context, from, to backend.Session, election, id string, chosen []string) (Left, error) {
	g, err := along.Read(ctx, from, election)
	if err != nil {
		return nil, err
	}
	all := slices.Concat(g.Records, g.Unclaimed)
	if history := naming.OfElection(election, naming.History); history != "" {
		all = append(all, history)
	}
	var left Left
	for _, name := range all {
		l := late{from, to, along.Note{Record: name, Election: election, Migration: id}, slices.Contains(g.Unclaimed, name), g.Has(name), slices.Contains(chosen, name)}
		err := again.Try(ctx, written, func() error { return l.carry(ctx) })
		switch {
		case along.Stays(err):
			left = append(left, fmt.Errorf("%s: %w", name, err))
		case err != nil:
			return nil, err
		}
	}
	return left, nil
}

// A Left is an error that says for each record that was left behind why it must stay there.
type Left []error

func (l Left) Error() string {
	var all []string
	for _, err := range l {
		all = append(all, err.Error())
	}
	return strings.Join(all, "; ")
}

// Unwrap returns why each record must stay.
func (l Left) Unwrap() []error { return l }

// A late is a record that the cutover may have left behind.
type late struct {
	from, to  backend.Session
	want      along.Note
	unclaimed bool // nothing says that it goes with the election
	always    bool // it matters which counts, also if there is none yet: it is not the history
	chosen    bool
}

// carry carries the record over if that is still to be done, or says why it must stay. When it is done, the note says that To's
// record counts, so that processes with both read what those with To alone write.
func (l late) carry(ctx context.Context) error {
	r, err := readCarried(ctx, l.from, l.to, l.want)
	if err != nil || r.note == l.want {
		return err
	}
	announced, goes := r.note.Announces(l.want), r.note.Election == l.want.Election
	unchanged := announced && r.note.Over == r.to.Version
	stands := r.to.Version != backend.Absent
	same := r.same()
	switch {
	case announced && !unchanged && !r.note.Left: // carried over already
	case l.unclaimed && !same && (goes || !stands):
		return along.Unclaimed(l.want.Election, l.want.Record)
	case l.unclaimed, same && !stands && !l.always:
		return nil
	case !goes && r.note.Election != "":
		return along.Other(l.want.Record, r.note.Election)
	case same: // an operator has copied it, or there is nothing to copy
	case goes && !stands && !l.chosen:
		// It looks the same whether it was never there since it was noted, or was, and has been deleted.
		return fmt.Errorf("%w record: it may have been there already, from an earlier migration or this one, and deleted there since; if it was not, say that it is to be carried over", backend.ErrInvalid)
	case unchanged, !stands:
		return r.carry(ctx, l.to, backend.Member{}, l.want)
	case goes, l.always:
		return errEither
	}
	// To's record counts, also a history that has begun anew there.
	_, err = l.want.Write(ctx, l.to, r.at, backend.Member{})
	return err
}
