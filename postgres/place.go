package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// errHeld says that another server has taken over, and that an earlier leader may still believe to
// lead.
var errHeld = errors.New("another server has taken over, and who led before may still believe to lead")

// Ahead says where m stands; see [backend.Session]. One request reads all of it. If nobody stands
// in front, it also makes a heartbeat when the deadline needs one, or when a commit must prove that
// the server has not been deposed.
//
// When another server has taken over, Ahead returns that m is first only when no lost leader can
// still lead.
func (s *session) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, _, err := s.ahead(ctx, m, s.repeat)
	return p, err
}

// ahead is Ahead with a way to send the request. depth is how many stand before the one in front,
// as far as the function counts.
func (s *session) ahead(ctx context.Context, m backend.Member, send func(context.Context, string, ...any) (answer, error)) (p backend.Place, depth int, err error) {
	for pause := s.b.o.backoff(); ; {
		a, err := send(ctx, "ahead", m.Line, m.Position, s.lease.Left() < s.b.o.TTL*5/8)
		if err != nil {
			return p, 0, err
		}
		if p, depth, err = s.placeOf(m, a); err != errHeld {
			return p, depth, err
		}
		if err := pause.After(ctx, err); err != nil {
			return p, 0, err
		}
	}
}

// placeOf reads where m stands, from the column shared to the column depth.
func (s *session) placeOf(m backend.Member, a answer) (p backend.Place, depth int, err error) {
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
	number, held, n := r.int(), r.bool(), r.int()
	if err := r.err(); err != nil {
		return p, 0, err
	}
	h, err := backend.ParseHeader(header)
	if err != nil {
		return p, 0, err
	}
	if front == nil {
		if held {
			return p, 0, errHeld
		}
		if !s.led.Swap(true) && s.listener.quiet() {
			s.listener.stir() // it has sent fewer heartbeats than a leader
		}
		if beaten {
			s.acknowledged(number, a.sent)
		}
		if err := s.Alive(); err != nil {
			return p, 0, err
		}
	}
	p, err = kit.PlaceOf(m, front, h)
	return p, int(n), err
}

// WatchPlace blocks until m stands otherwise than p says; see [backend.Session]. It listens to m
// and the member in front, and to the header if m is first or the one in front stays when the
// election moves. While it waits it sends nothing, unless m is [far] from the head: then it listens
// to nothing, and looks from time to time.
func (s *session) WatchPlace(ctx context.Context, m backend.Member, p *backend.Place) error {
	names := []string{memberChannel(m)}
	if !p.First {
		names = append(names, memberChannel(p.Ahead))
	}
	if p.First || p.Ahead.Pinned {
		names = append(names, recordChannel(m.Line))
	}
	f := &far{ttl: s.b.o.TTL}
	return s.watch(ctx, names, f, func() (bool, error) {
		now, depth, err := s.ahead(ctx, m, s.look)
		if err != nil {
			return false, err
		}
		f.see(depth, time.Now())
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
