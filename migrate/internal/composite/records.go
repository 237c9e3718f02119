package composite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/internal/again"
	"github.com/succession-dev/succession/internal/along"
	"github.com/succession-dev/succession/internal/naming"
	"github.com/succession-dev/succession/migrate/internal/protocol"
)

// Get returns a record of the coordinator that keeps it; see [backend.Session] and
// the package comment.
func (s *session) Get(ctx context.Context, name string) (r backend.Record, err error) {
	defer s.told("get", name, &err)
	if err := backend.CheckName(name); err != nil {
		return backend.Record{}, err
	}
	for again := false; ; again = true {
		sd, _, err := s.keeper(ctx, name)
		if err != nil {
			return backend.Record{}, err
		}
		part, err := s.keeping(ctx, sd)
		if err != nil {
			return backend.Record{}, err
		}
		r, err := part.Get(ctx, name)
		if err == nil && sd == protocol.To && !again && s.movedOn(r) {
			continue
		}
		r.Version = tagVersion(sd, r.Version)
		return r, err
	}
}

// Refresh refreshes both parts, at the same time; see [backend.Session]. From may be out of reach
// if the session does not need it. Where there is no part with From, a read that needs one opens it.
func (s *session) Refresh(ctx context.Context) (err error) {
	defer s.told("refresh", "", &err)
	if err := s.alive(); err != nil {
		return err
	}
	var errs [2]error
	Both(func(sd protocol.Side) {
		if part := s.part(sd); part != nil {
			errs[sd] = part.Refresh(ctx)
		}
	})
	if errs[protocol.From] != nil && !s.needsFrom() {
		errs[protocol.From] = nil
	}
	return errors.Join(errs[:]...)
}

// Outlived asks the coordinator that keeps the record; see [backend.Session].
func (s *session) Outlived(ctx context.Context, record, line string) (bool, error) {
	sd, _, err := s.keeper(ctx, record)
	if err != nil {
		return false, err
	}
	part, err := s.keeping(ctx, sd)
	if err != nil {
		return false, err
	}
	return part.Outlived(ctx, record, line)
}

// movedOn reports whether r is the record of an election that was known to be on To, and has moved
// on, perhaps back. The caller must then look for it again.
func (s *session) movedOn(r backend.Record) bool {
	h, err := backend.ParseHeader(r.Value)
	if err != nil || h.Sealed == "" || !s.hasMoved(r.Name) {
		return false
	}
	s.setMoved(r.Name, false)
	return true
}

// A target says where a conditional write goes.
type target struct {
	side protocol.Side
	part backend.Session
	cond backend.If   // the condition as that coordinator knows it
	note func() error // writes the note after it; nil if there is none to write
}

// target returns where a conditional write goes. A guarded write goes to the coordinator on which
// the member of its term stands.
func (s *session) target(ctx context.Context, name string, cond *backend.If) (t target, err error) {
	if err := backend.CheckName(name); err != nil {
		return t, err
	}
	if cond != nil {
		t.cond = *cond
	}
	c := s.owned(t.cond.Member)
	switch {
	case t.cond.Member == (backend.Member{}):
		t.side, _, err = s.keeper(ctx, name)
	case c == nil:
		t.cond.Member, t.side = untag(t.cond.Member)
	default:
		st := c.now()
		t.side = st.side()
		if t.cond.Member = st.at[t.side]; t.cond.Member.Key == "" || st.hasLost() {
			err = backend.ErrNotMember
		} else if t.side == protocol.From {
			err = s.unsealed(ctx, c)
		}
		if _, unready := unreadyOf(name); err == nil && !unready && name != c.line && name != naming.OfElection(c.line, naming.Fence) {
			t.note, err = s.guard(ctx, c, name, t.cond.Version != backend.Any)
			err = along.Unsettled(err)
		}
	}
	if err != nil {
		return t, err
	}
	if t.part, err = s.keeping(ctx, t.side); err != nil {
		return t, err
	}
	var ok bool
	if t.cond.Version, ok = untagVersion(t.side, t.cond.Version); !ok {
		err = errOtherSide
		if c != nil && t.side == protocol.From && name == c.line {
			// The cause may be its own seal, whose answer was lost. Ahead finds out whether its
			// member stands.
			err = fmt.Errorf("%w: the election is being moved", backend.ErrUnavailable)
		}
	}
	return t, err
}

// guard prepares a guarded write of a record that goes with the candidacy's election; see carry in
// note.go.
func (s *session) guard(ctx context.Context, c *candidacy, name string, needed bool) (writeNote func() error, err error) {
	st := c.now()
	if st.mayBeGated() {
		if err := s.openGate(ctx, c); err != nil {
			return nil, err
		}
	}
	if err := s.guards(ctx, c, st.side(), name); err != nil || st.side() == protocol.From {
		return nil, err
	}
	return s.carry(ctx, c, name, needed)
}

// Put writes the record where the condition holds; see [backend.Session].
func (s *session) Put(ctx context.Context, name string, value []byte, cond *backend.If) (written backend.Version, err error) {
	defer s.told("put", name, &err)
	err = s.write(ctx, name, cond, func(t target) error {
		v, err := t.part.Put(ctx, name, value, &t.cond)
		written = tagVersion(t.side, v)
		return err
	})
	return written, err
}

// Delete removes the record where the condition holds; see [backend.Session].
func (s *session) Delete(ctx context.Context, name string, cond *backend.If) (err error) {
	defer s.told("delete", name, &err)
	return s.write(ctx, name, cond, func(t target) error { return t.part.Delete(ctx, name, &t.cond) })
}

// write does a conditional write. A candidacy does one guarded write at a time, and none while it
// seals From. So all acknowledged writes are on From when the record is carried over.
func (s *session) write(ctx context.Context, name string, cond *backend.If, do func(target) error) error {
	if cond != nil {
		if c := s.owned(cond.Member); c != nil {
			if err := c.writing.take(ctx); err != nil {
				return err
			}
			defer c.writing.release()
		}
	}
	t, err := s.target(ctx, name, cond)
	if err == nil {
		err = do(t)
	}
	if err == nil && t.note != nil {
		err = along.Unsettled(t.note())
	}
	return err
}

// List returns the names of the records directly under dir; see [backend.Session].
// It returns the records of From and of To, each once: a record that To keeps may have left its old
// value on From. The records about candidates that are not ready are those where the election is.
func (s *session) List(ctx context.Context, dir string) (shown []string, err error) {
	defer s.told("list", dir, &err)
	if election, ok := unreadyOf(dir); ok {
		sd, _, err := s.keeper(ctx, election)
		if err != nil {
			return nil, err
		}
		part, err := s.keeping(ctx, sd)
		if err != nil {
			return nil, err
		}
		return part.List(ctx, dir)
	}
	var names [2][]string
	var errs [2]error
	Both(func(sd protocol.Side) {
		var part backend.Session
		if part, errs[sd] = s.keeping(ctx, sd); errs[sd] == nil {
			names[sd], errs[sd] = part.List(ctx, dir)
		}
	})
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	all := slices.Concat(names[:]...)
	slices.Sort(all)
	for _, name := range slices.Compact(all) {
		_, fence := slices.BinarySearch(shown, strings.TrimSuffix(name, naming.Fence))
		if !strings.HasSuffix(name, naming.Note) && !strings.HasSuffix(name, naming.Guarded) && !(fence && strings.HasSuffix(name, naming.Fence)) {
			shown = append(shown, name)
		}
	}
	return shown, nil
}

// ReadAll reads each record apart; see [backend.Session]. Otherwise it would not know which side
// keeps the record.
func (s *session) ReadAll(ctx context.Context, dir string) ([]backend.Record, error) {
	return kit.ReadEach(ctx, s, dir)
}

// Watch blocks until the record has another version than after; see
// [backend.Session]. When an election moves, or a record is carried over, Watch returns the record
// on To next.
func (s *session) Watch(ctx context.Context, name string, after backend.Version) (r backend.Record, err error) {
	defer s.told("watch", name, &err)
	if err := backend.CheckName(name); err != nil {
		return backend.Record{}, err
	}
	for again := false; ; {
		sd, note, err := s.keeper(ctx, name)
		if err != nil {
			return backend.Record{}, err
		}
		part, err := s.keeping(ctx, sd)
		if err != nil {
			return backend.Record{}, err
		}
		plain, ok := untagVersion(sd, after)
		if !ok {
			plain = 0 // it is a version of the other coordinator, so the record here is new to the caller
		}
		r, moved, err := s.watchUntil(ctx, part, name, plain, note)
		if moved {
			continue
		}
		if err == nil && sd == protocol.From {
			if h, herr := backend.ParseHeader(r.Value); herr == nil && h.Sealed != "" && protocol.SameAddress(h.Sealed, s.route.To) {
				s.setMoved(name, true)
				continue
			}
		}
		if err == nil && sd == protocol.To && !again && s.movedOn(r) {
			again = true // only once, because a third coordinator may have it
			continue
		}
		r.Version = tagVersion(sd, r.Version)
		return r, err
	}
}

// watchUntil is Watch of one coordinator, until the record's note has another version
// than the given one, if it has any.
func (s *session) watchUntil(ctx context.Context, part backend.Session, name string, after, note backend.Version) (r backend.Record, moved bool, err error) {
	if note == 0 {
		r, err = part.Watch(ctx, name, after)
		return r, false, err
	}
	i, err := again.First(ctx,
		func(ctx context.Context) error {
			var err error
			r, err = part.Watch(ctx, name, after)
			return err
		},
		func(ctx context.Context) error {
			_, err := s.to().Watch(ctx, naming.Beside(name, naming.Note), note)
			return err
		})
	return r, i == 1 && err == nil, err
}
