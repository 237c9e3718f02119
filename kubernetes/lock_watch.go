package kubernetes

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// watchLock waits until m, which is first in its line, can have the lock, or another one holds it.
func (s *session) watchLock(ctx context.Context, m backend.Member, p *backend.Place) error {
	name, err := s.b.lockName(m.Line)
	if err != nil {
		return err
	}
	record := s.b.recordName(m.Line)
	said, since := "", int64(0)
	s.mu.Lock()
	if mine := s.mine(m); mine != nil && mine.place == *p {
		said, since = mine.said, mine.since
	}
	s.mu.Unlock()
	var heard atomic.Pointer[string] // what the record said when this call looked last
	heard.Store(&said)
	ahead := p.Ahead
	w := newWaiter(func(e event) bool {
		switch e.Metadata.Name {
		case m.Key, s.name:
			return e.deleted
		case record:
			return e.now().said() != *heard.Load()
		case name:
			if e.deleted {
				s.see(m.Line, nil)
			} else {
				s.see(m.Line, e.object)
			}
			return e.deleted || e.Spec.HolderIdentity != ahead.Value
		}
		return false
	}, m.Key)
	about := []subject{{ofLabel, s.name}, {idLabel, record}, {nameField, name}}
	return s.hub.await(ctx, w, about, since, func() (bool, error) {
		now := ""
		var err error
		if *p, now, err = s.stand(ctx, m); err != nil {
			return false, err
		}
		heard.Store(&now)
		return p.First || p.Ahead.Key != ahead.Key || p.Ahead.Value != ahead.Value, nil
	}, func() time.Duration {
		s.mu.Lock()
		defer s.mu.Unlock()
		x := s.locksSeen[m.Line]
		left := x.left()
		if left <= 0 {
			kit.Notify(w.c)
			return s.b.o.TTL / 4
		}
		return left + time.Millisecond
	})
}

// goneLock waits until another one holds the lock than the member that stands for it says.
func (s *session) goneLock(ctx context.Context, m backend.Member) error {
	name, err := s.b.lockName(m.Line)
	if err != nil {
		return err
	}
	w := newWaiter(func(e event) bool { return e.deleted || e.Spec.HolderIdentity != m.Value })
	return s.hub.await(ctx, w, []subject{{nameField, name}}, 0, func() (bool, error) {
		o, err := s.get(ctx, name, whole)
		return err == nil && (o == nil || o.Spec.HolderIdentity != m.Value), err
	}, nil)
}

// withHolder puts a candidate of client-go that holds the lock in front of a line. Its position is just before that of the first.
func (s *session) withHolder(ctx context.Context, line string, l *backend.Line) error {
	name, err := s.b.lockName(line)
	if !s.b.beside() || err != nil {
		return nil
	}
	o, err := s.get(ctx, name, whole)
	if err != nil || o == nil || s.b.stranger(line, o) == "" {
		return err
	}
	m := aheadOf(line, name, o)
	if len(l.Members) > 0 {
		m.Position = l.Members[0].Position - 1
	}
	l.Members = append([]backend.Member{*m}, l.Members...)
	return nil
}
