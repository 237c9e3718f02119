package consul

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// ghosts has the keys at which a member without an owner may appear: an abandoned request may wait
// in a buffer for any time, servers themselves try again for seconds, and a restored snapshot
// brings back members that have left. Only the end of the session ends that: after it, the keys of
// its members cannot be created.
type ghosts struct {
	abandoned map[string]bool // of members that have left, or whose join was abandoned
	more      chan struct{}   // receives a value when abandoned has grown
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
		if !standing && !abandoned {
			s.abandon(key)
		}
	}
}

// abandon makes the session remove the key whenever it appears, as long as the session
// lives.
func (s *session) abandon(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ghosts.abandoned[key] = true
	kit.Notify(s.ghosts.more)
}

// sweep looks for ghosts: often at first, because late requests usually come within seconds, and
// then about as often as the session is renewed. If it may not read or remove one, the session ends: others would wait behind it.
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
		err := s.removeGhosts()
		if errors.Is(err, backend.ErrDenied) {
			s.joining.Stuck(err)
			return
		}
		if err != nil && s.Context().Err() == nil {
			s.b.o.Logger.Warn("members that nobody owns could not be looked for", "err", err)
		}
		next = time.After(pause)
		pause = min(2*pause, s.b.o.TTL/3)
	}
}

// removeGhosts removes the abandoned keys that exist.
func (s *session) removeGhosts() error {
	s.mu.Lock()
	ops := gets(slices.Collect(maps.Keys(s.ghosts.abandoned))...)
	s.mu.Unlock()
	for len(ops) > 0 {
		n := min(len(ops), maxOps)
		err := s.once(s.Context(), s.b.o.attempt(), func(ctx context.Context) error {
			r, err := s.b.c.read(ctx, ops[:n]...)
			if err != nil {
				return err
			}
			var found []*api.KVTxnOp
			for _, op := range ops[:n] {
				if p := r.find(op.Key); p != nil {
					s.b.o.Logger.Info("removing a member that nobody owns", "key", p.Key)
					found = append(found, &api.KVTxnOp{Verb: api.KVDeleteCAS, Key: p.Key, Index: p.ModifyIndex})
				}
			}
			if len(found) > 0 { // if one has changed since, the next look finds them all
				_, err = s.b.c.write(ctx, found...)
			}
			for _, op := range found {
				s.tell(op.Key) // who waits behind a member of its own session may have no query
			}
			return err
		})
		if err != nil {
			return err
		}
		ops = ops[n:]
	}
	return nil
}

// maxOps is how many operations a transaction may have (agent/txn_endpoint.go, since
// Consul 1.14).
const maxOps = 128
