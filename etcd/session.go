package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/backend/kit/lease"
)

// A session has one lease at a time. All its members are attached to it, in whatever line
// they stand, except those that are pinned.
type session struct {
	kit.AlwaysFresh // every read is linearizable
	*kit.Life
	kit.NoImports
	kit.NoDates
	kit.NoFiles
	b      *Backend
	id     int64 // of its first lease, which its members are named after
	ttl    time.Duration
	margin time.Duration
	lease  lease.Lease // what answered heartbeats say
	proof  proof

	beatNow  chan struct{} // has room for one: a heartbeat is wanted at once
	answered atomic.Int64  // how long the last answer took, in nanoseconds
	failures atomic.Int32  // how many attempts have failed since the last heartbeat that was confirmed

	watcher *watcher
	lookout kit.Lookout[view]
	backlog kit.Backlog
	joining kit.Joins[backend.Joined]
	pins    kit.Pins
	leaving kit.Leaves
	ghosts  *ghosts

	mu      sync.Mutex
	tenancy tenancy
	hitched error               // what may end the session soon; nil if nothing
	failed  error               // why the newest heartbeat has failed; nil if it has not
	taken   map[string]*taken   // by line and name
	numbers map[string]*numbers // by line
	leases  map[int64]bool      // all that it has had
	heads   map[string]uint64   // by line, the greatest position that was seen at its head
	reaches map[string]reach    // by line, how far [session.Free] reads it
}

var _ backend.Session = (*session)(nil)

func newSession(b *Backend, t tenancy, ttl time.Duration) *session {
	s := &session{
		b:       b,
		id:      t.lease,
		tenancy: t,
		ttl:     ttl,
		margin:  b.o.margin(ttl),
		taken:   make(map[string]*taken),
		numbers: make(map[string]*numbers),
		leases:  map[int64]bool{t.lease: true},
		heads:   make(map[string]uint64),
		reaches: make(map[string]reach),
		beatNow: make(chan struct{}, 1),
		proof:   proof{leading: make(map[uint64]bool), settled: make(chan struct{})},
	}
	s.watcher, s.ghosts = newWatcher(s), newGhosts(s)
	s.Life = b.sessions.NewLife(kit.Rules{Over: s.over, Left: s.left, Explain: s.explain, Ending: s.ending, Release: s.release, Stands: s.stands})
	s.lookout.Life, s.lookout.Read = s.Life, s.view
	s.joining = kit.Joins[backend.Joined]{Go: s.Go, Ended: s.Ended, Backlog: &s.backlog, Undo: func(j backend.Joined) error { return s.undo(j.Member) }, End: s.End}
	s.leaving = kit.Leaves{Go: s.Go, Ended: s.Ended, Backlog: &s.backlog, Context: s.Context, Alone: s.leaveAlone, Together: s.leaveTogether}
	s.lease.Confirmed = func(roundTrip, slack time.Duration) { s.beat(false, roundTrip, slack) }
	s.proof.lease.Confirmed = func(roundTrip, slack time.Duration) { s.beat(true, roundTrip, slack) }
	return s
}

// ending makes the deadline pass: from now on nothing keeps the lease alive.
func (s *session) ending() {
	s.lease.End()
	s.proof.lease.End()
}

// release revokes the leases, and tries again until etcd must have ended them by itself.
// It does so also if etcd has said that the lease is gone, because the session may have
// more than one.
func (s *session) release(ctx context.Context) error {
	s.b.o.Logger.Debug("session ended", "lease", fmt.Sprintf("%x", s.present().lease), "err", s.Ended())
	ctx, cancel := context.WithTimeout(ctx, s.ttl+time.Second)
	defer cancel()
	pause := newBackoff()
	for {
		err := s.revoke(ctx)
		if !isLost(err) || pause.Sleep(ctx) != nil {
			return err
		}
	}
}

// revoke revokes the present lease and the one before: a member whose join had no answer may be
// attached to it.
func (s *session) revoke(ctx context.Context) (err error) {
	now := s.present()
	var before error
	var both sync.WaitGroup
	if now.old != 0 {
		both.Go(func() { before = s.revokeOne(ctx, now.old) })
	}
	err = s.revokeOne(ctx, now.lease)
	if both.Wait(); err == nil {
		err = before
	}
	return err
}

// revokeOne revokes a lease, or finds that there is none. It asks other servers, too, so early that [closeBound] is
// enough also if one stands still, and goes on to wait for the first, which may just be slow.
func (s *session) revokeOne(ctx context.Context, id int64) error {
	_, err := beside(ctx, s, s.beatLimit(), func(ctx context.Context) (*pb.LeaseRevokeResponse, error) {
		resp, err := sendOnce(ctx, s.b.leases.LeaseRevoke, &pb.LeaseRevokeRequest{ID: id}, grpc.WaitForReady(true))
		if err != nil {
			err = s.b.classify(err)
		}
		return resp, err
	}, func(_ *pb.LeaseRevokeResponse, err error) bool { return !isLost(err) })
	if errors.Is(err, errLeaseGone) {
		return nil
	}
	return err
}

func (s *session) stands() string { return fmt.Sprintf("etcd ends its lease, within %v", s.ttl) }

// TTL returns the time to live that etcd granted; see [backend.Session].
func (s *session) TTL() time.Duration { return s.ttl }
