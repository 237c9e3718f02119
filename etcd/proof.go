package etcd

import (
	"context"
	"errors"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/succession-dev/succession/internal/clock"
	"github.com/succession-dev/succession/internal/lease"
)

// A proof is what a session knows for certain of the end of its lease; it is what a
// leader's deadline rests on.
//
// An answered heartbeat proves little. A server that was etcd's leader, stood still while
// the others elected another, and goes on, answers for some time as if it still were
// (server/etcdserver, isActive): the others may have ended the lease, or be about to. But
// three answers with one raft term prove that the leader of that term has renewed the
// lease and was not followed by another until then: the answer before on the same
// stream, which says that the server had come as far as that term when it got the
// heartbeat; the heartbeat's own; and that to a linearizable request sent after it,
// which takes a quorum. A leader that follows later gives each lease a whole TTL.
// This assumes nothing of etcd's clocks and elections. A lease that was just granted
// needs no such proof, as that goes through the log.
//
// Ahead is such a request, so nobody waits for a proof to become leader, and
// only leaders ask for more.
type proof struct {
	lease lease.Lease // held while the session leads

	mu      sync.Mutex
	newest  ack
	leading map[string]bool // keys of members that are first, as far as known
	settled chan struct{}   // closed, and made anew, at each proof
}

// An ack is an answered heartbeat.
type ack struct {
	sent clock.Instant
	time time.Duration // from sent on, as answered, less the margin
	term uint64        // of the answer and of the one before it; 0 where they differ
}

// errUnproven says that etcd has changed its leader, or that its servers disagree.
var errUnproven = errors.New("the heartbeat was not answered in the term that etcd is in")

// acknowledged notes the newest answer.
func (p *proof) acknowledged(a ack) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.newest = a
}

// last returns the newest answer.
func (p *proof) last() ack {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.newest
}

// settle takes the term of the answer to a linearizable request that was sent when a
// was there. It reports whether that proves anything.
func (p *proof) settle(a ack, term uint64) bool {
	if a.term == 0 || a.term != term {
		return false
	}
	p.lease.Extend(a.sent, a.time)
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.settled)
	p.settled = make(chan struct{})
	return true
}

// next returns a channel that the next proof closes.
func (p *proof) next() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.settled
}

// wanted reports whether heartbeats are to be proven.
func (p *proof) wanted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.leading) > 0
}

// lead makes the session one that leads, by the member with the given key. It returns
// when its deadline is proven and ahead: at once, but for a change of etcd's leader.
func (s *session) lead(ctx context.Context, key string) error {
	s.proof.mu.Lock()
	s.proof.leading[key] = true
	s.proof.mu.Unlock()
	for {
		next := s.proof.next()
		// One that is about to pass would cost the term that begins.
		if held, left := s.proof.lease.Held(); (held || left > s.ttl/4) && s.proof.lease.Hold(true) {
			return s.alive()
		}
		if err := s.alive(); err != nil {
			return err
		}
		notify(s.beatNow)
		select {
		case <-next:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// follow takes the member from those by which the session leads.
func (s *session) follow(key string) {
	_ = s.alive() // a deadline that has passed while somebody led has ended the session
	s.proof.mu.Lock()
	defer s.proof.mu.Unlock()
	delete(s.proof.leading, key)
	if len(s.proof.leading) == 0 {
		s.proof.lease.Hold(false)
	}
}

// prove asks etcd for its term, by a request that takes a quorum, no right and no
// write. Where no answer comes it asks once more.
func (s *session) prove(a ack) (err error) {
	for _, before := range []bool{false, true} {
		var term uint64
		term, err = first(s.ctx, before, s.term)
		switch {
		case isLost(err):
			continue
		case err != nil:
			return err
		case !s.proof.settle(a, term):
			return errUnproven
		}
		return nil
	}
	return err
}

// term returns the term that etcd is in.
func (s *session) term(ctx context.Context) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, s.beatLimit())
	defer cancel()
	resp, err := s.b.cluster.MemberList(ctx, &pb.MemberListRequest{Linearizable: true}, grpc.WaitForReady(true))
	if err != nil {
		return 0, s.b.classify(err)
	}
	if err := s.b.log.observe(0, resp.Header); err != nil {
		s.end(err, false)
		return 0, err
	}
	return resp.Header.RaftTerm, nil
}
