package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/backend/kit/clock"
	"github.com/succession-dev/succession/backend/kit/lease"
)

// A session is a Lease that its process renews. Its members stand as long as the object is there: its deletion ends all of them
// in that instant.
type session struct {
	kit.NoImports
	kit.NoDates
	kit.NoFiles
	*kit.Life
	b    *Backend
	name string
	uid  string

	lease   lease.Lease
	hub     hub
	joining kit.Joins[backend.Joined]
	pins    kit.Pins
	leaving kit.Leaves
	backlog kit.Backlog

	edit    sync.Mutex // held while the object is written
	version string     // of the object, as it was written last; guarded by edit
	burnt   []string   // in the object; guarded by edit

	mu        sync.Mutex
	own       map[string]*own      // members that this session has joined, by key
	relists   int                  // how often a record may have gone that lists something for one of them
	past      past                 // what is known to have gone
	sights    map[string]sight     // of other sessions, by UID
	locks     map[string]*lock     // that this session holds, by line; see [ClientGo]
	forsaken  map[*lock]bool       // that it has lost: their deadlines count until their members have been removed
	locksSeen map[string]lockSight // by line
	unrenewed error                // why the last renewal was not answered as it ought to be; nil if it was
}

var (
	_ backend.Session = (*session)(nil)

	errEnded = errors.New("its Lease is there no more: another session has ended it, or an operator")
	errReset = fmt.Errorf("%w: raise the fence of each election, and restart this process", backend.ErrReset)
)

// maxBurnt is how many names of members may be burnt. An object has room for more.
const maxBurnt = 2000

// open opens a session. If the answer is lost, it is called again, and other sessions end the first.
func (b *Backend) open(ctx context.Context) (kit.Session, error) {
	if !b.checked {
		if err := b.checkVersion(ctx); err != nil {
			return nil, err
		}
		b.checked = true
	}
	s := &session{b: b, name: randomName("session"), own: make(map[string]*own), sights: make(map[string]sight),
		locks: make(map[string]*lock), forsaken: make(map[*lock]bool), locksSeen: make(map[string]lockSight)}
	s.hub = hub{s: s, topics: make(map[subject]*topic)}
	before := b.wire.seen.Load()
	o := newLease(s.name, s.name, map[string]string{sessionLabel: b.space, idLabel: s.name, lineLabel: s.name})
	o.Metadata.Annotations[ttlNote] = strconv.FormatInt(b.o.TTL.Milliseconds(), 10)
	o.Spec = spec{HolderIdentity: holder(), LeaseDurationSeconds: int64((b.o.TTL + time.Second - 1) / time.Second), RenewTime: now()}
	sent := clock.Now()
	o, err := b.wire.create(ranked(ctx, atOnce), b.o.ConnectTimeout/2, o)
	if err != nil {
		return nil, err
	}
	if o.version() <= before {
		_ = b.wire.remove(context.WithoutCancel(ctx), b.o.attempt(), s.name, o.Metadata.UID, "")
		return nil, errReset
	}
	s.uid, s.version = o.Metadata.UID, o.Metadata.ResourceVersion
	if !s.lease.Extend(sent, b.o.TTL) || !s.lease.Hold(true) {
		_ = b.wire.remove(context.WithoutCancel(ctx), b.o.attempt(), s.name, s.uid, "")
		return nil, fmt.Errorf("%w: the session was opened too late", backend.ErrUnavailable)
	}
	s.Life = b.sessions.NewLife(kit.Rules{Over: s.over, Left: s.lease.Left, Ending: s.lease.End, Release: s.release, Explain: s.explain, Stands: s.stays})
	s.lease.Confirmed = s.Beat
	s.joining = kit.Joins[backend.Joined]{Go: s.Go, Ended: s.Ended, Backlog: &s.backlog, Undo: func(j backend.Joined) error { return kit.About(j.Member, s.leave(s.Context(), j.Member)) }, End: s.End}
	s.leaving = kit.Leaves{Go: s.Go, Ended: s.Ended, Backlog: &s.backlog, Context: s.Context, Alone: s.leaveAlone, Together: s.leaveTogether}
	s.hub.follow(subject{ofLabel, s.name}, o.version()) // its own end, and that of its members
	s.Start(s.renew, s.watchOver)
	return s, nil
}

// Refresh makes lists as fresh as each write that was answered before; see [backend.Session]. It renews the session: the version of that
// write is later than theirs, and lists are asked for that one or a later one.
func (s *session) Refresh(ctx context.Context) error {
	_, err := kit.Await(ctx, s.Life, func() (struct{}, error) {
		return kit.Retry(s.Context(), s.b.o.backoff(), lost, func(ctx context.Context) (struct{}, error) { return struct{}{}, s.write(ctx, "") })
	})
	return err
}

// holder is who holds the session, for people.
func holder() string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		return "unknown"
	}
	return name
}

// write writes the session's object, which also renews it. If an answer was lost, it finds out what became of the request. burn is a
// member that is never to count, or empty.
func (s *session) write(ctx context.Context, burn string) error {
	ctx = ranked(ctx, atOnce)
	s.edit.Lock()
	defer s.edit.Unlock()
	for {
		if err := s.Alive(); err != nil {
			return err
		}
		burnt := s.burnt
		p := &patch{Metadata: patchMeta{ResourceVersion: s.version, ManagedFields: make([]struct{}, 1)}, Spec: &spec{RenewTime: now()}}
		if burn != "" && !slices.Contains(burnt, burn) {
			burnt = append(slices.Clone(burnt), burn)
			p.Metadata.Annotations = map[string]*string{}
			p.note(burntNote, listed(burnt))
		}
		sent := clock.Now()
		o, err := s.b.wire.patch(ctx, s.b.o.attempt(), s.name, p)
		switch {
		case err == nil && o.Metadata.UID == s.uid && o.Metadata.DeletionTimestamp == "":
			if o.Metadata.ResourceVersion == s.version {
				continue // it was the same microsecond, and nothing has changed
			}
			s.version, s.burnt = o.Metadata.ResourceVersion, burnt
			s.lease.Extend(sent, s.b.o.TTL)
			if len(burnt) > maxBurnt {
				s.End(fmt.Errorf("the answers to more than %d joins were lost", maxBurnt))
			}
			return s.Alive()
		case err == nil || errors.Is(err, errMissing):
			s.End(errEnded)
			return s.Ended()
		case !errors.Is(err, errConflict):
			return err
		}
		// An earlier write has arrived whose answer was lost, or somebody else has written it.
		if err := s.reread(ctx); err != nil {
			return err
		}
	}
}

// reread reads the session's object. The caller holds edit.
func (s *session) reread(ctx context.Context) error {
	o, err := s.b.wire.get(ctx, s.b.o.attempt(), s.name, metadata)
	was, _ := versionOf(s.version)
	switch {
	case errors.Is(err, errMissing) || err == nil && (o.Metadata.UID != s.uid || o.Metadata.DeletionTimestamp != ""):
		s.End(errEnded)
		return s.Ended()
	case err != nil:
		return err
	case o.version() < was:
		s.End(errReset)
		return s.Ended()
	}
	s.version, s.burnt = o.Metadata.ResourceVersion, o.list(burntNote)
	return nil
}

// release deletes the session's object, and then, side by side, the locks and what is left of its members. It tries for a TTL: then other
// sessions end it. Without the object the members count no more, so it takes little time for them: what is then left, others sweep.
func (s *session) release(ctx context.Context) error {
	s.b.o.Logger.Info("session ended", "session", s.name, "why", s.Ended())
	ctx, cancel := context.WithTimeout(ctx, s.b.o.TTL)
	defer cancel()
	_, err := kit.Retry(ranked(ctx, atOnce), s.b.o.backoff(), lost, func(ctx context.Context) (struct{}, error) {
		err := gone(s.b.wire.remove(ctx, s.b.o.attempt(), s.name, s.uid, ""))
		if errors.Is(err, errConflict) {
			err = nil // another object has this name: somebody has restored the data
		}
		return struct{}{}, err
	})
	if err != nil {
		return err
	}
	var each sync.WaitGroup
	for _, l := range s.held() {
		if s.drop(l) {
			each.Go(func() { _ = s.releaseLock(ctx, l) }) // otherwise it runs out
		}
	}
	each.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
		defer cancel()
		s.b.sweep(ctx, s.members())
	})
	each.Wait()
	return nil
}

// sweepTimeout is how long the end of a session waits for its members to be deleted.
const sweepTimeout = time.Second

// members returns the keys of the members that the session has joined, and that go with it as far as it knows.
func (s *session) members() (keys []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, m := range s.own {
		if !m.pinned {
			keys = append(keys, key)
		}
	}
	return keys
}

// stays says until when members stand if the session could not be released.
func (s *session) stays() string {
	return fmt.Sprintf("other sessions end it, after they have seen no renewal for %v", s.b.o.TTL)
}

// explain turns what the wire says into an error of the contract.
func (s *session) explain(_ context.Context, err error) error {
	for _, wire := range []error{errMissing, errConflict, errExists, errOld} {
		if errors.Is(err, wire) {
			return fmt.Errorf("%w: %w", backend.ErrUnavailable, err)
		}
	}
	if errors.Is(err, backend.ErrReset) {
		s.End(err)
	}
	return err
}

// get reads an object, again and again until there is an answer. It returns nil if the object is not there. accept is whole or metadata.
func (s *session) get(ctx context.Context, name, accept string) (*object, error) {
	o, err := kit.Retry(ctx, s.b.o.backoff(), lost, func(ctx context.Context) (*object, error) {
		return s.b.wire.get(ctx, s.b.o.attempt(), name, accept)
	})
	if errors.Is(err, errMissing) {
		return nil, nil
	}
	return o, err
}

// list is list of the wire, again and again until there is an answer. From the second time on it waits for a server that is behind.
func (s *session) list(ctx context.Context, selector, accept string) (listing, error) {
	limit := s.b.o.attempt()
	return kit.Retry(ctx, s.b.o.backoff(), lost, func(ctx context.Context) (listing, error) {
		l, err := s.b.wire.list(ctx, limit, selector, accept)
		limit = s.b.o.patient()
		return l, err
	})
}

// both runs two funcs at once.
func both(a, b func() error) error {
	var errA error
	var wg sync.WaitGroup
	wg.Go(func() { errA = a() })
	errB := b()
	wg.Wait()
	if errA != nil {
		return errA
	}
	return errB
}
