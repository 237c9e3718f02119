package etcd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/clock"
)

// MaxMargin is the TTL minus [Options] Margin, minus the quarter between two heartbeats, and minus
// a sixth for a heartbeat with a slow answer; see [backend.Session].
func (s *session) MaxMargin() time.Duration { return s.ttl*7/12 - s.margin }

// Deadline lies a TTL after the newest confirmed heartbeat was sent, minus [Options] Margin; see
// [backend.Session]. Every session keeps it in the future, whether it has a member in line or not.
// While a member is first, a heartbeat is confirmed only by a [proof] that it has reached the one
// leader that etcd has.
func (s *session) Deadline() time.Time { return time.Now().Add(s.left()) }

// over returns why the session is over once its deadline has passed, and nil before that.
func (s *session) over() error {
	if s.left() > 0 {
		return nil
	}
	why := fmt.Errorf("etcd has not confirmed its lease for %v", s.ttl-s.margin)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.hitched != nil:
		why = fmt.Errorf("%w: %w", why, s.hitched)
	case s.failed != nil: // as text: whoever gets this error is not to take that for the answer to a request of his own
		why = fmt.Errorf("%w: %v", why, s.failed)
	}
	return why
}

// left returns the time until the deadline. If the session leads, that is the proven
// deadline.
func (s *session) left() time.Duration {
	if held, left := s.proof.lease.Held(); held {
		return left
	}
	return s.lease.Left()
}

// beat tells of a heartbeat that has moved a deadline, if it is the one that counts now.
func (s *session) beat(proven bool, roundTrip, slack time.Duration) {
	if held, _ := s.proof.lease.Held(); held == proven {
		s.Beat(roundTrip, slack)
	}
}

// hitch notes why the lease cannot be trusted for now; nil means that it can.
func (s *session) hitch(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hitched = why
}

// fail notes why a heartbeat has failed; nil means that it has not. One warning tells of failures in a row when half of the time until the
// deadline has passed: before that they are what a server leaves behind that stops, or an election of etcd's own.
func (k *keeper) fail(why error) {
	s := k.s
	if why != nil {
		k.failed++
		s.failures.Add(1)
	} else {
		k.failed, k.warned = 0, false
		s.failures.Store(0)
	}
	s.mu.Lock()
	s.failed = why
	s.mu.Unlock()
	if left := s.left(); why != nil && !k.warned && left < (s.ttl-s.margin)/2 {
		k.warned = true
		s.b.o.Logger.Warn("heartbeats fail, trying again", "lease", fmt.Sprintf("%x", s.present().lease), "left", left, "err", why)
	}
}

// A keeper keeps the lease of a session alive.
type keeper struct {
	s      *session
	stream *stream // nil for none
	failed int     // how many heartbeats in a row have failed
	warned bool    // of them
	beside int     // how many heartbeats in a row have gone to the server that has the watches

	noticed clock.Instant // when it noticed that etcd is in another term than the lease; zero if it is not
	delay   time.Duration // after which a session that does not lead takes another lease
	roll    roll
}

// A stream carries heartbeats, one at a time. An answer names only its lease, so this is
// how each answer is known to belong to the request that was sent last.
//
// The client's own KeepAlive counts from when an answer comes, so its caller may believe
// for seconds too long that it has the lease (client/v3/lease.go).
type stream struct {
	pb.Lease_LeaseKeepAliveClient
	cancel context.CancelFunc
	term   uint64 // of the newest answer; 0 before the first
	server uint64 // that has answered; 0 before the first
}

// keepAlive sends each heartbeat a quarter of the TTL after the newest answered one was
// sent.
func (s *session) keepAlive() {
	k := &keeper{s: s}
	defer k.hangUp()
	timer := time.NewTimer(s.ttl / 4)
	defer timer.Stop()
	pause := newBackoff()
	doubted := false
	for {
		select {
		case <-s.Context().Done():
			return
		case <-timer.C:
		case <-s.beatNow:
		}
		begun := time.Now()
		sent, err := k.beat()
		s.b.conns.answered(begun, err)
		k.fail(err)
		switch {
		case err == nil:
			pause.Reset()
			doubted = false
			k.part()
			timer.Reset(max(0, min(s.ttl/4-clock.Since(sent), k.leisure())))
			continue
		case errors.Is(err, errLeaseGone) && doubted:
			s.End(err)
			return
		case errors.Is(err, backend.ErrReset):
			s.End(err)
			return
		case errors.Is(err, errLeaseGone):
			// A server that lags behind may not know a young lease yet (etcd issue 13675).
			// A read through the log makes it catch up, and tells whether the log was reset.
			doubted = true
			_, _ = s.read(s.Context(), clientv3.OpGet(s.b.record("succession"), clientv3.WithKeysOnly()))
		default:
			s.b.o.Logger.Debug("heartbeat failed", "err", err)
		}
		k.hangUp()
		if pause.Sleep(s.Context()) != nil {
			return
		}
		timer.Reset(0)
	}
}

// beat sends one heartbeat. It waits for the answer, and if the session leads for the
// proof, for a bounded time. It returns when the heartbeat was sent.
func (k *keeper) beat() (sent clock.Instant, err error) {
	s := k.s
	var a ack
	for range 2 {
		a, err = k.ask()
		switch {
		case err != nil:
			return a.sent, err
		case k.stream.term != s.present().term:
			if !s.proof.wanted() && k.leisure() > 0 {
				return a.sent, s.Alive()
			}
			fresh, err := s.relet()
			switch {
			case err == nil:
				k.noticed = clock.Instant{}
			case errors.Is(err, rpctypes.ErrNoSpace) && k.keep():
				k.noticed = clock.Instant{}
				continue // it may be proven now
			case errors.Is(err, rpctypes.ErrNoSpace):
				k.noticed, k.delay = clock.Now(), s.ttl/4
				return a.sent, s.Alive()
			}
			return fresh, err
		case a.term == 0:
			// This was the first answer on the stream, or in the term. The second may be
			// proven, also later, by the look of an heir.
			continue
		case s.proof.wanted():
			if err := s.prove(a, k.failed > 0); err != nil {
				return a.sent, err
			}
		}
		return a.sent, s.Alive()
	}
	if s.proof.wanted() {
		return a.sent, errUnproven
	}
	return a.sent, s.Alive()
}

// ask sends one heartbeat, on a new stream if there is none, and notes its answer.
func (k *keeper) ask() (a ack, err error) {
	s := k.s
	if k.stream == nil {
		a, err = k.open()
	} else {
		a, err = s.exchange(k.stream)
	}
	if err != nil {
		return a, err
	}
	s.lease.Extend(a.sent, a.time)
	s.proof.acknowledged(a)
	if k.stream.term == s.present().term { // perhaps a server was behind
		k.noticed = clock.Instant{}
	} else if k.noticed.IsZero() {
		k.noticed, k.delay = clock.Now(), rand.N(s.ttl/4)
	}
	return a, nil
}

// exchange sends one heartbeat on the stream and takes its answer.
func (s *session) exchange(st *stream) (ack, error) {
	limit := time.AfterFunc(s.beatLimit(), st.cancel)
	defer limit.Stop()
	a := ack{lease: s.present().lease, sent: clock.Now()}
	_ = st.Send(&pb.LeaseKeepAliveRequest{ID: a.lease}) // Recv says why it fails
	resp, err := st.Recv()
	switch {
	case err != nil:
		if !limit.Stop() {
			err = context.DeadlineExceeded // what gRPC says of it is that the stream was cancelled
		}
		if err = s.b.classify(err); errors.Is(err, rpctypes.ErrPermissionDenied) {
			err = fmt.Errorf("%w; who keeps a lease alive must have the right to write all keys that are attached to it", err)
		}
		return a, err
	case resp.ID != a.lease:
		return a, fmt.Errorf("an answer about lease %x came to a heartbeat of lease %x", resp.ID, a.lease)
	}
	// The header's revision is that of one server, which may lag behind.
	if err := s.b.log.observe(0, resp.Header); err != nil {
		return a, err
	}
	if resp.TTL <= 0 {
		return a, errLeaseGone
	}
	st.server = resp.Header.GetMemberId()
	a.time = min(time.Duration(resp.TTL)*time.Second, s.ttl) - s.margin
	if term := resp.Header.GetRaftTerm(); term == st.term {
		a.term = term
	} else {
		st.term = term
	}
	return a, nil
}

// leisure returns for how long a session that does not lead still keeps a lease of
// another term. All sessions learn of a new leader of etcd at the same moment, and should
// not all write at that moment. They have time for that: a former leader revokes none of their
// leases before it has seen them run out, and heartbeats are a quarter of the TTL apart.
func (k *keeper) leisure() time.Duration {
	if k.noticed.IsZero() {
		return k.s.ttl
	}
	return k.delay - clock.Since(k.noticed)
}

// open opens a stream, and sends the first heartbeat on it. If the heartbeat before has
// failed, it opens two at once, see [first], and keeps the one that answers first.
func (k *keeper) open() (ack, error) {
	var chosen atomic.Pointer[stream]
	a, err := first(k.s.Context(), k.failed > 0, func(ctx context.Context) (ack, error) {
		st, err := k.s.open(ctx)
		if err != nil {
			return ack{}, err
		}
		stop := context.AfterFunc(ctx, st.cancel)
		a, err := k.s.exchange(st)
		if err == nil && stop() && chosen.CompareAndSwap(nil, st) {
			return a, nil
		}
		st.cancel()
		if err == nil {
			err = &lostError{errors.New("the other stream was faster, or the session has ended")}
		}
		return a, err
	})
	k.stream = chosen.Load()
	return a, err
}

// open opens a stream, within the time limit of a heartbeat. A server that has lost its
// leader ends the stream, so that the next attempt goes to another server.
func (s *session) open(ctx context.Context) (*stream, error) {
	streaming, cancel := context.WithCancel(clientv3.WithRequireLeader(s.Context()))
	stop := context.AfterFunc(ctx, cancel)
	limit := time.AfterFunc(s.beatLimit(), cancel)
	raw, err := s.b.leases.LeaseKeepAlive(streaming, grpc.WaitForReady(true))
	if err != nil || !limit.Stop() || !stop() {
		cancel()
		if err == nil {
			err = context.DeadlineExceeded
		}
		return nil, s.b.classify(err)
	}
	return &stream{Lease_LeaseKeepAliveClient: raw, cancel: cancel}, nil
}

func (k *keeper) hangUp() {
	if k.stream != nil {
		k.stream.cancel()
		k.stream = nil
	}
}

// part gives up the stream if its server also has the session's watches, so that the next heartbeat goes to another
// one; see [watcher.proven]. The new stream may lead to the same server. So part does that at the first such heartbeat in a row,
// and then at the second, the fourth, the eighth and so on: it costs nothing in the long run where there is only one
// server behind several addresses.
func (k *keeper) part() {
	if k.stream == nil || !k.s.several() || !k.s.watcher.on(k.stream.server) {
		k.beside = 0
		return
	}
	if k.beside++; k.beside&(k.beside-1) == 0 {
		k.hangUp()
	}
}

// beatLimit is how long a heartbeat waits for its answer before it is sent again to
// another server. Two attempts must fit between a quarter of the TTL and the deadline,
// unless [Options] Margin leaves room for one alone. Both must be long enough for a
// server that is merely slow. So once one has failed, everything is asked of two servers at once,
// the proof too: a third attempt would come too late.
//
// But it may be that all servers are slow, as when their disks stall: then an attempt that is as long as the
// last one fails like that. So the limit doubles with each attempt that has failed since a heartbeat was
// confirmed. It stays within a third of what is left until the deadline, so that a server that stands still
// leaves time for another attempt.
func (s *session) beatLimit() time.Duration {
	limit := min(s.ttl/4, time.Second)
	return max(limit, min(limit<<min(int(s.failures.Load()), 16), s.left()/3))
}
