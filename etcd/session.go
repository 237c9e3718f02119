package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/lease"
)

// A session is one lease at a time. All its members hang on it, in whatever line they
// stand.
type session struct {
	b      *Backend
	id     int64 // of its first lease, which its members are named after
	ttl    time.Duration
	margin time.Duration
	lease  lease.Lease // what answered heartbeats say
	proof  proof

	beatNow chan struct{} // has room for one: a heartbeat is wanted at once

	watcher *watcher
	ghosts  *ghosts

	ctx      context.Context // ends with the session; its cause is err
	cancel   context.CancelCauseFunc
	done     chan struct{}
	released chan struct{} // closed when the lease is gone, or has been given up

	mu      sync.Mutex
	tenancy tenancy
	err     error             // why it has ended
	hitched error             // what may be going to end it; nil for nothing
	unfreed error             // why the lease may still be there; to be read after released
	taken   map[string]*taken // by line and name
	leases  map[int64]bool    // all that it has had
}

var _ backend.Session = (*session)(nil)

func newSession(b *Backend, t tenancy, ttl time.Duration) *session {
	s := &session{
		b:        b,
		id:       t.lease,
		tenancy:  t,
		ttl:      ttl,
		margin:   b.o.margin(ttl),
		done:     make(chan struct{}),
		released: make(chan struct{}),
		taken:    make(map[string]*taken),
		leases:   map[int64]bool{t.lease: true},
		beatNow:  make(chan struct{}, 1),
		proof:    proof{leading: make(map[uint64]bool), settled: make(chan struct{})},
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	s.watcher, s.ghosts = newWatcher(s), newGhosts(s)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sessions[s] = true
	return s
}

// start begins what runs for the session. It must be called once, with Close of the
// backend still to come.
func (s *session) start() {
	s.b.wg.Go(s.keepAlive)
	s.b.wg.Go(s.watchDeadline)
	s.b.wg.Go(s.watcher.run)
	s.b.wg.Go(s.ghosts.run)
}

// alive returns nil while the session lives, and else why it does not. It compares
// clocks, so that the law does not hang on how soon a timer fires.
func (s *session) alive() error {
	if s.left() <= 0 {
		why := fmt.Errorf("etcd has not confirmed its lease for %v", s.ttl-s.margin)
		s.mu.Lock()
		if s.hitched != nil {
			why = fmt.Errorf("%w: %w", why, s.hitched)
		}
		s.mu.Unlock()
		s.end(why)
	}
	return s.ended()
}

// ended returns why the session has ended, and nil before that.
func (s *session) ended() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// end ends the session here. etcd is told in the background, also where it was etcd that
// said so: the session may have more than one lease.
func (s *session) end(why error) {
	s.mu.Lock()
	if s.err != nil {
		s.mu.Unlock()
		return
	}
	s.err = fmt.Errorf("%w: %w", backend.ErrSessionEnded, why)
	s.lease.End()
	s.proof.lease.End()
	s.mu.Unlock()
	s.cancel(s.err)
	s.b.forget(s)
	close(s.done)
	s.b.o.Logger.Debug("session ended", "lease", fmt.Sprintf("%x", s.present().lease), "err", why)
	s.b.wg.Go(s.release)
}

// release revokes the leases, and tries until etcd must have ended them by itself.
func (s *session) release() {
	defer s.b.released(s)
	ctx, cancel := context.WithTimeout(s.b.ctx, s.ttl+time.Second)
	defer cancel()
	pause := newBackoff()
	for {
		err := s.revoke(ctx)
		if err == nil {
			return
		}
		if !isLost(err) || pause.Sleep(ctx) != nil {
			s.unfreed = err
			return
		}
	}
}

// revoke revokes the lease, and the one before: what nobody has heard of may hang on it.
func (s *session) revoke(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.attempt())
	defer cancel()
	now := s.present()
	for _, id := range []int64{now.lease, now.old} {
		if id == 0 {
			continue
		}
		_, err := s.b.leases.LeaseRevoke(ctx, &pb.LeaseRevokeRequest{ID: id}, grpc.WaitForReady(true))
		if err == nil {
			continue
		}
		if err = s.b.classify(err); !errors.Is(err, errLeaseGone) {
			return err
		}
	}
	return nil
}

// TTL returns the time to live that etcd granted; see [backend.Session].
func (s *session) TTL() time.Duration { return s.ttl }

func (s *session) Done() <-chan struct{} { return s.done }

func (s *session) Err() error { return wrap("session", "", s.ended()) }

// Close ends the session and revokes its lease, which deletes its members in one
// step; see [backend.Session].
func (s *session) Close(ctx context.Context) error {
	s.end(errClosed)
	select {
	case <-s.released:
		if s.unfreed != nil {
			return wrap("close", "", s.stands(s.unfreed))
		}
		return nil
	case <-ctx.Done():
		return wrap("close", "", s.stands(context.Cause(ctx)))
	}
}

func (s *session) stands(why error) error {
	return fmt.Errorf("%w: what the session joined stands until etcd ends its lease, within %v: %w", backend.ErrUnavailable, s.ttl, why)
}
