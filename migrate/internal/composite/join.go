package composite

import (
	"cmp"
	"context"
	"errors"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/migrate/internal/protocol"
)

// Join adds a member where the election is, as the records of both coordinators say;
// see [backend.Session]. It takes two round trips more than that coordinator's own Join.
// If the records say that this process can lead nowhere, it fails with [protocol.ErrNotBegun] or
// [protocol.ErrOther]. With [Options] Begin it first begins a migration, if nobody has.
//
// It returns neither the place nor the record, because these may be on either coordinator.
func (s *session) Join(ctx context.Context, line, value, _ string) (j backend.Joined, err error) {
	defer s.told("join", line, &err)
	if err := cmp.Or(backend.CheckName(line), backend.CheckValue(value)); err != nil {
		return j, err
	}
	phase, err := s.find(ctx, line)
	if errors.Is(err, protocol.ErrNotBegun) && s.b.o.Begin != nil {
		if err = s.b.o.Begin(ctx, line, err); err == nil {
			phase, err = s.find(ctx, line)
		}
	}
	if err != nil && !errors.Is(err, backend.ErrSealed) { // Ahead reports a seal
		return j, err
	}
	sd := protocol.From
	if phase.HasMoved() {
		sd = protocol.To
	}
	part, err := s.use(sd)
	if err != nil {
		return j, err
	}
	m, err := part.Join(ctx, line, value, "")
	if err != nil {
		return j, err
	}
	c := s.newCandidacy(line, value, sd, m.Member)
	s.mu.Lock()
	err = part.Err()
	if err == nil { // otherwise there may be another part with From by now
		s.candidacies[identity(c.as)] = c
		s.needsChanged()
	}
	s.mu.Unlock()
	if err != nil {
		return j, err
	}
	s.mark(ctx, c, sd)
	return backend.Joined{Member: c.as}, nil
}

// identity returns the fields by which a member is known: its value, and whether it is pinned, may
// differ.
func identity(m backend.Member) backend.Member {
	return backend.Member{Line: m.Line, Key: m.Key, Position: m.Position}
}

// owned returns the session's candidacy whose member is m, or nil.
func (s *session) owned(m backend.Member) *candidacy {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.candidacies[identity(m)]
}

// find says where the election is, as it is now if nobody can join it. First it completes a cutover that has been decided.
func (s *session) find(ctx context.Context, line string) (protocol.Phase, error) {
	phase, err := s.findAsRead(ctx, line)
	if phase == "" || err == nil {
		return phase, err
	}
	// A server that lags behind may not show yet what an operator has just begun or ended.
	if err := s.Refresh(ctx); err != nil {
		return phase, err
	}
	return s.findAsRead(ctx, line)
}

// findAsRead is find by what the coordinators show.
func (s *session) findAsRead(ctx context.Context, line string) (protocol.Phase, error) {
	h, errs := s.headers(ctx, line)
	if err := errs[protocol.To]; err != nil {
		return "", err
	}
	if err := errs[protocol.From]; err != nil {
		if s.route.MovedByTo(h[protocol.To]) {
			s.setMoved(line, true)
			return protocol.Moved, nil
		}
		if _, err := s.use(protocol.From); err != nil {
			return "", err
		}
		return "", err
	}
	phase, err := s.route.Phase(h[protocol.From], h[protocol.To])
	if err != nil {
		return phase, err
	}
	if phase == protocol.Sealed {
		err := EndMove(ctx, Move{Election: line, From: s.part(protocol.From), To: s.to(), Sealed: h[protocol.From], Log: s.log})
		if err != nil {
			return phase, err
		}
	}
	s.setMoved(line, phase.HasMoved())
	return phase, nil
}
