package consul

import (
	"context"
	"fmt"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/backend"
)

// Pin unlocks the member's key and writes the header, in one transaction; see
// [backend.Session]. The key then belongs to no session, and stays when the session ends.
// Pin blocks for two round trips.
//
// A pinned member is a key in the line without a session. Every client recognizes it by that, also
// a foreign one. A key that an operator has released by hand looks the same.
func (s *session) Pin(ctx context.Context, m backend.Member, h backend.Header, at backend.Version) error {
	key, err := s.b.o.memberPath(m)
	if err != nil {
		return err
	}
	record, value := s.b.o.key(m.Line), h.Encode()
	stands := true
	// To pin it, and the answer was lost. The pin wrote the header too; an operator's release of the key does not.
	sent := false
	s.pins.Begin(m)
	err = s.retry(ctx, func(ctx context.Context) error {
		for {
			// The read also finds what an earlier attempt has done if its answer was lost.
			r, err := s.b.c.read(ctx, gets(key, record)...)
			if err != nil {
				return err
			}
			member, old := r.find(key), r.find(record)
			if stands = member != nil && member.CreateIndex == m.Position; !stands {
				return nil
			}
			pinned := member.Session == ""
			switch {
			case pinned && old != nil && (string(old.Value) == string(value) || sent && s.pins.Alone(m) && old.ModifyIndex >= member.ModifyIndex):
				return nil
			case !pinned && !s.present().holds(member.Session):
				return fmt.Errorf("%w: member %s was joined by another session", backend.ErrDenied, m.Key)
			case at != 0 && at != versionOf(old):
				return fmt.Errorf("%w: version is %d, not %d", backend.ErrVersion, versionOf(old), at)
			}
			ops := []*api.KVTxnOp{
				{Verb: api.KVCheckIndex, Key: key, Index: member.ModifyIndex},
				setOp(record, value, versionOf(old)),
			}
			if !pinned {
				ops = append(ops, &api.KVTxnOp{Verb: api.KVUnlock, Key: key, Value: member.Value, Flags: member.Flags, Session: member.Session})
			}
			if r, err = s.b.c.write(ctx, ops...); err != nil || len(r.errs) == 0 {
				sent = sent || !pinned
				return err
			}
			// Something has changed since it was read.
		}
	})
	switch {
	case err != nil:
		return err
	case !stands:
		return s.missing(ctx, m)
	}
	s.know(key, m.Position, func(at *standing) { at.pinned = true })
	s.tell(key)
	return nil
}
