package consul

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/clock"
)

// A tenancy is the session of Consul that locks the members of a session.
//
// Suppose that Consul's leader is paused for longer than sessions last, and goes on. It finds that
// sessions have run out, because the renewals went to the next leader meanwhile. It cannot end them
// then. But it tries again, 10, 30, 70, 150 and 310 s later, without asking whether they have been
// renewed (agent/consul/session_ttl.go, invalidateSession). If it leads again by then, it ends
// sessions that live.
//
// Such a server knows only sessions from when it led. So a renewal counts only under the
// leader under which the session was created. Under another leader, a fresh session takes
// the members over: one transaction can give a key to another session, and the key keeps
// its position and its name.
type tenancy struct {
	id     string
	leader string        // Consul's leader when it was created; empty if that is not known
	sent   clock.Instant // when the request to create it was sent
	moving bool          // members are still to be moved to it: no renewal of it counts
	old    []string      // earlier ones that Consul may still have: a request to join with one of them may be under way
}

// holds reports whether id, the session of Consul that locks a member, is one of ours.
func (t tenancy) holds(id string) bool { return id == t.id || slices.Contains(t.old, id) }

// present returns the tenancy to which the session's members belong, or are being moved.
func (s *session) present() tenancy {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tenancy
}

// let makes t the tenancy for the session's members.
func (s *session) let(t tenancy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tenancy = t
}

// errUnsettled says that a renewal does not count, because Consul changes its leader.
var errUnsettled = fmt.Errorf("%w: Consul has another leader than when the session was created, and the session is not ready for that", backend.ErrUnavailable)

// relet moves the members to a session of Consul that was created under the given leader,
// and creates one if there is none, or if there are many ghosts. from is the session that was renewed: if another one
// has taken over from it, nothing is left to do. Until all members are moved no renewal
// counts. A move that was interrupted goes on with the same session.
func (s *session) relet(ctx context.Context, from, leader string) error {
	select {
	case s.reletting <- struct{}{}:
		defer func() { <-s.reletting }()
	default:
		return errUnsettled
	}
	now := s.present()
	another := now.leader != leader || !now.moving && s.haunted()
	if !now.moving && (now.id != from || !another) {
		return nil
	}
	if another {
		// If no answer comes, the next renewal must have time to try again.
		attempt, cancel := context.WithTimeout(ctx, s.b.o.attempt())
		defer cancel()
		// The connection that renewals have works. Others may have fallen silent with the leader,
		// and there is no time to find that out.
		s.b.c.anew()
		fresh, err := s.b.c.found(attempt)
		if err != nil {
			return err
		}
		if fresh.leader == "" {
			return errors.Join(errUnsettled, s.b.c.destroy(attempt, fresh.id))
		}
		fresh.moving, fresh.old = true, append(slices.Clone(now.old), now.id)
		s.let(fresh)
		now = fresh
	}
	if err := s.move(ctx, s.keys()); err != nil {
		return err
	}
	now.moving = false
	s.let(now)
	s.b.o.Logger.Debug("took another session of Consul", "session", now.id, "leader", now.leader)
	if !s.lease.Extend(now.sent, s.b.o.TTL) {
		return s.Alive() // which ends it
	}
	s.prune(ctx)
	return nil
}

// prune makes Consul end the sessions before the previous one. Members have been moved twice since
// then, so hardly any request still names them. If one does, it is sent again.
func (s *session) prune(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.b.o.attempt())
	defer cancel()
	now := s.present()
	last := len(now.old) - 1
	now.old = slices.DeleteFunc(slices.Clone(now.old), func(id string) bool {
		return id != now.old[last] && s.b.c.destroy(ctx, id) == nil
	})
	s.let(now)
	s.exorcise()
}

// keys returns the keys at which members of the session stand, or are about to.
func (s *session) keys() (keys []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.members {
		keys = append(keys, key)
	}
	return keys
}

// move locks the keys by the present session of Consul, if an earlier one of ours has
// locked them. Pinned members stay as they are. Several requests go out at once: with many members
// and a long way to Consul, one after the other would take longer than the session has.
func (s *session) move(ctx context.Context, keys []string) error {
	const perMember, atOnce = 3, maxUrgent // operations, requests
	ctx = urgent(ctx)
	some := slices.Collect(slices.Chunk(keys, maxOps/perMember))
	errs := make([]error, atOnce)
	var moving sync.WaitGroup
	for first := range min(atOnce, len(some)) {
		moving.Go(func() {
			for i := first; i < len(some) && errs[first] == nil; i += atOnce {
				errs[first] = s.retry(ctx, func(ctx context.Context) error { return s.moveSome(ctx, some[i]) })
			}
		})
	}
	moving.Wait()
	return errors.Join(errs...)
}

// maxBytes is how large a request to move members becomes. Consul takes 512 KiB by default
// (txn_max_req_len).
const maxBytes = 384 << 10

// moveSome is move for as many keys as one transaction may have operations for. It sends
// several if the values are large for one, or the agent says so. Only one of the operations for a
// key has the value, because nobody sees the entry between them.
func (s *session) moveSome(ctx context.Context, keys []string) error {
	for room := maxBytes; ; {
		r, err := s.b.c.read(ctx, gets(keys...)...)
		if err != nil {
			return err
		}
		now := s.present()
		var ops []*api.KVTxnOp
		size, moved, more := 0, 0, false
		for _, key := range keys {
			switch p := r.find(key); {
			case p == nil:
			case p.Session == now.id: // it was moved while it joined, or the answer to that was lost
				s.changed(key, p.CreateIndex, p.ModifyIndex)
			case slices.Contains(now.old, p.Session):
				const rest = 256 // roughly the size of an operation without its value
				size += base64.StdEncoding.EncodedLen(len(p.Value)) + 3*(len(key)+rest)
				if moved > 0 && size > room {
					more = true
					continue
				}
				moved++
				ops = append(ops,
					&api.KVTxnOp{Verb: api.KVCheckIndex, Key: key, Index: p.ModifyIndex},
					&api.KVTxnOp{Verb: api.KVUnlock, Key: key, Session: p.Session},
					&api.KVTxnOp{Verb: api.KVLock, Key: key, Value: p.Value, Flags: p.Flags, Session: now.id})
			}
		}
		if moved == 0 {
			return nil
		}
		r, err = s.b.c.write(ctx, ops...)
		if errors.Is(err, errTooLarge) && moved > 1 {
			room = min(room, size) / 2
			continue
		}
		if err != nil {
			return err
		}
		if len(r.errs) > 0 {
			continue // something has changed since it was read
		}
		for _, p := range r.pairs { // there is one for each operation: the last one of a key shows it locked
			s.changed(p.Key, p.CreateIndex, p.ModifyIndex)
		}
		if !more {
			return nil
		}
	}
}

// catchUp moves a member that was created under a session of Consul to the present one,
// if that is another one by now.
func (s *session) catchUp(ctx context.Context, key, under string) error {
	for {
		now := s.present().id
		if now == under {
			return nil
		}
		if err := s.move(ctx, []string{key}); err != nil {
			return err
		}
		under = now
	}
}

// found creates a session of Consul. It also returns Consul's leader at that moment, if that is
// certain.
func (c *client) found(ctx context.Context) (tenancy, error) {
	before, err := hedged(ctx, c.o.ConnectTimeout/4, c.leader)
	if err != nil {
		return tenancy{}, err
	}
	t := tenancy{sent: clock.Now()}
	if t.id, err = c.create(ctx); err != nil {
		return tenancy{}, err
	}
	if after, err := c.leader(ctx); err == nil && after == before {
		t.leader = after
	}
	return t, nil
}

// leader returns the address of the server that leads, as far as the agent knows. It is
// empty if there is none.
func (c *client) leader(ctx context.Context) (string, error) {
	addr, err := c.renewals.Status().LeaderWithQueryOptions(new(api.QueryOptions).WithContext(ctx))
	if err != nil {
		return "", c.explain(err)
	}
	return addr, nil
}
