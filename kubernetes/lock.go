package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/backend/kit/clock"
	"github.com/succession-dev/succession/backend/kit/lease"
)

// A Format says how an election looks to candidates of another library.
type Format string

// ClientGo is that of client-go's leaderelection: whoever is first in line also holds the Lease that its candidates compete for, which
// client-go calls the lock. The package comment says how.
const ClientGo Format = "client-go"

// A lock is the Lease of an election that this session holds for a member.
type lock struct {
	name   string // of the Lease
	member backend.Member
	id     string // the holder
	lease  lease.Lease
	over   chan struct{} // closed when the session holds it no more

	edit sync.Mutex // held while the Lease is written
	last lockState  // as it was written last; guarded by edit

	mu   sync.Mutex
	told *object // what the watch has told last, if another one has written it; nil for nothing
}

// A lockState is what this session has written into a lock.
type lockState struct {
	version, uid string
	acquired     string
	renewed      time.Time
	transitions  int64
}

// lockAhead begins the keys of members that stand for the holder of a lock.
const lockAhead = "lease/"

func (b *Backend) beside() bool { return b.o.As == ClientGo }

// lockName returns the name of the Lease for which candidates of client-go compete in an election: its whole name, with a dot for
// each slash.
func (b *Backend) lockName(line string) (string, error) {
	name := line
	if b.o.Prefix != "" {
		name = b.o.Prefix + "/" + line
	}
	name = strings.ReplaceAll(name, "/", ".")
	if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 {
		return "", fmt.Errorf("%w name %q: with as=%s it names a Lease, and %.80q cannot: %s", backend.ErrInvalid, line, ClientGo, name, wrong[0])
	}
	return name, nil
}

// maxIdentity is how much of what a member says stands in a lock.
const maxIdentity = 100

// identity is what stands in the lock as its holder: what the member says of itself in its first line, for people, and its key.
func identity(m backend.Member) string {
	id, _, _ := strings.Cut(m.Value, "\n")
	id = strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) {
			return -1
		}
		return r
	}, id)
	if runes := []rune(id); len(runes) > maxIdentity {
		id = string(runes[:maxIdentity])
	}
	return id + "_" + m.Key
}

// holds is what an annotation says next to the holder that is a member of ours. It tells the line, and the holder again: candidates of
// client-go leave annotations as they are.
func (b *Backend) holds(line, id string) string { return b.lineLabel(line) + " " + id }

// lockSeconds is the time that candidates of client-go wait until they take the lock from us. They measure it by clocks that may be faster.
func (b *Backend) lockSeconds() int64 {
	return int64((waited(b.o.TTL) + time.Second - 1) / time.Second)
}

// given is how long a lock that nobody holds is left to who held it before, in parts of the time that this one has given it: a leader of
// client-go whose lock another one has cleared takes it back when it renews it.
const given = 5

// givenUnknown is that time where nobody knows who held the lock, by client-go's defaults.
const givenUnknown = 15 * time.Second / given

// A lockSight is what this session has seen of a lock that it does not hold.
type lockSight struct {
	version string        // empty: there is no such Lease
	since   clock.Instant // since when it has seen no other version
	held    time.Duration // the session time of the last holder; 0 if this session has seen none
	wait    time.Duration // how long it must be seen unchanged
}

// see notes what there is of the lock, and returns for how long this session must see it unchanged until it may take it for a
// member of the line that is first. o is nil if there is no such Lease.
func (s *session) see(line string, o *object) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	x, known := s.locksSeen[line]
	version, holder := "", ""
	if o != nil {
		version, holder = o.Metadata.ResourceVersion, o.Spec.HolderIdentity
	}
	if !known || x.version != version {
		x.version, x.since = version, clock.Now()
	}
	if holder != "" {
		x.held = time.Duration(o.Spec.LeaseDurationSeconds) * time.Second
	}
	x.wait = x.held / given
	switch {
	case holder != "" && s.b.isOurs(line, o): // of a member that has gone
		x.wait = 0
	case holder != "":
		x.wait = waited(x.held)
	case o != nil && o.note(releasedNote) != "" && o.note(releasedNote) == o.Spec.RenewTime: // one of ours has cleared it
		x.wait = 0
	case o != nil && x.held == 0:
		x.wait = givenUnknown
	}
	s.locksSeen[line] = x
	return x.left()
}

// isOurs reports whether the holder of a lock is a member of the line.
func (b *Backend) isOurs(line string, o *object) bool {
	return o.Spec.HolderIdentity != "" && o.note(holderNote) == b.holds(line, o.Spec.HolderIdentity)
}

func (x *lockSight) left() time.Duration { return x.wait - clock.Since(x.since) }

// holding returns the lock that the session holds for m, or nil.
func (s *session) holding(m backend.Member) *lock {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.locks[m.Line]; l != nil && l.member.Key == m.Key {
		return l
	}
	return nil
}

// takeLock takes the lock for m, which is first in its line, if m does not have it. If it must not take it yet, it returns who stands in
// front: the holder.
func (s *session) takeLock(ctx context.Context, m backend.Member) (ahead *backend.Member, err error) {
	name, err := s.b.lockName(m.Line)
	if err != nil {
		return nil, err
	}
	return kit.Retry(ctx, s.b.o.backoff(), func(err error) bool { return lost(err) || changed(err) }, func(ctx context.Context) (*backend.Member, error) {
		if l := s.holding(m); l != nil {
			if l.lease.Left() > 0 {
				return nil, nil
			}
			s.forsake(l)
			return nil, backend.ErrNotMember
		}
		o, err := s.get(ctx, name, whole)
		if err != nil {
			return nil, err
		}
		if o != nil && slices.ContainsFunc([]string{sessionLabel, memberLabel, recordLabel}, o.has) {
			return nil, fmt.Errorf("%w name %q: the Lease %s is one of this package's own", backend.ErrInvalid, m.Line, name)
		}
		s.mu.Lock()
		mine := s.mine(m) != nil
		s.mu.Unlock()
		switch {
		case !mine && o != nil && strings.HasSuffix(o.Spec.HolderIdentity, "_"+m.Key): // another session holds it
			return nil, nil
		case !mine || s.see(m.Line, o) > 0:
			return aheadOf(m.Line, name, o), nil
		}
		return nil, s.grab(ctx, m, name, o)
	})
}

// aheadOf returns a member that stands for the holder of a lock, or for who held it before.
func aheadOf(line, name string, o *object) *backend.Member {
	m := backend.Member{Line: line, Key: lockAhead + name}
	if o != nil {
		m.Key += fmt.Sprint("#", o.Spec.LeaseTransitions)
		m.Value = o.Spec.HolderIdentity
	}
	return &m
}

// grab writes m into the lock, which was read as o, and begins to renew it.
func (s *session) grab(ctx context.Context, m backend.Member, name string, o *object) error {
	l := &lock{name: name, member: m, id: identity(m), over: make(chan struct{})}
	l.last.renewed = time.Now()
	l.last.acquired = now()
	if o != nil {
		l.last.version, l.last.uid, l.last.transitions = o.Metadata.ResourceVersion, o.Metadata.UID, o.Spec.LeaseTransitions
		if o.Spec.HolderIdentity != l.id {
			l.last.transitions++
		} else if t, err := time.Parse(time.RFC3339, o.Spec.RenewTime); err == nil {
			l.last.renewed = t // an answer was lost
		}
	}
	if err := s.writeLock(ctx, l); err != nil {
		return err
	}
	s.mu.Lock()
	mine := s.mine(m)
	switch {
	case mine == nil || s.past.members.has(m.Key): // it has left meanwhile
		s.mu.Unlock()
		_ = s.clear(ctx, l)
		return backend.ErrNotMember
	case s.locks[m.Line] != nil && s.locks[m.Line].member.Key == m.Key: // another call has taken it
		s.mu.Unlock()
		return nil
	case s.locks[m.Line] != nil: // of a member that has gone
		s.dropLocked(s.locks[m.Line])
	}
	l.lease.Hold(true)
	s.locks[m.Line] = l
	s.mu.Unlock()
	s.Go(func() { s.keep(l) })
	return nil
}

// writeLock writes the lock, on condition of the version that it had last; without one it creates the Lease. The caller holds edit, or
// nobody else has l.
func (s *session) writeLock(ctx context.Context, l *lock) error {
	// Candidates of client-go compare times by the second. One that finds what it has seen before believes that nobody has renewed it.
	renewed := time.Now()
	if next := l.last.renewed.Truncate(time.Second).Add(time.Second); l.last.version != "" && renewed.Before(next) {
		renewed = next
	}
	l.last.renewed = renewed // also if the answer is lost
	fields := spec{HolderIdentity: l.id, LeaseDurationSeconds: s.b.lockSeconds(), AcquireTime: l.last.acquired,
		RenewTime: stamped(renewed), LeaseTransitions: l.last.transitions}
	var o *object
	var err error
	sent := clock.Now()
	if l.last.version == "" {
		o = &object{APIVersion: apiVersion, Kind: "Lease", Spec: fields, Metadata: meta{Name: l.name, Annotations: map[string]string{holderNote: s.b.holds(l.member.Line, l.id)}}}
		o, err = s.b.wire.create(ctx, s.b.o.attempt(), o)
	} else {
		p := &patch{Metadata: patchMeta{ResourceVersion: l.last.version, Annotations: map[string]*string{}, ManagedFields: make([]struct{}, 1)}, Spec: &fields}
		p.note(holderNote, s.b.holds(l.member.Line, l.id))
		p.note(releasedNote, "")
		o, err = s.b.wire.patch(ctx, s.b.o.attempt(), l.name, p)
	}
	if err != nil {
		return err
	}
	l.last.version, l.last.uid = o.Metadata.ResourceVersion, o.Metadata.UID
	if !l.lease.Extend(sent, s.b.o.TTL) {
		return errLockLate
	}
	return nil
}

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
	missed, leave := s.hub.enter(w, []string{lockSelector(l.name)}, version)
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
		err := s.writeLock(s.Context(), l)
		if !changed(err) {
			return err
		}
		if o, err = s.b.wire.get(s.Context(), s.b.o.attempt(), l.name, whole); errors.Is(err, errMissing) {
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

// forsake makes the member of a lock that the session has lost leave its line. In this process it has gone at once.
func (s *session) forsake(l *lock) {
	m := l.member
	s.mu.Lock()
	held, mine := s.dropLocked(l), s.mine(m) // from then on the deadline may be later again
	if held {
		s.past.member(m.Key)
	}
	s.mu.Unlock()
	if !held {
		return
	}
	s.hub.told(s.name, event{deleted: true, object: &object{Metadata: meta{Name: m.Key}}})
	s.Go(func() {
		doubtful := mine != nil && mine.doubtful // then its name is burnt, as when it leaves
		_, _ = kit.Retry(s.Context(), s.b.o.backoff(), lost, func(ctx context.Context) (struct{}, error) {
			if doubtful {
				if err := s.write(ctx, m.Key); err != nil {
					return struct{}{}, err
				}
				doubtful = false
			}
			return struct{}{}, gone(s.b.wire.remove(ctx, s.b.o.attempt(), m.Key, "", ""))
		})
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.own, m.Key)
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

// releaseLock gives the lock to the next one of our line by leaving it as it is; or, if there is none, to candidates of client-go.
func (s *session) releaseLock(ctx context.Context, l *lock) error {
	others, err := s.othersStand(ctx, l.member)
	if err != nil || others {
		return err
	}
	return s.clear(ctx, l)
}

// othersStand reports whether somebody stands in the line of m but m. It may also be one whose session has ended.
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
			return e.deleted || e.said() != *heard.Load()
		case name:
			if e.deleted {
				s.see(m.Line, nil)
			} else {
				s.see(m.Line, e.object)
			}
			return e.deleted || e.Spec.HolderIdentity != ahead.Value
		}
		return false
	})
	selectors := []string{ofLabel + "=" + s.name, ofLabel + "=" + record, lockSelector(name)}
	return s.hub.await(ctx, w, selectors, since, func() (bool, error) {
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
	return s.hub.await(ctx, w, []string{lockSelector(name)}, 0, func() (bool, error) {
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
	if err != nil || o == nil || o.Spec.HolderIdentity == "" || s.b.isOurs(line, o) {
		return err
	}
	m := aheadOf(line, name, o)
	if len(l.Members) > 0 {
		m.Position = l.Members[0].Position - 1
	}
	l.Members = append([]backend.Member{*m}, l.Members...)
	return nil
}

// left is the time until the deadline: that of the session, or of a lock that it holds.
func (s *session) left() time.Duration {
	left := s.lease.Left()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.locks {
		left = min(left, l.lease.Left())
	}
	return left
}
