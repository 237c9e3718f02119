package etcd

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/backend/kit/clock"
	"github.com/succession-dev/succession/backend/kit/lease"
)

// A proof is what a session knows for certain about the end of its lease. A leader's
// deadline rests on it.
//
// An answered heartbeat proves little. A server that was etcd's leader, stood still while
// the others elected another, and goes on, answers for some time as if it still led
// (server/etcdserver, isActive). The others may have ended the lease, or be about to. But three
// answers with the same raft term prove that the leader of that term has renewed the lease, and
// that no other leader had followed by then:
//
//   - the answer before on the same stream, which shows that the server had reached that
//     term when it got the heartbeat;
//   - the answer to the heartbeat;
//   - the answer to a linearizable request that was sent after that, which takes a
//     quorum.
//
// A leader that follows later gives each lease a whole TTL. The term must also be the one
// in which the lease was granted; see [tenancy]. All this assumes nothing about etcd's
// clocks and elections. A lease that was just granted needs no such proof, because the
// grant goes through the log.
//
// Ahead is such a linearizable request, so nobody waits for a proof to become leader, and
// only leaders send more of them.
type proof struct {
	lease lease.Lease // held while the session leads

	mu      sync.Mutex
	newest  ack
	leading map[uint64]bool // positions of members that are first, or just behind a gate, as far as known
	settled chan struct{}   // closed, and made anew, at each proof, and when a member is first no longer
}

// An ack is an answered heartbeat.
type ack struct {
	lease int64
	sent  clock.Instant
	time  time.Duration // from sent on, as answered, less the margin
	term  uint64        // of the answer and of the one before it; 0 where they differ
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

// extend notes that the lease lasts until d after sent, for certain.
func (p *proof) extend(sent clock.Instant, d time.Duration) {
	p.lease.Extend(sent, d)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tell()
}

// tell wakes those who wait for a proof. The caller holds the lock.
func (p *proof) tell() {
	close(p.settled)
	p.settled = make(chan struct{})
}

// next returns a channel that is closed when [proof.hold] may report something else.
func (p *proof) next() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.settled
}

// wanted reports whether heartbeats need a proof, because the session leads.
func (p *proof) wanted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.leading) > 0
}

// hold has the session rely on the proven deadline because of the member at the position, and reports true, if the deadline is
// far enough ahead. It also reports true if that member does not lead any more: then nobody would send the next proof.
func (p *proof) hold(position uint64, enough time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.leading[position] {
		return true
	}
	held, left := p.lease.Held()
	return (held || left > enough) && p.lease.Hold(true)
}

// drop notes that the member at the position does not lead any more.
func (p *proof) drop(position uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.leading[position] {
		return
	}
	delete(p.leading, position)
	if len(p.leading) == 0 {
		p.lease.Hold(false)
	}
	p.tell()
}

// lead notes that the session leads by m. It returns when the proven deadline lies in the
// future: at once, unless etcd has changed its leader. It notes nothing if m has left since it was read, or is not of this session, and
// waits no longer when m leaves.
func (s *session) lead(ctx context.Context, m backend.Member) error {
	s.proof.mu.Lock()
	s.proof.leading[m.Position] = true
	s.proof.mu.Unlock()
	if !s.owns(m) { // it is asked only now, because gone calls follow last
		s.follow(m)
		return s.Alive()
	}
	for {
		next := s.proof.next()
		if s.proof.hold(m.Position, s.ttl/4) { // a deadline that is about to pass would cost the term that begins
			return s.Alive()
		}
		if err := s.Alive(); err != nil {
			return err
		}
		kit.Notify(s.beatNow)
		select {
		case <-next:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// follow notes that the session no longer leads by m.
func (s *session) follow(m backend.Member) {
	_ = s.Alive() // if the deadline passed while a member led, the session has ended
	s.proof.drop(m.Position)
}

// settle takes the term of the answer to a linearizable request that was sent after a had
// come. It reports whether that proves a, and if so moves the proven deadline.
func (s *session) settle(a ack, term uint64) bool {
	now := s.present()
	if a.term == 0 || a.term != term || a.term != now.term || a.lease != now.lease {
		return false
	}
	s.proof.extend(a.sent, a.time)
	return true
}

// prove asks etcd for its term, to prove a. If it is urgent, it asks two servers at once.
func (s *session) prove(a ack, urgent bool) error {
	term, err := s.term(urgent)
	if err == nil && !s.settle(a, term) {
		return errUnproven
	}
	return err
}

// term returns the term that etcd is in; urgent is as in [twice].
func (s *session) term(urgent bool) (uint64, error) {
	return twice(s.Context(), s, urgent, s.b.term)
}
