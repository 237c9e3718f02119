package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// own is what a session knows of a member that it has joined.
type own struct {
	position uint64
	pinned   bool // or it may be
	doubtful bool // an answer to a request that creates it was lost: another one may still be on its way
	burnt    bool // its name is: it never counts from then on

	// Who stood in front when the session looked last: the nearest ones, the very nearest last. Nobody joins in front.
	front  []*object
	beyond bool          // others may stand in front of these
	looked bool          // front is known
	place  backend.Place // what was said last, as of since
	since  int64         // a version of which all was seen then
	said   string        // what the record of the line said then

	fenced bool // what was guarded by those who stood in front can write nothing any more

	listing sync.Mutex     // held while the record of the line is told what a write of its may reach
	listed  bool           // the record of the line may list something for it
	guarded []string       // objects that it is known to list
	seen    int            // how much was listed when it was told last
	pending map[string]int // objects that a guarded write may be on its way to
}

// mine returns what the session knows of a member, or nil if it has not joined it. The caller holds mu.
func (s *session) mine(m backend.Member) *own {
	if o := s.own[m.Key]; o != nil && o.position == m.Position {
		return o
	}
	return nil
}

// Join adds a member at the end of the line; see [backend.Session].
func (s *session) Join(ctx context.Context, line, value, _ string) (backend.Joined, error) {
	if s.b.beside() {
		if _, err := s.b.lockName(line); err != nil {
			return backend.Joined{}, err
		}
	}
	return s.join(ctx, line, value, false, nil)
}

// Shares fails beside candidates of client-go; see [kit.NoShares].
func (s *session) Shares() error {
	if s.b.beside() {
		return fmt.Errorf("%w: with as=%s nobody shares the lead, as one holds the Lease", errors.ErrUnsupported, ClientGo)
	}
	return nil
}

// JoinShared is Join for a shared member; see [backend.Session].
func (s *session) JoinShared(ctx context.Context, line, value, _ string) (backend.Joined, error) {
	return s.join(ctx, line, value, true, nil)
}

// join joins, and then notes the position, or calls then, which does so. If that fails, the member leaves.
func (s *session) join(ctx context.Context, line, value string, shared bool, then func(backend.Member, *object) error) (backend.Joined, error) {
	return s.joining.Do(ctx, func() (backend.Joined, func(), error) {
		m, made, err := s.add(ctx, line, value, shared)
		switch {
		case err == nil && then != nil:
			err = then(m, made)
		case err == nil:
			s.Go(func() { _, _ = s.noted(s.Context(), m, made) })
		}
		if err != nil && m.Key != "" {
			return backend.Joined{}, func() { s.joining.Discard(backend.Joined{Member: m}) }, err
		}
		return backend.Joined{Member: m}, nil, err
	})
}

// newMember returns a member that is to be created.
func (s *session) newMember(line, value string, shared bool) *object {
	name := randomName("member")
	o := newLease(name, s.name, map[string]string{memberLabel: s.b.space, idLabel: name, lineLabel: s.b.lineLabel(line)})
	o.Metadata.Annotations[nameNote] = line
	o.Metadata.Annotations[uidNote] = s.uid
	o.Spec.HolderIdentity = encode([]byte(value))
	if shared {
		o.Metadata.Annotations[sharedNote] = "true"
		if subject, ok := kit.SubjectOf(backend.Member{Value: value, Shared: true}); ok {
			o.Metadata.Annotations[subjectNote] = subject
			if key, _, _ := strings.Cut(subject, " "); isLabelValue(key) {
				o.Metadata.Labels[claimLabel] = key
			}
		}
	}
	return o
}

func (b *Backend) lineLabel(line string) string { return hash("line", b.o.Prefix, line) }

var labelValue = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

func isLabelValue(s string) bool { return len(s) <= 63 && labelValue.MatchString(s) }

// add joins, until it is certain whether it has. The member has one name, under which it may be created once. If it fails and a
// request may still be on its way, it returns the member without a position: see [session.leave]. ctx is the caller's: when it
// has ended, add does not begin again.
func (s *session) add(ctx context.Context, line, value string, shared bool) (m backend.Member, made *object, err error) {
	o := s.newMember(line, value, shared)
	name := o.Metadata.Name
	note := func(mine *own) { s.mu.Lock(); defer s.mu.Unlock(); s.own[name] = mine }
	note(&own{doubtful: true}) // it may stand before there is an answer, and other calls of this session must then stand behind it
	doubtful := false
	for pause := s.b.o.backoff(); ; {
		made, err = s.b.wire.create(s.Context(), s.b.o.attempt(), o)
		if errors.Is(err, errExists) {
			made, err = s.b.wire.get(s.Context(), s.b.o.attempt(), name, whole)
			if errors.Is(err, errMissing) {
				err = fmt.Errorf("%w: it was removed while it was joined", backend.ErrNotMember)
			}
		}
		if err == nil && made.note(uidNote) != s.uid {
			err = strange(fmt.Errorf("another object has the name %s", name))
		}
		if err == nil {
			break
		}
		doubtful = doubtful || lost(err)
		ended := s.Alive()
		if ended == nil && lost(err) && ctx.Err() == nil && pause.After(ctx, err) == nil {
			continue
		}
		switch {
		case ended != nil:
			err = ended
		case ctx.Err() != nil:
			err = context.Cause(ctx)
		}
		if doubtful {
			return backend.Member{Line: line, Key: name}, nil, err
		}
		s.mu.Lock()
		delete(s.own, name)
		s.mu.Unlock()
		return m, nil, err
	}
	note(&own{position: made.position(), doubtful: doubtful, pending: make(map[string]int)})
	if m, err = made.member(line, nil); err != nil {
		return backend.Member{Line: line, Key: name, Position: made.position()}, nil, err
	}
	m.Value = value
	return m, made, nil
}

// noted returns when the position of m stands in its object, which was read before as o; o may be nil. Nobody is first before
// that: its position is the version of its creation, and whatever rewrites objects, such as a change of the encoding in which
// they are stored, gives them another version.
func (s *session) noted(ctx context.Context, m backend.Member, o *object) (*object, error) {
	return kit.Retry(ctx, s.b.o.backoff(), lost, func(ctx context.Context) (*object, error) {
		for {
			var err error
			if o == nil {
				o, err = s.b.wire.get(ctx, s.b.o.attempt(), m.Key, metadata)
			}
			switch {
			case errors.Is(err, errMissing):
				return nil, backend.ErrNotMember
			case err != nil:
				return nil, err
			case o.position() != m.Position:
				return nil, fmt.Errorf("%w: something has rewritten it", backend.ErrNotMember)
			case o.note(positionNote) != "":
				return o, nil
			}
			p := patchOf(o)
			o, err = s.b.wire.patch(ctx, s.b.o.attempt(), m.Key, p)
			if err == nil {
				return o, nil
			}
			o = nil
			switch {
			case errors.Is(err, errMissing):
				return nil, backend.ErrNotMember
			case !errors.Is(err, errConflict):
				return nil, err
			}
		}
	})
}

// Leave removes m; see [backend.Session]. It is also removed if its caller gives up.
func (s *session) Leave(ctx context.Context, m backend.Member) error { return s.leaving.Do(ctx, m) }

func (s *session) leaveAlone(ctx context.Context, m backend.Member) error {
	_, err := kit.Await(ctx, s.Life, func() (struct{}, error) { return struct{}{}, s.leave(s.Context(), m) })
	return err
}

// leaveTogether removes members, one after the other.
func (s *session) leaveTogether(ctx context.Context, ms []backend.Member) (gone []bool) {
	gone = make([]bool, len(ms))
	for i, m := range ms {
		gone[i] = s.leave(ctx, m) == nil
	}
	return gone
}

// leave removes m, and gives on the lock that it held; see [ClientGo].
func (s *session) leave(ctx context.Context, m backend.Member) error {
	err := s.remove(ctx, m)
	if l := s.holding(m); l != nil && err == nil && s.drop(l) {
		bound, cancel := context.WithTimeout(ctx, s.b.o.attempt())
		defer cancel()
		_ = s.releaseLock(bound, l) // otherwise it runs out
	}
	return err
}

// remove removes m. If a request that creates it may still be on its way, it burns its name before: a burnt member never counts.
func (s *session) remove(ctx context.Context, m backend.Member) error {
	s.mu.Lock()
	mine := s.mine(m)
	known := s.own[m.Key]
	doubtful, left := mine != nil && mine.doubtful, s.past.members.has(m.Key)
	s.mu.Unlock()
	switch {
	case left && !doubtful:
		return nil
	case mine == nil && known != nil && known.position == 0:
		return fmt.Errorf("%w: the answer to its join is out", backend.ErrUnavailable)
	case mine == nil && known != nil: // at another position
		return nil
	case mine == nil:
		if stands, err := s.mayRemove(ctx, m); !stands || err != nil {
			return err
		}
	default:
		s.unlist(ctx, m, mine)
	}
	_, err := kit.Retry(ctx, s.b.o.backoff(), lost, func(ctx context.Context) (struct{}, error) {
		if doubtful {
			if err := s.write(ctx, m.Key); err != nil {
				return struct{}{}, err
			}
			doubtful = false
			s.mu.Lock()
			mine.burnt = true // what arrives while it is removed nobody would remove
			s.mu.Unlock()
		}
		return struct{}{}, gone(s.b.wire.remove(ctx, s.b.o.attempt(), m.Key, "", ""))
	})
	if err == nil {
		s.mu.Lock()
		s.past.member(m.Key)
		delete(s.own, m.Key)
		pinned := mine == nil || mine.pinned
		s.mu.Unlock()
		if pinned {
			s.Go(func() { _ = s.prunePins(s.Context(), m.Line) }) // otherwise who pins the next does so
		}
	}
	return err
}

// mayRemove reports whether m, which another session has joined, stands. It fails if it is not pinned.
func (s *session) mayRemove(ctx context.Context, m backend.Member) (bool, error) {
	o, err := s.get(ctx, m.Key, metadata)
	if err != nil || o == nil || o.position() != m.Position || o.isItem() {
		return err == nil && o != nil && o.position() == m.Position, err
	}
	record, err := s.record(ctx, m.Line, metadata)
	if err != nil || o.isPinned(record) {
		return err == nil, err
	}
	stands, err := s.stands(ctx, o)
	if err == nil && stands {
		err = fmt.Errorf("%w: member %s was joined by another session", backend.ErrDenied, m.Key)
	}
	return stands, err
}
