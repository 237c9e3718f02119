package migrate

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/header"
)

// A record that a leader guards follows its election: the first guarded write after the
// cutover carries it over to To, and writes down there, beside it, for which election and
// by which migration. Everybody else reads that, and so needs to know neither the election
// nor whether it has moved. Any other record stays on From.
//
// The one who carries is the leader, on condition that its member stands, so there is one
// at a time. What it finds on To without such a note, or with that of an earlier
// migration, was left there when the election was last on To, or by a write that failed:
// that of From counts.
const homeSuffix = ".migrate-home"

// A home is that note.
type home struct {
	Record    string `json:"record"`
	Election  string `json:"election"`
	Migration string `json:"migration"`
}

// home reads the note of a record, and its version.
func (s *session) home(ctx context.Context, name string) (home, backend.Version, error) {
	r, err := s.sub[sideTo].Get(ctx, companion(name, homeSuffix))
	if err != nil {
		return home{}, 0, err
	}
	var h home
	// Names so long that they share a note, and what strangers wrote there: no note.
	if json.Unmarshal(r.Value, &h) != nil || h.Record != name {
		h = home{}
	}
	return h, r.Version, nil
}

// residence returns the ID of the migration that brought the election to To; "" where
// it is on From.
func (s *session) residence(ctx context.Context, election string) (string, error) {
	h, errs := s.headers(ctx, election)
	if errs[sideTo] != nil {
		return "", errs[sideTo]
	}
	r, err := s.b.rule(h[sideFrom], h[sideTo])
	switch {
	case err == nil && !r.both && r.alone == sideTo && h[sideTo].Migration.Step == stepMoved:
		return h[sideTo].Migration.ID, nil
	case errs[sideFrom] != nil:
		return "", errs[sideFrom]
	case err == nil && !r.both && r.alone == sideTo:
		return h[sideFrom].Migration.ID, nil // sealed
	}
	return "", nil
}

// keeper says which coordinator keeps a record: that of an election is where the
// election is, one that a leader guards follows as said above, and any other stays on
// From. It also returns the version of the record's note, which changes when the record
// is carried over.
func (s *session) keeper(ctx context.Context, name string) (side, backend.Version, error) {
	if election, ok := strings.CutSuffix(name, header.Suffix); ok {
		note, _, err := s.home(ctx, name)
		if err == nil && note.Election == "" {
			sd, _, err := s.keeper(ctx, election) // its fence
			return sd, 0, err
		}
		if err != nil {
			return sideTo, 0, err
		}
	}
	if s.hasMoved(name) {
		return sideTo, 0, nil
	}
	var note home
	var at backend.Version
	var noteErr error
	var wg sync.WaitGroup
	wg.Go(func() { note, at, noteErr = s.home(ctx, name) })
	h, errs := s.headersNow(ctx, name) // a record that is on To does not wait for From
	wg.Wait()
	for sd, err := range errs {
		if err != nil && !errors.Is(err, backend.ErrHeader) && !errors.Is(err, backend.ErrUnavailable) {
			return side(sd), 0, err
		}
	}
	if rule, err := s.b.rule(h[sideFrom], h[sideTo]); err == nil && !rule.both && rule.alone == sideTo {
		s.setMoved(name)
		return sideTo, 0, nil
	}
	if h[sideFrom] != (backend.Header{}) || h[sideTo] != (backend.Header{}) {
		return sideFrom, at, nil
	}
	if noteErr != nil {
		return sideTo, 0, noteErr
	}
	if note.Election != "" {
		id, err := s.residence(ctx, note.Election)
		if err != nil {
			return sideTo, 0, err
		}
		if id != "" && id == note.Migration {
			return sideTo, at, nil
		}
	}
	return sideFrom, at, nil
}

// keeping returns the session with the coordinator that keeps a record. A session that
// leads by To alone does not end because From cannot be reached.
func (s *session) keeping(ctx context.Context, sd side) (backend.Session, error) {
	if sd == sideFrom {
		if _, err := s.openFrom(ctx); err != nil {
			return nil, err
		}
	}
	return s.half(sd)
}

// carry carries a record over to To, where the election of p has moved to, before its
// leader p writes it there. A write that does not ask for a version overwrites what
// From has, and can do without From: then the note is left to the caller, for when the
// value is there. Until it is, that of From counts.
func (s *session) carry(ctx context.Context, p *place, name string, needed bool) (note func() error, err error) {
	id, err := s.residence(ctx, p.line)
	if err != nil {
		return nil, err
	}
	was, at, err := s.home(ctx, name)
	want := home{Record: name, Election: p.line, Migration: id}
	if err != nil || id == "" || was == want {
		return nil, err
	}
	value, err := json.Marshal(want)
	if err != nil {
		return nil, err
	}
	to, m := s.sub[sideTo], p.member(sideTo)
	note = func() error {
		_, err := to.Put(ctx, companion(name, homeSuffix), value, &backend.If{Version: at, Member: m})
		return err
	}
	var old backend.Record
	if err = s.fromOver(); err == nil || needed {
		old, err = s.onFrom(ctx, name)
	}
	if err != nil && !needed {
		return note, nil
	}
	if err == nil {
		err = replace(ctx, to, m, name, old, was.Migration != "")
	}
	if err == nil {
		err = note()
	}
	return nil, err
}

// replace makes the record on To what it is on From. Where there is none on From, one on
// To is removed if it was left there.
func replace(ctx context.Context, to backend.Session, m backend.Member, name string, old backend.Record, left bool) error {
	now, err := to.Get(ctx, name)
	at := &backend.If{Version: now.Version, Member: m}
	switch {
	case err != nil:
	case old.Version != backend.Absent:
		_, err = to.Put(ctx, name, old.Value, at)
	case left && now.Version != backend.Absent:
		err = to.Delete(ctx, name, at)
	}
	return err
}

// onFrom reads a record of From.
func (s *session) onFrom(ctx context.Context, name string) (backend.Record, error) {
	from, err := s.keeping(ctx, sideFrom)
	if err != nil {
		return backend.Record{}, err
	}
	return from.Get(ctx, name)
}
