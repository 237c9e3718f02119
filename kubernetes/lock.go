package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/backend/kit/clock"
	"github.com/succession-dev/succession/backend/kit/lease"
	"github.com/succession-dev/succession/internal/value"
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
	id := strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) {
			return -1
		}
		return r
	}, value.ID(m.Value))
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
	return int64((kit.SilentFor(b.o.TTL) + time.Second - 1) / time.Second)
}

// given is how long a lock that nobody holds is left to who held it before, in parts of the time that this one has given it: a leader of
// client-go whose lock another one has cleared takes it back when it renews it, which is once in its RetryPeriod: by default 2 s of 15 s.
const given = 5

// givenUnknown is that time where nobody knows who held the lock, by client-go's defaults.
const givenUnknown = 15 * time.Second / given

// A lockSight is what this session has seen of a lock that it does not hold.
type lockSight struct {
	version string        // empty: there is no such Lease
	since   clock.Instant // since when it has seen no other version
	held    time.Duration // the session time of the last holder; 0 if this session has seen none, or it was one of ours
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
	switch {
	case holder != "" && s.b.isOurs(line, o):
		x.held = 0 // how often one of client-go tries is not known from that
	case holder != "":
		x.held = time.Duration(o.Spec.LeaseDurationSeconds) * time.Second
	}
	x.wait = x.held / given
	switch {
	case holder != "" && s.b.isOurs(line, o): // of a member that has gone
		x.wait = 0
	case holder != "":
		x.wait = kit.SilentFor(x.held)
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

// stranger returns who holds the lock, if that is no member of the line, and otherwise nothing.
func (b *Backend) stranger(line string, o *object) string {
	if b.isOurs(line, o) {
		return ""
	}
	return o.Spec.HolderIdentity
}

// nobodyBeside fails if somebody holds the Lease for which candidates of client-go compete in an election: one of them, or a leader of
// ours that was opened beside them. It is for a backend without the format.
func (s *session) nobodyBeside(ctx context.Context, line string) error {
	name, err := s.b.lockName(line)
	if err != nil {
		return nil // no Lease has such a name
	}
	o, err := s.get(ctx, name, whole)
	if err != nil || o == nil || o.Spec.HolderIdentity == "" || slices.ContainsFunc(kinds, o.has) {
		return err
	}
	if s.b.isOurs(line, o) {
		if stands, err := s.inLine(ctx, o.Spec.HolderIdentity[strings.LastIndex(o.Spec.HolderIdentity, "_")+1:]); err != nil || !stands {
			return err // it has left the Lease to the next one, which does not need it
		}
	}
	return fmt.Errorf("%w: %.100q holds the Lease %s, and candidates of client-go would not wait behind a member that stays; stop them, and delete that Lease", errors.ErrUnsupported, o.Spec.HolderIdentity, name)
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
	ctx = ranked(ctx, urgent) // what is written late has little time left, and the session has one deadline for all
	return kit.Retry(ctx, s.b.o.backoff(), func(err error) bool { return lost(err) || changed(err) }, func(ctx context.Context) (*backend.Member, error) {
		if s.hasGone(m.Key) {
			return nil, backend.ErrNotMember
		}
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
		if o != nil && slices.ContainsFunc(kinds, o.has) {
			return nil, fmt.Errorf("%w name %q: the Lease %s is one of this package's own", backend.ErrInvalid, m.Line, name)
		}
		if o != nil && s.b.stranger(m.Line, o) != "" && time.Duration(o.Spec.LeaseDurationSeconds)*time.Second < s.b.o.TTL {
			return nil, fmt.Errorf("%w: ttl %v is longer than the LeaseDuration of %d s with which %.100q holds the Lease %s: some candidates of client-go would wait no longer than that for us; choose a ttl that is not longer",
				backend.ErrInvalid, s.b.o.TTL, o.Spec.LeaseDurationSeconds, o.Spec.HolderIdentity, name)
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
	if l.lease.Left() < s.b.o.TTL*3/4 { // it has waited long for its turn, and the session's other terms would end with it
		if err := s.writeLock(ctx, l); err != nil {
			return err
		}
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
	if !l.lease.Hold(true) {
		s.mu.Unlock()
		return fmt.Errorf("%w: %w", backend.ErrUnavailable, errLockLate)
	}
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
