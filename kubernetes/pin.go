package kubernetes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// Pin makes m outlive the session, and writes the header; see [backend.Session]. Both are one write of the record of the line,
// which m guards. Then it stamps what other writes that m guards may reach. Afterwards the member is made an item, so that nobody has
// to read the record to know.
func (s *session) Pin(ctx context.Context, m backend.Member, h backend.Header, at backend.Version) error {
	if s.b.beside() {
		return fmt.Errorf("%w: candidates of client-go would not wait behind a member that stays; stop them, and open the backend without as=%s", errors.ErrUnsupported, ClientGo)
	}
	s.pins.Begin(m)
	_, err := kit.Await(ctx, s.Life, func() (struct{}, error) {
		if err := s.nobodyBeside(s.Context(), m.Line); err != nil {
			return struct{}{}, err
		}
		sent := false // to pin it, and the answer was lost
		q := writing{name: m.Line, cond: backend.If{Member: m}, own: entry(m.Key, s.b.recordName(m.Line)+"#"+strings.TrimPrefix(randomName(""), "-"))}
		return kit.Retry(s.Context(), s.b.o.backoff(), func(err error) bool { return lost(err) || changed(err) }, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, s.pin(ctx, q, h.Encode(), at, &sent)
		})
	})
	return err
}

// pin pins the guard of q once. It sets sent if the answer was lost.
func (s *session) pin(ctx context.Context, q writing, header []byte, at backend.Version, sent *bool) error {
	m := q.cond.Member
	var self, o *object
	if err := both(func() (err error) { self, err = s.get(ctx, m.Key, metadata); return err },
		func() (err error) { o, err = s.record(ctx, m.Line, whole); return err }); err != nil {
		return err
	}
	if self == nil || self.position() != m.Position {
		return backend.ErrNotMember
	}
	pinned := self.isPinned(o)
	if _, uid := self.session(); !pinned && uid != s.uid {
		if stands, err := s.stands(ctx, self); err != nil || !stands {
			return errors.Join(err, backend.ErrNotMember)
		}
		return fmt.Errorf("%w: member %s was joined by another session", backend.ErrDenied, m.Key)
	}
	if value, err := o.value(); pinned && (*sent && s.pins.Alone(m) || err == nil && o.recordVersion() != backend.Absent && bytes.Equal(value, header)) {
		return s.stampAll(ctx, m, o)
	}
	if o.recordVersion() != at {
		s.giveUp(q, o)
		return backend.ErrVersion
	}
	q.value, q.cond.Version = &header, at
	o, err := s.underGuard(ctx, q, o)
	if err != nil {
		return err
	}
	if o.recordVersion() != at {
		return errConflict
	}
	s.mu.Lock()
	if mine := s.mine(m); mine != nil {
		mine.pinned = true
	}
	s.mu.Unlock()
	p := patchOf(o)
	p.note(absentNote, "")
	p.note(versionNote, "")
	p.stamp()
	p.Spec = &spec{HolderIdentity: encode(header)}
	if pins := o.list(pinsNote); !pinned && !slices.Contains(pins, self.Metadata.UID) {
		p.note(pinsNote, listed(append(pins, self.Metadata.UID)))
	}
	q.takeBack(p, o)
	if o, err = s.b.wire.patch(ctx, s.b.o.TTL, o.Metadata.Name, p); err != nil {
		*sent = *sent || !pinned && lost(err)
		return err
	}
	*sent = *sent || !pinned
	if err := s.stampAll(ctx, m, o); err != nil {
		return err
	}
	s.Go(func() { _ = s.makeItem(s.Context(), m.Key) }) // otherwise whoever meets it does so
	return nil
}

// stampAll stamps what the record of the line lists for m, which has been pinned. A migration pins the leader, and
// then copies the records of the election to another coordinator. What it copies is final: writes of m that are on their way are refused from then on.
func (s *session) stampAll(ctx context.Context, m backend.Member, record *object) error {
	for _, e := range record.list(guardsNote) {
		if key, object := objectOf(e); key == m.Key && base(object) != record.Metadata.Name {
			if err := s.stamp(ctx, base(object)); err != nil {
				return err
			}
		}
	}
	return nil
}

// makeItem makes an item of a member that is pinned. Its line's record goes on to name it among the pins, as long as it stands:
// whoever has read the member before, and reads the record now, must find it there.
func (s *session) makeItem(ctx context.Context, key string) error {
	o, err := s.get(ctx, key, metadata)
	if err != nil || o == nil {
		return err
	}
	if !o.isItem() {
		p := patchOf(o)
		p.note(itemNote, "pinned")
		if _, err = s.b.wire.patch(ctx, s.b.o.attempt(), key, p); err != nil {
			return err
		}
	}
	return s.prunePins(ctx, o.note(nameNote))
}

// prunePins takes members that have gone from the pins of their line. They are looked for after the pins have been read, so that none
// is missed that has joined and was pinned meanwhile.
func (s *session) prunePins(ctx context.Context, line string) error {
	var failed error
	_, err := s.editRecord(ctx, line, func(r *object) *patch {
		pins := r.list(pinsNote)
		if len(pins) == 0 {
			return nil
		}
		l, err := s.list(ctx, lineLabel+"="+s.b.lineLabel(line), metadata)
		if failed = err; err != nil {
			return nil
		}
		left := slices.DeleteFunc(slices.Clone(pins), func(uid string) bool {
			return !slices.ContainsFunc(l.items, func(o *object) bool { return o.Metadata.UID == uid })
		})
		if len(left) == len(pins) {
			return nil
		}
		p := patchOf(r)
		p.note(pinsNote, listed(left))
		return p
	})
	return errors.Join(err, failed)
}
