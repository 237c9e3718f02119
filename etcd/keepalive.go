package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/clock"
)

// A keeper keeps the lease of a session alive, on a stream of its own and with one
// request on its way at a time: an answer names only its lease, so that is what
// pairs answers with the times at which their requests were sent.
//
// The client's own KeepAlive counts from when answers come, so its holder may
// believe for seconds too long that it has the lease (client/v3/lease.go).
type keeper struct {
	s      *session
	stream pb.Lease_LeaseKeepAliveClient
	cancel context.CancelFunc // of stream
	term   uint64             // of the newest answer on stream; 0 before the first
}

// keepAlive sends a heartbeat a quarter of the TTL after the last that was answered
// had been sent.
func (s *session) keepAlive() {
	k := &keeper{s: s}
	defer k.hangUp()
	timer := time.NewTimer(s.ttl / 4)
	defer timer.Stop()
	pause := newBackoff()
	doubted := false
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-timer.C:
		case <-s.beatNow:
		}
		sent, err := k.beat()
		switch {
		case err == nil:
			pause.Reset()
			doubted = false
			timer.Reset(max(0, s.ttl/4-clock.Since(sent)))
			continue
		case errors.Is(err, errLeaseGone) && doubted:
			s.end(err)
			return
		case errors.Is(err, backend.ErrReset):
			s.end(err)
			return
		case errors.Is(err, errLeaseGone):
			// A server that lags behind may not know a young lease yet (etcd issue 13675).
			// A read through the log makes it catch up, and tells whether the log was reset.
			doubted = true
			_, _ = s.read(s.ctx, clientv3.OpGet(s.b.record("succession"), clientv3.WithKeysOnly()))
		default:
			s.b.o.Logger.Debug("heartbeat failed", "err", err)
		}
		k.hangUp()
		if pause.Sleep(s.ctx) != nil {
			return
		}
		timer.Reset(0)
	}
}

// beat sends one heartbeat and waits for its answer, and its proof where the session
// leads, for a bounded time. It returns when it was sent.
func (k *keeper) beat() (sent clock.Instant, err error) {
	s := k.s
	if k.stream == nil {
		if err := k.open(); err != nil {
			return sent, err
		}
	}
	for range 2 {
		a, err := k.ask()
		switch {
		case err != nil:
			return a.sent, err
		case k.term != s.present().term:
			return s.relet()
		case !s.proof.wanted():
			return a.sent, s.alive()
		case a.term != 0:
			if err := s.prove(a); err != nil {
				return a.sent, err
			}
			return a.sent, s.alive()
		}
		// The first answer on a stream, or in a term: the second may be proven.
	}
	return sent, errUnproven
}

// ask sends one request and takes its answer.
func (k *keeper) ask() (ack, error) {
	s := k.s
	limit := time.AfterFunc(s.beatLimit(), k.cancel)
	defer limit.Stop()
	a := ack{lease: s.present().lease, sent: clock.Now()}
	if err := k.stream.Send(&pb.LeaseKeepAliveRequest{ID: a.lease}); err != nil {
		return a, err
	}
	resp, err := k.stream.Recv()
	switch {
	case err != nil:
		return a, s.b.classify(err)
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
	a.time = min(time.Duration(resp.TTL)*time.Second, s.ttl) - s.margin
	if term := resp.Header.GetRaftTerm(); term == k.term {
		a.term = term
	} else {
		k.term = term
	}
	s.lease.Extend(a.sent, a.time)
	s.proof.acknowledged(a)
	return a, nil
}

// open opens the stream, within the time of an attempt. A server that has lost its
// leader ends it, so that the next attempt goes to another.
func (k *keeper) open() error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(k.s.ctx))
	limit := time.AfterFunc(k.s.beatLimit(), cancel)
	stream, err := k.s.b.leases.LeaseKeepAlive(ctx, grpc.WaitForReady(true))
	if err != nil || !limit.Stop() {
		cancel()
		if err == nil {
			err = context.DeadlineExceeded
		}
		return k.s.b.classify(err)
	}
	k.stream, k.cancel, k.term = stream, cancel, 0
	return nil
}

func (k *keeper) hangUp() {
	if k.stream != nil {
		k.cancel()
		k.stream = nil
	}
}

// beatLimit is how long a heartbeat waits for its answer before it is sent again
// to another server: two attempts must fit between a quarter of the TTL and the
// deadline, unless [Options] Margin leaves room for one alone, and both must be long
// enough for a server that is merely slow.
func (s *session) beatLimit() time.Duration {
	return min(s.ttl/4, time.Second)
}
