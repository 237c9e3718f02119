package consul

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// ghosts has the keys at which a member without an owner may appear: an abandoned request may wait
// in a buffer for any time, servers themselves try again for seconds, and a restored snapshot
// brings back members that have left. Only the end of a session of Consul ends that: after it, the keys of
// its members cannot be created. So if there are many ghosts, the session takes another session of Consul, and then once more: by then
// nothing needs the first one any more; see [session.prune].
type ghosts struct {
	abandoned map[string]*ghost // by their keys: of members that have left, or whose join was abandoned
	more      chan struct{}     // receives a value when abandoned has grown
}

// A ghost is one such key.
type ghost struct {
	under  []string   // the sessions of Consul with which a member may be created there
	denied kit.Denial // of its removal
}

// maxGhosts is how many ghosts make a session take another session of Consul. Each is read again and again.
const maxGhosts = 1024

// haunted reports whether there are many ghosts.
func (s *session) haunted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ghosts.abandoned) >= maxGhosts
}

// exorcise forgets the ghosts that can appear no more, because Consul has ended the sessions for that.
func (s *session) exorcise() {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.ghosts.abandoned, func(_ string, g *ghost) bool { return !slices.ContainsFunc(g.under, s.tenancy.holds) })
}

// disown abandons those of the members that this session has joined and that have left again. A
// pinned member belongs to no session.
func (s *session) disown(members []backend.Member) {
	for _, m := range members {
		if !s.owns(m) || m.Pinned {
			continue
		}
		key := s.b.o.folder(m.Line) + m.Key
		s.mu.Lock()
		_, standing := s.members[key]
		abandoned := s.ghosts.abandoned[key]
		s.mu.Unlock()
		if !standing && abandoned == nil {
			s.abandon(key)
		}
	}
}

// abandon makes the session remove the key whenever it appears, as long as it can.
func (s *session) abandon(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ghosts.abandoned[key] == nil {
		s.ghosts.abandoned[key] = &ghost{under: append(slices.Clone(s.tenancy.old), s.tenancy.id)}
	}
	kit.Notify(s.ghosts.more)
}

// undo removes a member that no caller knows of. If Consul denies that, the member becomes a ghost.
func (s *session) undo(m backend.Member) error {
	err := s.Leave(s.Context(), m)
	if errors.Is(err, backend.ErrDenied) {
		key := s.b.o.folder(m.Line) + m.Key
		s.abandon(key)
		s.gone(key, m.Position)
		return nil
	}
	return kit.About(m, err)
}

// sweep looks for ghosts: often at first, because late requests usually come within seconds, and
// then about as often as the session is renewed.
func (s *session) sweep() {
	var pause time.Duration
	var next <-chan time.Time // nil while there is nothing to look for
	for {
		select {
		case <-s.Context().Done():
			return
		case <-s.ghosts.more:
			pause = minPause
		case <-next:
		}
		if err := s.removeGhosts(); err != nil && s.Context().Err() == nil {
			s.b.o.Logger.Warn("members that nobody owns could not be looked for and removed", "err", err)
		}
		next = time.After(pause)
		pause = min(2*pause, s.b.o.TTL/3)
	}
}

// removeGhosts removes the abandoned keys that exist. If Consul denies for a TTL to read or to remove one, the session ends: others would
// wait behind it.
func (s *session) removeGhosts() (failed error) {
	s.mu.Lock()
	abandoned := maps.Clone(s.ghosts.abandoned)
	s.mu.Unlock()
	entries := make(map[string]entry, len(abandoned))
	for some := range slices.Chunk(slices.Collect(maps.Keys(abandoned)), maxOps) {
		failed = errors.Join(failed, s.readEach(s.Context(), s.attempt, some, entries))
	}
	for key, e := range entries {
		begun, err := time.Now(), e.denied // not when the first of many was read
		if e.pair != nil {
			err = s.removeGhost(e.pair)
		}
		if abandoned[key].denied.Lasts(s.Context(), begun, err, s.b.o.TTL) {
			s.joining.Stuck(fmt.Errorf("%s: %w", key, err))
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// removeGhost removes what stands at an abandoned key. If that has changed since it was read, the next look finds it.
func (s *session) removeGhost(p *api.KVPair) error {
	s.b.o.Logger.Info("removing a member that nobody owns", "key", p.Key)
	err := s.attempt(s.Context(), func(ctx context.Context) error {
		_, err := s.b.c.write(ctx, &api.KVTxnOp{Verb: api.KVDeleteCAS, Key: p.Key, Index: p.ModifyIndex})
		return err
	})
	s.tell(p.Key) // who waits behind a member of its own session may have no query
	return err
}

// maxOps is how many operations a transaction may have (agent/txn_endpoint.go, since
// Consul 1.14).
const maxOps = 128
