package broken

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
)

// ProcessFlaws are those that show where candidates are processes of their own, on a
// backend whose places the kernel holds. Where rules need deadlines, its sessions have
// leases that are kept by package clock.
var ProcessFlaws = []Flaw{
	{
		Name:    "lock file",
		Breaks:  "G8: who leads writes a file, and who is killed does not remove it",
		Must:    "Fault.killed-process",
		May:     "Fault.suspended",
		session: func(_ *Backend, s backend.Session) backend.Session { return &lockFile{s} },
	},
	{
		Name:   "impatient",
		Breaks: "G1: who has stood behind the same member for two seconds takes it for dead",
		Must:   "Fault.stopped",
		session: func(_ *Backend, s backend.Session) backend.Session {
			return &impatient{Session: s, since: make(map[backend.Member]time.Time)}
		},
	},
	{
		Name:   "suspended clock",
		Breaks: "L6, G1: the deadline is kept by a clock that stands still while the machine is suspended",
		Must:   "Fault.suspended",
		session: func(_ *Backend, s backend.Session) backend.Session {
			if s.TTL() == 0 {
				return s
			}
			return &unaware{s}
		},
	},
}

type lockFile struct{ backend.Session }

func (s *lockFile) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.Session.Ahead(ctx, m)
	if err != nil || !p.First {
		return p, err
	}
	_, err = s.Put(ctx, m.Line+"-lock", []byte(m.Key), &backend.If{Version: backend.Absent})
	if !errors.Is(err, backend.ErrVersion) {
		return p, err
	}
	r, err := s.Get(ctx, m.Line+"-lock")
	if holder := string(r.Value); err == nil && holder != m.Key {
		p = backend.Place{Ahead: backend.Member{Line: m.Line, Key: holder}}
	}
	return p, err
}

func (s *lockFile) Gone(ctx context.Context, m backend.Member) error {
	if err := s.Session.Gone(ctx, m); err != nil {
		return err
	}
	r, err := s.Get(ctx, m.Line+"-lock")
	for err == nil && string(r.Value) == m.Key {
		r, err = s.Watch(ctx, m.Line+"-lock", r.Version)
	}
	return err
}

func (s *lockFile) Leave(ctx context.Context, m backend.Member) error {
	r, err := s.Get(ctx, m.Line+"-lock")
	if err == nil && string(r.Value) == m.Key {
		err = s.Delete(ctx, m.Line+"-lock", &backend.If{Version: r.Version})
	}
	return errors.Join(err, s.Session.Leave(ctx, m))
}

type impatient struct {
	backend.Session
	mu    sync.Mutex
	since map[backend.Member]time.Time // when a member was first seen in front
}

func (s *impatient) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.Session.Ahead(ctx, m)
	if err != nil || p.First {
		return p, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since[p.Ahead].IsZero() {
		s.since[p.Ahead] = time.Now()
	}
	if time.Since(s.since[p.Ahead]) >= 2*time.Second {
		return backend.Place{First: true, Token: m.Position}, nil
	}
	return p, nil
}
