package kubernetes

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/backend/kit/clock"
)

// A sight is a version of another session's object, and since when this process has seen no later one.
type sight struct {
	kit.Silence
	o *object
}

// A past is what has gone for good: members and sessions, whose names and UIDs never come again. It remembers the newest ones.
// An older one may be forgotten: a list has shown that it is gone, and no later list is older than that one.
type past struct {
	members  memory // by key
	sessions memory // by UID
}

// hasGone reports whether this session knows that a member has gone.
func (s *session) hasGone(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.past.members.has(key)
}

func (p *past) member(key string)  { p.members.add(key) }
func (p *past) session(uid string) { p.sessions.add(uid) }

// A memory remembers at least the last maxPast names that were added.
type memory struct{ new, old map[string]bool }

const maxPast = 1 << 13

func (m *memory) add(name string) {
	if m.new == nil || len(m.new) >= maxPast {
		m.new, m.old = make(map[string]bool), m.new
	}
	m.new[name] = true
}

func (m *memory) has(name string) bool { return m.new[name] || m.old[name] }

// observe notes what an event, a list or an answer says of sessions and members.
func (s *session) observe(e event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	uid := e.Metadata.UID
	switch {
	case e.has(memberLabel):
		if e.deleted {
			s.past.member(e.Metadata.Name)
		}
	case e.has(recordLabel):
		if e.deleted {
			s.relistLocked()
		}
	case !e.has(sessionLabel):
	case uid == s.uid:
		if e.deleted || e.Metadata.DeletionTimestamp != "" {
			s.End(errEnded)
		}
	case e.deleted:
		s.past.session(uid)
		delete(s.sights, uid)
	case !s.past.sessions.has(uid):
		was, known := s.sights[uid]
		if known && was.o.version() >= e.version() {
			return
		}
		s.sights[uid] = sight{Silence: kit.Silence{Since: clock.Now()}, o: e.object}
	}
}

// relist has the record of a line told anew, at the next write that a member guards, what such a write may reach: a record may have been
// deleted, with what it has listed.
func (s *session) relist() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.relistLocked()
}

func (s *session) relistLocked() {
	s.relists++
	for _, m := range s.own {
		m.guarded = nil
	}
}

// due returns after what time to look at a session again. If it is silent for too long, due has it ended.
func (s *session) due(uid string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	x, known := s.sights[uid]
	if !known {
		return s.b.o.TTL / 4
	}
	next, due := x.Due(clock.Now(), x.o.ttl())
	if due {
		s.sights[uid] = x
		s.Go(func() { s.reap(x.o) })
	}
	return next + time.Millisecond
}

// reap ends a session that was seen unchanged for long enough, if it has not changed since. Its members are then deleted: those
// who wait for one of them may not watch the session.
func (s *session) reap(o *object) {
	s.b.o.Logger.Info("ending a session without renewals", "session", o.Metadata.Name, "ttl", o.ttl())
	err := s.b.wire.remove(s.Context(), s.b.o.attempt(), o.Metadata.Name, o.Metadata.UID, o.Metadata.ResourceVersion)
	if gone(err) != nil {
		if x, err := s.b.wire.get(s.Context(), s.b.o.attempt(), o.Metadata.Name, metadata); err == nil {
			s.observe(event{object: x}) // it was renewed; or somebody has edited it
		}
		return
	}
	s.observe(event{deleted: true, object: o})
	s.hub.told(o.Metadata.Name, event{deleted: true, object: o})
	if err != nil {
		return // another one has ended it
	}
	l, err := s.b.wire.list(s.Context(), s.b.o.patient(), ofLabel+"="+o.Metadata.Name, metadata)
	if err != nil {
		return // those who watch over all will do it
	}
	s.collect(l.items)
}

// collect deletes members whose sessions have ended, but for those that are pinned.
func (s *session) collect(members []*object) {
	for _, m := range members {
		if !m.has(memberLabel) || m.isItem() {
			continue
		}
		stands, err := s.stands(s.Context(), m)
		if err != nil {
			return
		}
		if !stands {
			_ = s.b.wire.remove(s.Context(), s.b.o.attempt(), m.Metadata.Name, m.Metadata.UID, "")
		}
	}
}

// sweep deletes members of a session that has ended, a few at a time. Nothing depends on it but room.
func (b *Backend) sweep(ctx context.Context, keys []string) {
	const atOnce = 8
	var each sync.WaitGroup
	for i := range min(atOnce, len(keys)) {
		each.Go(func() {
			for j := i; j < len(keys); j += atOnce {
				if gone(b.wire.remove(ctx, b.o.attempt(), keys[j], "", "")) != nil {
					return
				}
			}
		})
	}
	each.Wait()
}

// guards is how many sessions of a prefix watch over all of them.
const guards = 2

// watchOver looks at all sessions now and then, and ends those that nobody waits for and that are silent. Two sessions do it, about
// once in a TTL, and delete at every eighth time the members whose sessions are there no more. The others look now and then whether
// they are among the two by now: the rarer, the more sessions there are.
func (s *session) watchOver() {
	ttl := s.b.o.TTL
	next, looks := ttl/2+rand.N(ttl), 0 // looks counts those as one of the two
	for {
		if backoff.Sleep(s.Context(), next) != nil {
			return
		}
		var members []*object // they are listed before the sessions, so that none seems to be without one that is just opened
		if looks%8 == 1 {
			if l, err := s.b.wire.list(s.Context(), s.b.o.patient(), memberLabel+"="+s.b.space, metadata); err == nil {
				members = l.items
			}
		}
		l, err := s.b.wire.list(s.Context(), s.b.o.patient(), sessionLabel+"="+s.b.space, metadata)
		if err != nil {
			next = ttl / 2
			continue
		}
		rank := s.look(l)
		s.collect(s.orphans(members))
		if next = ttl * 11 / 10; rank < s.b.guards {
			looks++
			continue
		}
		looks = 0
		next = max(3*ttl, time.Duration(len(l.items))*ttl/2)
		next = next/2 + rand.N(next/2)
	}
}

// look notes a list of all sessions, and returns how many come before this one, of those that are alive.
func (s *session) look(l listing) (rank int) {
	there := make(map[string]bool, len(l.items))
	for _, o := range l.items {
		there[o.Metadata.UID] = true
		s.observe(event{object: o})
	}
	s.mu.Lock()
	for uid, x := range s.sights {
		if !there[uid] && x.o.version() <= l.version {
			delete(s.sights, uid)
			s.past.session(uid)
		}
	}
	s.mu.Unlock()
	var names []string
	for uid := range there {
		if uid == s.uid {
			continue
		}
		s.mu.Lock()
		x, known := s.sights[uid]
		s.mu.Unlock()
		if !known {
			continue
		}
		if clock.Since(x.Since) < kit.SilentFor(x.o.ttl()) {
			names = append(names, x.o.Metadata.Name)
		}
		s.due(uid)
	}
	slices.Sort(names)
	rank, _ = slices.BinarySearch(names, s.name)
	return rank
}

// orphans returns those of the members whose sessions were not there when this session looked.
func (s *session) orphans(members []*object) (dead []*object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range members {
		_, uid := m.session()
		if _, alive := s.sights[uid]; !alive && uid != s.uid {
			dead = append(dead, m)
		}
	}
	return dead
}

// stands reports whether a member that exists counts. What it reads for that, a session or a record, it reads from etcd.
func (s *session) stands(ctx context.Context, m *object) (bool, error) {
	name, uid := m.session()
	s.mu.Lock()
	left, ended := s.past.members.has(m.Metadata.Name), s.past.sessions.has(uid)
	s.mu.Unlock()
	switch {
	case left:
		return false, nil
	case m.isItem():
		return true, nil
	case name == "" || uid == "":
		return false, nil // somebody else has made it
	case uid == s.uid && !ended:
		return s.joined(m), s.Alive()
	}
	if !ended {
		x, err := s.get(ctx, name, metadata)
		if err != nil {
			return false, err
		}
		if counts, alive := s.counts(m, x, uid); alive {
			return counts, nil
		}
	}
	return s.outlives(ctx, m)
}

// joined reports whether this session has joined m, and m has not left.
func (s *session) joined(m *object) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	mine := s.own[m.Metadata.Name]
	return mine != nil && !mine.burnt
}

// counts reports whether the session of the member m is alive, and whether m counts because of it. x is what was read of the session,
// nil if it is not there. This process then observes it, and ends it when it has been silent for too long.
func (s *session) counts(m, x *object, uid string) (counts, alive bool) {
	if x == nil || x.Metadata.UID != uid {
		s.mu.Lock()
		s.past.session(uid)
		delete(s.sights, uid)
		s.mu.Unlock()
		return false, false
	}
	if slices.Contains(x.list(burntNote), m.Metadata.Name) {
		s.mu.Lock()
		s.past.member(m.Metadata.Name)
		s.mu.Unlock()
		return false, true
	}
	s.observe(event{object: x})
	s.due(uid)
	return true, true
}

// outlives reports whether a member whose session has ended is pinned. That is certain only when no write that pins it can be on
// its way any more; see [session.settled].
func (s *session) outlives(ctx context.Context, m *object) (bool, error) {
	record, err := s.settled(ctx, m.note(nameNote))
	return err == nil && s.survives(m, record), err
}

// survives reports whether a member is pinned, whose session had ended before the record of its line was settled.
func (s *session) survives(m, record *object) bool {
	if m.isPinned(record) {
		s.Go(func() { _ = s.makeItem(s.Context(), m.Metadata.Name) })
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.past.member(m.Metadata.Name)
	return false
}
