package postgres

import (
	"context"
	"errors"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// errHeld says that another server has taken over, and that whoever led before it may still do so.
var errHeld = errors.New("another server has taken over, and who led before may still believe to lead")

// Ahead says where m stands; see [backend.Session]. One request reads all of it. It makes a heartbeat along if nobody stands in front
// and the deadline needs one, or if a commit proves that the server has not been deposed.
//
// When another server has taken over, Ahead waits with the answer that m is first until nobody who was lost can lead any more.
func (s *session) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, _, err := s.ahead(ctx, m, s.repeat)
	return p, err
}

// ahead is Ahead with a way to send the request. deep says that somebody stands before the one in front.
func (s *session) ahead(ctx context.Context, m backend.Member, send func(context.Context, string, ...any) (answer, error)) (p backend.Place, deep bool, err error) {
	for pause := s.b.o.backoff(); ; {
		a, err := send(ctx, "ahead", m.Line, m.Position, s.lease.Left() < s.b.o.TTL*5/8)
		if err != nil {
			return p, false, err
		}
		if p, deep, err = s.placeOf(m, a); err != errHeld {
			return p, deep, err
		}
		if err := pause.After(ctx, err); err != nil {
			return p, false, err
		}
	}
}

// placeOf reads where m stands, from the column shared to the column deep.
func (s *session) placeOf(m backend.Member, a answer) (p backend.Place, deep bool, err error) {
	r := a.first()
	m.Shared, m.Pinned = r.bool(), r.bool()
	var front *backend.Member
	if r.null() {
		r.values = r.values[min(4, len(r.values)):]
	} else {
		one := r.member(m.Line)
		front = &one
	}
	header := r.bytes()
	beaten := !r.null()
	number, held, deep := r.int(), r.bool(), r.bool()
	if err := r.err(); err != nil {
		return p, false, err
	}
	h, err := backend.ParseHeader(header)
	if err != nil {
		return p, false, err
	}
	if front == nil {
		if held {
			return p, false, errHeld
		}
		if beaten {
			s.acknowledged(number, a.sent)
		}
		if err := s.Alive(); err != nil {
			return p, false, err
		}
	}
	p, err = kit.PlaceOf(m, front, h)
	return p, deep, err
}

// WatchPlace blocks until m stands otherwise than p says; see [backend.Session]. It listens to m and the member in front, and to the header if m
// is first or the one in front stays when the election moves. While it waits it sends nothing.
func (s *session) WatchPlace(ctx context.Context, m backend.Member, p *backend.Place) error {
	names := []string{memberChannel(m)}
	if !p.First {
		names = append(names, memberChannel(p.Ahead))
	}
	if p.First || p.Ahead.Pinned {
		names = append(names, recordChannel(m.Line))
	}
	deep := false
	return s.watch(ctx, names, &deep, func() (bool, error) {
		now, far, err := s.ahead(ctx, m, s.look)
		if err != nil {
			return false, err
		}
		deep = far
		if now.First == p.First && (now.First && now == *p || !now.First && now.Ahead == p.Ahead) {
			return false, nil
		}
		*p = now
		return true, nil
	})
}

// Gone blocks until m has gone, or was pinned; see [backend.Session].
func (s *session) Gone(ctx context.Context, m backend.Member) error {
	return s.watch(ctx, []string{memberChannel(m)}, nil, func() (bool, error) {
		a, err := s.look(ctx, "stands", m.Line, m.Position)
		if err != nil {
			return false, err
		}
		r := a.first()
		there, pinned := r.bool(), r.bool()
		return !there || pinned && !m.Pinned, r.err()
	})
}
