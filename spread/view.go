package spread

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/internal/naming"
	"github.com/succession-dev/succession/migrate"
)

// A view shows several clusters as the backend of one election.
type view struct {
	b        *Backend
	election string
}

var _ backend.Backend = (*view)(nil)

// Session returns the live session with the cluster that the election lives on; see
// [backend.Backend]. All elections of a process that live on one cluster share it. As long as the election has no home, that is the
// cluster that its name falls to.
func (v *view) Session(ctx context.Context) (backend.Session, error) {
	h, err := v.b.home(ctx, v.election, false)
	if err != nil {
		return nil, wrap("session", v.election, err)
	}
	sub, err := v.b.at(ctx, v.election, h)
	if err != nil {
		return nil, wrap("session", v.election, err)
	}
	s, err := sub.Session(ctx)
	if err != nil {
		return nil, err
	}
	of := &session{Session: s, v: v}
	of.home.Store(h)
	return of, nil
}

// Unwrap returns the backend that all elections share, so that an outage is logged once for all of
// them.
func (v *view) Unwrap() backend.Backend { return v.b }

// Close does nothing: the clusters belong to the [Backend].
func (v *view) Close() error { return nil }

// A session is a session with the cluster that an election lives on. When the election gets another
// home, a candidate that waits in line joins again. A leader is not disturbed. Who only looks gives the election no home:
// Join, Put and Delete do.
type session struct {
	backend.Session
	v    *view
	home atomic.Pointer[home]
}

// settle returns the election's home, and gives it one if it has none. It fails if that is not on the cluster of this session.
func (s *session) settle(ctx context.Context) (*home, error) {
	was := s.home.Load()
	if was.keeper != nil {
		return was, nil
	}
	h, err := s.v.b.home(ctx, s.v.election, true)
	switch {
	case err != nil:
		return nil, err
	case h.known() != was.known():
		return nil, errMoved
	}
	if _, err := s.v.b.use(ctx, h.At); err != nil {
		return nil, err
	}
	s.home.Store(h)
	return h, nil
}

func (s *session) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	if line != s.v.election {
		return backend.Joined{}, wrap("join", line, fmt.Errorf("%w line: this is the backend of %s, which may live on another cluster; call For(%[3]q)", backend.ErrInvalid, s.v.election, line))
	}
	if _, err := s.settle(ctx); err != nil {
		return backend.Joined{}, wrap("join", line, err)
	}
	j, err := s.Session.Join(ctx, line, value, record)
	return j, s.again(ctx, err)
}

func (s *session) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.Session.Ahead(ctx, m)
	return p, s.again(ctx, err)
}

// WatchPlace is the cluster's own. A member that waits behind others also wakes when the election
// gets another home.
func (s *session) WatchPlace(ctx context.Context, m backend.Member, p *backend.Place) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if !p.First {
		defer context.AfterFunc(s.home.Load().left, func() { cancel(errMoved) })()
	}
	err := s.Session.WatchPlace(ctx, m, p)
	if errors.Is(context.Cause(ctx), errMoved) {
		return errMoved
	}
	return s.again(ctx, err)
}

func (s *session) Line(ctx context.Context, line string) (backend.Line, error) {
	return s.look(ctx, line, s.Session.Line)
}

func (s *session) Head(ctx context.Context, line string) (backend.Line, error) {
	return s.look(ctx, line, s.Session.Head)
}

// look reads a line for an observer, to whom no other call reports that the election was sealed
// here.
func (s *session) look(ctx context.Context, line string, read func(context.Context, string) (backend.Line, error)) (backend.Line, error) {
	l, err := read(ctx, line)
	if err == nil && line == s.v.election && l.Header.Sealed != "" {
		if err := s.again(ctx, &backend.SealedError{To: l.Header.Sealed}); errors.Is(err, errMoved) {
			return backend.Line{}, err
		}
	}
	return l, err
}

// again returns an error after which a candidate joins again, if err says that the election has
// left this cluster and it has another home.
func (s *session) again(ctx context.Context, err error) error {
	if !errors.Is(err, backend.ErrSealed) && !errors.Is(err, migrate.ErrOther) && !errors.Is(err, migrate.ErrNotBegun) {
		return err
	}
	h := s.home.Load()
	if h.keeper == nil {
		return err
	}
	changed, cerr := s.v.b.changed(ctx, s.v.election, h)
	switch {
	case cerr != nil:
		return cerr
	case changed:
		return errMoved
	}
	return err
}

// Put is the cluster's own. A record that a leader guards is first noted to go with the election, so
// that a later move takes it along.
func (s *session) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	if err := s.guards(ctx, name, cond); err != nil {
		return 0, err
	}
	return s.Session.Put(ctx, name, value, cond)
}

// Delete is like Put: the record may be on the other cluster, too, from before an earlier move.
func (s *session) Delete(ctx context.Context, name string, cond *backend.If) error {
	if err := s.guards(ctx, name, cond); err != nil {
		return err
	}
	return s.Session.Delete(ctx, name, cond)
}

// guards gives the election a home, and notes that a leader guards the record. While the election moves, package migrate does that
// by itself.
func (s *session) guards(ctx context.Context, name string, cond *backend.If) error {
	h, err := s.settle(ctx)
	if err != nil || cond == nil || cond.Member.Line != s.v.election || h.both() {
		return err
	}
	return h.guarded.Guards(ctx, s.Session, cond.Member, name, s.v.b.log)
}

// List leaves out what is noted beside records, as it does while the election moves.
func (s *session) List(ctx context.Context, dir string) ([]string, error) {
	names, err := s.Session.List(ctx, dir)
	return slices.DeleteFunc(names, noted), err
}

// ReadAll leaves out what List does.
func (s *session) ReadAll(ctx context.Context, dir string) ([]backend.Record, error) {
	records, err := s.Session.ReadAll(ctx, dir)
	return slices.DeleteFunc(records, func(r backend.Record) bool { return noted(r.Name) }), err
}

// noted reports whether package migrate notes something under that name.
func noted(name string) bool {
	_, by, _ := naming.Kept(name)
	return by == naming.Migration
}

// JoinShared fails: an election with shared members cannot be moved.
func (s *session) JoinShared(ctx context.Context, line, value, record string) (backend.Joined, error) {
	return kit.NoShares{}.JoinShared(ctx, line, value, record)
}

// Claim fails like JoinShared.
func (s *session) Claim(ctx context.Context, line, value, record string, item backend.Member) (backend.Joined, error) {
	return kit.NoShares{}.Claim(ctx, line, value, record, item)
}

// Append fails: a line with items cannot be moved.
func (s *session) Append(ctx context.Context, line, value string) (backend.Member, error) {
	return kit.NoItems{}.Append(ctx, line, value)
}

// Remove fails like Append, so there are no items here.
func (s *session) Remove(ctx context.Context, m, by backend.Member) error {
	return kit.NoItems{}.Remove(ctx, m, by)
}

// Free fails like Append.
func (s *session) Free(ctx context.Context, items, claims string) (backend.Member, error) {
	return kit.NoItems{}.Free(ctx, items, claims)
}
