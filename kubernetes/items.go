package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// Append adds an item at the end of the line; see [backend.Session]. Its position is noted before Append returns.
func (s *session) Append(ctx context.Context, line, value string) (backend.Member, error) {
	return kit.Await(ctx, s.Life, func() (m backend.Member, err error) {
		name := randomName("item")
		o := newLease(name, name, map[string]string{memberLabel: s.b.space, idLabel: name, lineLabel: s.b.lineLabel(line)})
		o.Metadata.Annotations[nameNote] = line
		o.Metadata.Annotations[itemNote] = "true"
		o.Spec.HolderIdentity = encode([]byte(value))
		if o, err = s.b.wire.create(s.Context(), s.b.o.TTL, o); err != nil {
			return m, err
		}
		if m, err = o.member(line, nil); err == nil {
			_, err = s.noted(s.Context(), m, o)
		}
		if errors.Is(err, backend.ErrNotMember) { // somebody has removed it already, or it is at another position
			err = fmt.Errorf("%w: %w", backend.ErrUnavailable, err)
		}
		return m, err
	})
}

// Remove removes the item m if by stands; see [backend.Session]. The deletion is conditional on the version of the item. Whoever
// claims the item next has changed that before: see [session.Claim]. If by is no claim for it, the deletion is guarded as writes
// of records are.
func (s *session) Remove(ctx context.Context, m, by backend.Member) error {
	_, err := kit.Await(ctx, s.Life, func() (_ struct{}, err error) {
		ctx := s.Context()
		if subject, ok := kit.SubjectOf(by); !ok || subject != kit.Subject(m) {
			var settle func()
			if settle, err = s.enlist(ctx, by, m.Key); err != nil {
				return struct{}{}, err
			}
			defer func() { // reads err as it is then
				if !lost(err) && s.Alive() == nil {
					settle()
				}
			}()
		}
		return kit.Retry(ctx, s.b.o.backoff(), func(err error) bool { return errors.Is(err, errConflict) }, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, s.removeItem(ctx, m, by)
		})
	})
	return err
}

func (s *session) removeItem(ctx context.Context, m, by backend.Member) error {
	o, err := s.get(ctx, m.Key, metadata)
	if err != nil {
		return err
	}
	if err := s.stillIn(ctx, by); err != nil {
		return err
	}
	if o == nil || o.position() != m.Position {
		return nil
	}
	if !o.isItem() {
		record, err := s.record(ctx, m.Line, metadata)
		if err == nil && !o.isPinned(record) {
			err = fmt.Errorf("%w: member %s is no item", backend.ErrDenied, m.Key)
		}
		if err != nil {
			return err
		}
	}
	err = gone(s.b.wire.remove(ctx, s.b.o.TTL, m.Key, o.Metadata.UID, o.Metadata.ResourceVersion))
	if err == nil {
		s.mu.Lock()
		s.past.member(m.Key)
		s.mu.Unlock()
	}
	return err
}

// Claim is JoinShared for a member that claims the item; see [backend.Session]. When no claim for it stands in front, it stamps
// the item: what an earlier claim has on its way to it is refused from then on.
func (s *session) Claim(ctx context.Context, line, value, _ string, item backend.Member) (backend.Joined, error) {
	return s.join(ctx, line, value, true, func(m backend.Member, made *object) error {
		ctx := s.Context()
		var l listing
		if err := both(func() (err error) { _, err = s.noted(ctx, m, made); return err },
			func() (err error) {
				l, err = s.list(ctx, claimLabel+"="+item.Key+","+lineLabel+"="+s.b.lineLabel(line), metadata)
				return err
			}); err != nil {
			return err
		}
		for _, o := range l.items {
			if o.position() >= m.Position || o.note(subjectNote) != kit.Subject(item) {
				continue
			}
			if stands, err := s.stands(ctx, o); err != nil || stands {
				return errors.Join(err, taken(item, stands))
			}
		}
		return s.takeItem(ctx, item)
	})
}

func taken(item backend.Member, taken bool) error {
	if !taken {
		return nil
	}
	return fmt.Errorf("%w: %s", backend.ErrTaken, item.Key)
}

// takeItem stamps an item that stands.
func (s *session) takeItem(ctx context.Context, item backend.Member) error {
	_, err := kit.Retry(ctx, s.b.o.backoff(), func(err error) bool { return lost(err) || errors.Is(err, errConflict) }, func(ctx context.Context) (struct{}, error) {
		o, err := s.b.wire.get(ctx, s.b.o.attempt(), item.Key, metadata)
		if errors.Is(err, errMissing) || err == nil && o.position() != item.Position {
			return struct{}{}, taken(item, true)
		}
		if err == nil {
			p := patchOf(o)
			p.stamp()
			if _, err = s.b.wire.patch(ctx, s.b.o.attempt(), item.Key, p); errors.Is(err, errMissing) {
				err = taken(item, true)
			}
		}
		return struct{}{}, err
	})
	return err
}

// Free returns the first item that nobody claims; see [backend.Session]. It lists the claims and then the items, and reads what the
// item says.
func (s *session) Free(ctx context.Context, items, claims string) (backend.Member, error) {
	for {
		claiming, _, err := s.standing(ctx, claims, metadata)
		if err != nil {
			return backend.Member{}, err
		}
		l, err := s.list(ctx, lineLabel+"="+s.b.lineLabel(items), metadata)
		if err != nil {
			return backend.Member{}, err
		}
		var cs, is []backend.Member
		for _, o := range claiming {
			m := backend.Member{Line: claims, Key: o.Metadata.Name, Position: o.position(), Shared: o.isShared()}
			if subject := o.note(subjectNote); subject != "" {
				m.Value = "\n" + subject
			}
			cs = append(cs, m)
		}
		slices.SortFunc(l.items, byPosition)
		for _, o := range l.items {
			if o.has(memberLabel) {
				is = append(is, backend.Member{Line: items, Key: o.Metadata.Name, Position: o.position(), Pinned: o.isItem()})
			}
		}
		item, free, err := kit.FirstFree(is, cs)
		switch {
		case err != nil:
			return backend.Member{}, err
		case !free:
			return backend.Member{}, backend.ErrTaken
		}
		o, err := s.get(ctx, item.Key, whole)
		if err != nil {
			return backend.Member{}, err
		}
		if o != nil {
			return o.member(items, nil)
		}
		s.mu.Lock()
		s.past.member(item.Key)
		s.mu.Unlock()
	}
}
