package composite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/internal/naming"
	"github.com/succession-dev/succession/migrate/internal/protocol"
)

// A record that a leader guards follows its election: whoever completes the cutover carries it over to
// To, or else the first guarded write after it, and writes down there, beside it, for which election and
// by which migration. Everybody else reads that note, and so needs to know neither the
// election nor whether it has moved. Any other record stays on From.
//
// Who carries over does so on condition that the gate stands, or later its own member as the leader's.
// What it finds on To without such a note, or with that of an earlier
// migration, was left there when the election was last on To, or by a write that failed:
// that of From counts.
const noteSuffix = naming.Note

// A note says that a record goes with an election, and by which migration it has come; Migration is empty as long as it has not
// moved.
type note struct {
	Record    string `json:"record"`
	Election  string `json:"election"`
	Migration string `json:"migration"`
}

// noteOf reads the note of a record, and its version.
func noteOf(ctx context.Context, to backend.Session, name string) (note, backend.Version, error) {
	r, err := to.Get(ctx, protocol.Companion(name, noteSuffix))
	if err != nil {
		return note{}, 0, err
	}
	return parseNote(r.Value, name), r.Version, nil
}

// parseNote returns the note of the record with the name. Names so long that they share a note, and what strangers wrote there,
// are no note.
func parseNote(value []byte, name string) note {
	var n note
	if json.Unmarshal(value, &n) != nil || n.Record != name {
		return note{}
	}
	return n
}

// write writes the note where it still has the version, while m stands. The same note may be there by then: of
// a process that has written it at the same time, or by a try whose answer was lost.
func (n note) write(ctx context.Context, to backend.Session, at backend.Version, m backend.Member) error {
	value, err := json.Marshal(n)
	if err != nil {
		return err
	}
	_, err = to.Put(ctx, protocol.Companion(n.Record, noteSuffix), value, &backend.If{Version: at, Member: m})
	if errors.Is(err, backend.ErrVersion) {
		if now, _, gerr := noteOf(ctx, to, n.Record); gerr == nil && now == n {
			return nil
		}
	}
	return err
}

// movedBy returns the ID of the migration that brought the election to To; "" where it is
// on From.
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

// keeper says which coordinator keeps a record: that of an election is where the
// election is, one that a leader guards follows as said above, and any other stays on
// From. It also returns the version of the record's note, which changes when the record
// is carried over.
func (s *session) keeper(ctx context.Context, name string) (protocol.Side, backend.Version, error) {
	if election, ok := strings.CutSuffix(name, naming.Fence); ok {
		n, _, err := noteOf(ctx, s.to(), name)
		if err == nil && n.Election == "" {
			sd, _, err := s.keeper(ctx, election) // its fence
			return sd, 0, err
		}
		if err != nil {
			return protocol.To, 0, err
		}
	}
	if s.hasMoved(name) {
		return protocol.To, 0, nil
	}
	var n note
	var at backend.Version
	var noteErr error
	var wg sync.WaitGroup
	wg.Go(func() { n, at, noteErr = noteOf(ctx, s.to(), name) })
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
	if h[protocol.From] != (backend.Header{}) || h[protocol.To] != (backend.Header{}) {
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
			return protocol.To, at, nil
		}
	}
	return protocol.From, at, nil
}

// keeping returns the part with the coordinator that keeps a record. A session that
// leads by To alone does not end because From cannot be reached.
func (s *session) keeping(ctx context.Context, sd protocol.Side) (backend.Session, error) {
	if sd == protocol.From {
		if _, err := s.openFrom(ctx); err != nil {
			return nil, err
		}
	}
	return s.use(sd)
}

// carry carries a record over to To, where the candidacy's election has moved to, before its
// leader writes it there, if the cutover did not know of it. A write that does not ask for a version
// overwrites what From has, and can do without From: then the writing of the note is left to the
// caller, for when the value is there. Until it is, that of From counts.
func (s *session) carry(ctx context.Context, c *candidacy, name string, needed bool) (writeNote func() error, err error) {
	id, err := s.movedBy(ctx, c.line)
	if err != nil {
		return nil, err
	}
	was, at, err := noteOf(ctx, s.to(), name)
	want := note{Record: name, Election: c.line, Migration: id}
	if err != nil || id == "" || was == want {
		return nil, err
	}
	to, m := s.to(), c.now().at[protocol.To]
	if err = s.fromOver(); err == nil || needed {
		var from backend.Session
		if from, err = s.keeping(ctx, protocol.From); err == nil {
			err = s.notEnded(carryOver(ctx, from, to, m, want, false, true))
		}
	}
	if err != nil && !needed {
		return func() error { return want.write(ctx, to, at, m) }, nil
	}
	return nil, err
}

// carries fails if a record is the header of an election, on one side or the other. A list of records is what candidates have
// written, and who carries over may have more rights than they: a header would take the fence of another election along.
func carries(name string, states ...backend.Record) error {
	for _, r := range states {
		if header.Is(r.Value) {
			return fmt.Errorf("%w record %s: it is that of an election, and does not go with another one", backend.ErrInvalid, name)
		}
	}
	return nil
}

// carryOver makes a record on To what it is on From, and writes the note of it, while m stands on To.
// Where there is none on From, one on To is removed if it was left there, as left says or the note
// of an earlier migration; then the note is written only if that is wanted in any case.
func carryOver(ctx context.Context, from, to backend.Session, m backend.Member, want note, left, always bool) error {
	old, err := from.Get(ctx, want.Record)
	if err != nil {
		return err
	}
	// The record before its note: as long as that is not there, nobody has written the record.
	now, err := to.Get(ctx, want.Record)
	if err != nil {
		return err
	}
	was, at, err := noteOf(ctx, to, want.Record)
	if err != nil || was == want {
		return err
	}
	if err := carries(want.Record, old, now); err != nil {
		return err
	}
	cond := &backend.If{Version: now.Version, Member: m}
	switch {
	case old.Version != backend.Absent:
		_, err = to.Put(ctx, want.Record, old.Value, cond)
	case (left || was.Migration != "") && now.Version != backend.Absent:
		err = to.Delete(ctx, want.Record, cond)
	case !always:
		return nil
	}
	if err != nil {
		return err
	}
	return want.write(ctx, to, at, m)
}
