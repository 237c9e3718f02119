package composite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/along"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/internal/naming"
	"github.com/succession-dev/succession/migrate/internal/protocol"
)

// A record that a leader guards follows its election. The process that completes the cutover
// carries it over to To, or else the first guarded write after the cutover does. It also writes a
// note beside the record on To, with the election and the migration. All others read that note, so
// they need not know the election, or whether it has moved. Any other record stays on From.
//
// A record is carried over on condition that the gate stands or, later, that the leader's member
// does. A record on To without such a note, or with the note of an earlier migration, was left
// there when the election was last on To, or clients of To alone have written it since: From's record counts.
//
// Who carries a record over may end before each request, or miss an answer. Therefore it first
// announces what it is about to do, in the note, with the version that To's record has then. If the
// record has another version later, it was carried over, and perhaps written since by clients of To
// alone, which know no notes: To's record counts, and only the note is to be completed.
//
// Clients of To alone may write any record once the gate has gone, and To's may be the newer one. Nothing shows
// that. From's counts nevertheless, because that is the same for all processes with both: otherwise some would
// write on From and others on To. But a leader's first write does not copy From's over To's; see carryFirst.

// movedBy returns the ID of the migration that brought the election to To; "" if it is on From.
func (s *session) movedBy(ctx context.Context, election string) (string, error) {
	h, errs := s.headers(ctx, election)
	if errs[protocol.To] != nil {
		return "", errs[protocol.To]
	}
	phase, _ := s.route.Phase(h[protocol.From], h[protocol.To])
	switch {
	case phase.HasMoved() && h[protocol.To].Migration.Step == protocol.StepMoved:
		return h[protocol.To].Migration.ID, nil
	case errs[protocol.From] != nil:
		return "", errs[protocol.From]
	case phase.HasMoved():
		return h[protocol.From].Migration.ID, nil // sealed
	}
	return "", nil
}

// unreadyOf returns the election of which the name is that of a record about candidates that are not ready, or the folder of these
// records. They are where the election is, and do not move: each is about a member there.
func unreadyOf(name string) (election string, ok bool) {
	if election, ok = strings.CutSuffix(name, naming.Unready); !ok {
		election, _, ok = naming.UnreadyMember(name)
	}
	return election, ok && election != ""
}

// keeper says which coordinator keeps a record: the header of an election is where the election is,
// a record that a leader guards follows as said above, and any other stays on From. It also returns
// the version of the record's note, which changes when the record is carried over.
func (s *session) keeper(ctx context.Context, name string) (protocol.Side, backend.Version, error) {
	if election, ok := unreadyOf(name); ok {
		sd, _, err := s.keeper(ctx, election)
		return sd, 0, err
	}
	if election, ok := strings.CutSuffix(name, naming.Fence); ok {
		n, _, err := along.NoteOf(ctx, s.to(), name)
		if err == nil && n.Election == "" {
			sd, _, err := s.keeper(ctx, election) // a fence's record is where its election is
			return sd, 0, err
		}
		if err != nil {
			return protocol.To, 0, err
		}
	}
	if s.hasMoved(name) {
		return protocol.To, 0, nil
	}
	var n along.Note
	var at backend.Version
	var noteErr error
	var wg sync.WaitGroup
	wg.Go(func() { n, at, noteErr = along.NoteOf(ctx, s.to(), name) })
	h, errs := s.headersNow(ctx, name) // a record that is on To does not wait for From
	wg.Wait()
	for sd, err := range errs {
		if err != nil && !errors.Is(err, backend.ErrHeader) && !errors.Is(err, backend.ErrUnavailable) {
			return protocol.Side(sd), 0, err
		}
	}
	if phase, _ := s.route.Phase(h[protocol.From], h[protocol.To]); phase.HasMoved() {
		s.setMoved(name, true)
		return protocol.To, 0, nil
	}
	if h[protocol.From] != (header.Header{}) || h[protocol.To] != (header.Header{}) {
		return protocol.From, at, nil
	}
	if noteErr != nil {
		return protocol.To, 0, noteErr
	}
	if n.Election != "" {
		id, err := s.movedBy(ctx, n.Election)
		if err != nil {
			return protocol.To, 0, err
		}
		if id != "" && id == n.Migration {
			carried := n.Over == 0
			if !carried { // it is only announced
				now, err := s.to().Get(ctx, name)
				if err != nil {
					return protocol.To, 0, err
				}
				carried = now.Version != n.Over
			}
			if carried {
				return protocol.To, at, nil
			}
		}
	}
	return protocol.From, at, nil
}

// keeping returns the part with the coordinator that keeps a record. If From cannot be reached, a
// session that leads by To alone does not end.
func (s *session) keeping(ctx context.Context, sd protocol.Side) (backend.Session, error) {
	if sd == protocol.From {
		if _, err := s.openFrom(ctx); err != nil {
			return nil, err
		}
	}
	return s.use(sd)
}

// carry is for a record that the cutover did not know of. It carries the record over to To, where
// the candidacy's election is, before its leader writes it there. A write that names no version
// overwrites From's value, and does not need From: then carry announces that write, and the caller
// writes the note itself, after the value. Until the value is written, From's record counts.
func (s *session) carry(ctx context.Context, c *candidacy, name string, needed bool) (writeNote func() error, err error) {
	id, err := s.movedBy(ctx, c.line)
	if err != nil {
		return nil, err
	}
	to, m := s.to(), c.now().at[protocol.To]
	want := along.Note{Record: name, Election: c.line, Migration: id}
	was, _, err := along.NoteOf(ctx, to, name)
	if err != nil || id == "" || was == want {
		return nil, err
	}
	if err = s.fromOver(); err == nil || needed {
		var from backend.Session
		if from, err = s.keeping(ctx, protocol.From); err == nil {
			err = s.notEnded(carryFirst(ctx, from, to, m, want))
		}
	}
	if err == nil || needed {
		return nil, err
	}
	was, at, err := along.NoteOf(ctx, to, name)
	if err != nil || was == want { // carryOver may have written it
		return nil, err
	}
	now, err := to.Get(ctx, name)
	if err == nil {
		at, err = want.Announce(ctx, to, now, was, at, m)
	}
	return func() error {
		_, err := want.Write(ctx, to, at, m)
		return err
	}, err
}

// carries fails if a record is the header of an election, on one side or the other. Candidates
// write the list of records, and the process that carries over may have more rights than they have:
// a header would take the fence of another election along.
func carries(name string, states ...backend.Record) error {
	for _, r := range states {
		if header.Is(r.Value) {
			return fmt.Errorf("%w record %s: it is that of an election, and does not go with another one", backend.ErrInvalid, name)
		}
	}
	return nil
}

// carryOver copies a record from From to To and writes its note, on condition that m stands on To.
// If From has no such record, carryOver removes To's record if it was left there: if left is set,
// or the note names an earlier migration. If there is nothing to copy and nothing to remove, it
// writes the note only if always is set.
func carryOver(ctx context.Context, from, to backend.Session, m backend.Member, want along.Note, left, always bool) error {
	r, err := readCarried(ctx, from, to, want)
	if err != nil || r.note == want {
		return err
	}
	return r.carryOver(ctx, to, m, want, left, always)
}

// carryFirst is carryOver for a leader's first write of a record after the cutover. Clients of To alone may have
// written the record since, or it was left there when the election was last on To. If nothing shows which, it is
// refused to copy From's over it. To's counts if From has none and no note says that To's was left there. The
// history is not refused, because it only says what was: From's counts.
func carryFirst(ctx context.Context, from, to backend.Session, m backend.Member, want along.Note) error {
	r, err := readCarried(ctx, from, to, want)
	if err != nil || r.note == want {
		return err
	}
	switch {
	case want.Record == naming.OfElection(want.Election, naming.History), r.to.Version == backend.Absent, r.note.Announces(want):
		return r.carryOver(ctx, to, m, want, false, true)
	case !r.same() && (r.from.Version != backend.Absent || r.note.Election != ""):
		return fmt.Errorf("%s: %w", want.Record, errEither)
	}
	_, err = want.Write(ctx, to, r.at, m)
	return err
}

func (r carried) carryOver(ctx context.Context, to backend.Session, m backend.Member, want along.Note, left, always bool) error {
	stands := r.to.Version != backend.Absent
	switch {
	case r.note.Announces(want) && r.note.Over != r.to.Version: // carried over already
	case r.from.Version != backend.Absent, stands && (left || r.note.Migration != ""):
		return r.carry(ctx, to, m, want)
	case !always:
		return nil
	}
	_, err := want.Write(ctx, to, r.at, m)
	return err
}

// A carried is a record as it is on both coordinators, with its note on To.
type carried struct {
	note     along.Note
	at       backend.Version // of the note
	from, to backend.Record
}

// errEither is why a record is not carried over: nothing shows which of the two is the newer one.
var errEither = fmt.Errorf("%w record: the one on the new coordinator is of an earlier migration, or was written since; copy the newer one over the other", backend.ErrInvalid)

// same reports whether both coordinators have the record with one value, or neither has it.
func (r carried) same() bool {
	return (r.from.Version == backend.Absent) == (r.to.Version == backend.Absent) && bytes.Equal(r.from.Value, r.to.Value)
}

// readCarried reads the record that want is about. If it has the note want, only that is read.
func readCarried(ctx context.Context, from, to backend.Session, want along.Note) (r carried, err error) {
	// The note is read before the record: if somebody else carries the record over meanwhile, he writes
	// the note, and then it is not written here.
	if r.note, r.at, err = along.NoteOf(ctx, to, want.Record); err != nil || r.note == want {
		return r, err
	}
	if r.from, err = from.Get(ctx, want.Record); err != nil {
		return r, err
	}
	if r.to, err = to.Get(ctx, want.Record); err != nil {
		return r, err
	}
	return r, carries(want.Record, r.from, r.to)
}

// carry makes To's record what From's is, if To's still has its version and m stands. It announces that
// before, and then writes the note want.
func (r carried) carry(ctx context.Context, to backend.Session, m backend.Member, want along.Note) error {
	at, err := want.Announce(ctx, to, r.to, r.note, r.at, m)
	if err != nil {
		return err
	}
	cond := &backend.If{Version: r.to.Version, Member: m}
	if r.from.Version != backend.Absent {
		_, err = to.Put(ctx, want.Record, r.from.Value, cond)
	} else {
		err = to.Delete(ctx, want.Record, cond)
	}
	if along.Stays(err) {
		left := want
		left.Over, left.Left = r.to.Version, true
		if _, nerr := left.Write(ctx, to, at, m); nerr != nil && !along.Stays(nerr) {
			return nerr
		}
	}
	if err != nil {
		return err
	}
	_, err = want.Write(ctx, to, at, m)
	return err
}
