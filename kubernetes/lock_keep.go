package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

var (
	errLockLate  = errors.New("its time had passed before it was renewed")
	errLockTaken = errors.New("another one has taken it")
)

// keep renews the lock as the session is renewed, and writes it at once when another one has.
func (s *session) keep(l *lock) {
	w := newWaiter(func(e event) bool {
		if !e.deleted && e.Spec.HolderIdentity == l.id {
			return false
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.told = e.object
		return true
	})
	l.edit.Lock()
	version, _ := versionOf(l.last.version)
	l.edit.Unlock()
	missed, leave := s.hub.enter(w, []subject{{nameField, l.name}}, version)
	defer leave()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for pause, now := s.b.o.backoff(), missed; ; {
		d := l.lease.Left() - s.b.o.TTL*3/4
		if now || d <= 0 {
			switch err := s.renewLock(l); {
			case err == nil:
				pause.Reset()
				d = l.lease.Left() - s.b.o.TTL*3/4
			case errors.Is(err, errLockTaken) || errors.Is(err, errLockLate):
				s.b.o.Logger.Warn("the member must leave: it has lost the Lease that candidates of client-go compete for",
					"lease", l.name, "member", l.member.Key, "why", err)
				s.forsake(l)
				return
			default:
				d = min(pause.Failed(err), l.lease.Left()) // nobody can take it before
			}
		}
		timer.Reset(max(d, time.Millisecond))
		select {
		case <-w.c:
			now = true
		case <-timer.C:
			now = false
		case <-l.over:
			return
		case <-s.Context().Done():
			return
		}
	}
}

// renewLock writes the lock again. If another one has written it, it finds out whether somebody else may have held it since: then it
// fails with errLockTaken. A candidate of client-go that led before clears the lock of whoever leads now (tryRelease): it reads what
// there is, and then asks its own memory whether it leads.
func (s *session) renewLock(l *lock) error {
	ctx := ranked(s.Context(), urgent)
	l.edit.Lock()
	defer l.edit.Unlock()
	l.mu.Lock()
	o := l.told
	l.told = nil
	l.mu.Unlock()
	was, _ := versionOf(l.last.version)
	if o != nil && o.version() <= was {
		o = nil // an event from before
	}
	for {
		if err := s.Alive(); err != nil {
			return err
		}
		if l.lease.Left() <= 0 {
			return errLockLate
		}
		if o != nil {
			switch {
			case o.Metadata.UID != l.last.uid || l.last.version == "" && o.Spec.HolderIdentity != l.id || o.Spec.LeaseTransitions != l.last.transitions || o.Spec.HolderIdentity != "" && o.Spec.HolderIdentity != l.id:
				return fmt.Errorf("%w: %.100q", errLockTaken, o.Spec.HolderIdentity)
			case o.Spec.HolderIdentity == "":
				s.b.o.Logger.Warn("somebody has cleared the Lease that candidates of client-go compete for, taking it back", "lease", l.name)
			}
			l.last.version = o.Metadata.ResourceVersion
		}
		err := s.writeLock(ctx, l)
		if !changed(err) {
			return err
		}
		if o, err = s.b.wire.get(ctx, s.b.o.attempt(), l.name, whole); errors.Is(err, errMissing) {
			// An operator has deleted it. Only one can create it.
			l.last.version = ""
			continue
		}
		if err != nil {
			return err
		}
		if l.last.version == "" && o.Spec.HolderIdentity == l.id {
			l.last.uid = o.Metadata.UID // the answer was lost
		}
	}
}

// forsake makes the member of a lock that the session has lost leave its line. In this process it has gone at once. The deadline of
// the lock goes on to count until the member is removed, so that a deadline that has passed stays passed while somebody may still
// believe that the member leads.
func (s *session) forsake(l *lock) {
	m := l.member
	s.mu.Lock()
	held, mine := s.dropLocked(l), s.mine(m)
	doubtful := mine != nil && mine.doubtful // then its name is burnt, as when it leaves
	if held {
		s.past.member(m.Key)
		s.forsaken[l] = true
	}
	s.mu.Unlock()
	if !held {
		return
	}
	s.hub.told(s.name, event{deleted: true, object: &object{Metadata: meta{Name: m.Key}}})
	s.Go(func() {
		_, err := kit.Retry(s.Context(), s.b.o.backoff(), lost, func(ctx context.Context) (struct{}, error) {
			if doubtful {
				if err := s.write(ctx, m.Key); err != nil {
					return struct{}{}, err
				}
				doubtful = false
			}
			return struct{}{}, gone(s.b.wire.remove(ctx, s.b.o.attempt(), m.Key, "", ""))
		})
		if err != nil {
			s.End(fmt.Errorf("a member that nobody waits for cannot be removed: %w", kit.About(m, err)))
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.own, m.Key)
		delete(s.forsaken, l) // from then on the deadline may be later again
	})
}

// held returns the locks that the session holds.
func (s *session) held() (all []*lock) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.locks {
		all = append(all, l)
	}
	return all
}

// drop ends the renewals of a lock. It reports false if the session did not hold it any more.
func (s *session) drop(l *lock) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dropLocked(l)
}

func (s *session) dropLocked(l *lock) bool {
	if s.locks[l.member.Line] != l {
		return false
	}
	delete(s.locks, l.member.Line)
	close(l.over)
	return true
}

// releaseLock leaves the lock as it is if somebody else stands in our line, who then takes it. Otherwise it clears the lock, for candidates
// of client-go.
func (s *session) releaseLock(ctx context.Context, l *lock) error {
	others, err := s.othersStand(ctx, l.member)
	if err != nil || others {
		return err
	}
	return s.clear(ctx, l)
}

// othersStand reports whether anybody but m stands in the line of m. A member whose session has ended is one, too.
func (s *session) othersStand(ctx context.Context, m backend.Member) (bool, error) {
	l, err := s.list(ctx, lineLabel+"="+s.b.lineLabel(m.Line), metadata)
	if err != nil {
		return false, err
	}
	for _, o := range l.items {
		if _, uid := o.session(); o.has(memberLabel) && o.Metadata.Name != m.Key && (uid != s.uid || s.joined(o) && s.Ended() == nil) {
			return true, nil
		}
	}
	return false, nil
}

// clear clears the lock as client-go does, if nobody else has written it.
func (s *session) clear(ctx context.Context, l *lock) error {
	l.edit.Lock()
	defer l.edit.Unlock()
	if l.last.version == "" {
		return nil // it was deleted, and perhaps it has come to be again
	}
	_, err := kit.Retry(ctx, s.b.o.backoff(), lost, func(ctx context.Context) (struct{}, error) {
		for {
			t := now()
			p := &patch{Metadata: patchMeta{ResourceVersion: l.last.version, Annotations: map[string]*string{}, ManagedFields: make([]struct{}, 1)},
				Spec: map[string]any{"holderIdentity": "", "leaseDurationSeconds": 1, "acquireTime": t, "renewTime": t}}
			p.note(holderNote, "")
			p.note(releasedNote, t)
			_, err := s.b.wire.patch(ctx, s.b.o.attempt(), l.name, p)
			if !errors.Is(err, errConflict) {
				return struct{}{}, gone(err)
			}
			o, err := s.b.wire.get(ctx, s.b.o.attempt(), l.name, whole)
			if err != nil || o.Spec.HolderIdentity != l.id {
				return struct{}{}, gone(err)
			}
			l.last.version = o.Metadata.ResourceVersion // the answer to a renewal was lost
		}
	})
	return err
}

// left is the time until the deadline: that of the session, or of a lock that it holds or has lost.
func (s *session) left() time.Duration {
	left := s.lease.Left()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.locks {
		left = min(left, l.lease.Left())
	}
	for l := range s.forsaken {
		left = min(left, l.lease.Left())
	}
	return left
}
