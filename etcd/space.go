package etcd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/clock"
)

// A roll is a roll call of all servers. It takes the place of a fresh lease while etcd is
// out of space, because etcd then grants no lease and lets no key be moved.
//
// A server that led in an earlier term and has not heard of the end of that term may revoke a lease
// of that term; see [tenancy]. So the session trusts its lease in the present term when every
// server has said twice that it is in that term. With its first answer, a server has given up all
// expiries of leases (server/lease/lessor.go, Demote). Its earlier requests are done or dropped
// within its limit for a request. The second answer comes after that, and shows that the server has
// been running since.
type roll struct {
	term  uint64
	first clock.Instant // when all had answered for the first time; zero for not yet
}

// queueing is the part of a server's limit for a request that does not depend on its
// election timeout (server/config, ReqTimeout).
const queueing = 5 * time.Second

// errSpace is why a lease is not trusted for now.
var errSpace = fmt.Errorf("etcd is out of space, and has changed its leader: nobody can lead until all servers have told that they know the new one; "+
	"make room and disarm the alarm (etcdctl alarm disarm): %w", rpctypes.ErrNoSpace)

// keep makes the session trust its lease in the term of the stream, if that is safe. It
// reports whether it did; if not, it is to be called again.
func (k *keeper) keep() bool {
	s, now := k.s, k.s.present()
	if term := k.stream.term; k.roll.term != term {
		k.roll = roll{term: term}
		s.b.o.Logger.Warn("no fresh lease", "err", errSpace, "lease", fmt.Sprintf("%x", now.lease), "term", term)
	}
	s.hitch(errSpace)
	// The limit also has two election timeouts. A lease is no shorter than one and a half
	// of them.
	if !k.roll.first.IsZero() && clock.Since(k.roll.first) < s.b.queueing+s.ttl*4/3 {
		return false
	}
	ctx, cancel := context.WithTimeout(s.Context(), s.beatLimit())
	defer cancel()
	err := s.b.call(ctx, k.roll.term)
	switch {
	case errors.Is(err, backend.ErrDenied): // it will be, each time
		s.hitch(fmt.Errorf("%w; this version of etcd lets only root ask: %v", errSpace, err))
		return false
	case err != nil:
		s.b.o.Logger.Debug("the lease of an earlier term is not trusted", "err", err)
		return false
	case k.roll.first.IsZero():
		k.roll.first = clock.Now()
		return false
	}
	s.hitch(nil)
	s.let(tenancy{lease: now.lease, term: k.roll.term, old: now.old})
	s.b.o.Logger.Warn("kept the lease of an earlier term, as etcd is out of space", "lease", fmt.Sprintf("%x", now.lease), "term", k.roll.term)
	return true
}

// call asks every server that may have led whether it is in the term and knows its
// leader. It fails unless all say so.
func (b *Backend) call(ctx context.Context, term uint64) error {
	resp, err := sendOnce(ctx, b.cluster.MemberList, &pb.MemberListRequest{Linearizable: true}, grpc.WaitForReady(true))
	if err != nil {
		return b.unanswered(ctx, err)
	}
	absent := make(map[uint64]string)
	for _, m := range resp.Members {
		if !m.IsLearner {
			absent[m.ID] = m.Name
		}
	}
	var mu sync.Mutex
	var denied error
	var asking sync.WaitGroup
	for _, endpoint := range b.client.Endpoints() {
		asking.Go(func() {
			is, err := b.client.Status(ctx, endpoint)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				if err = b.classify(err); errors.Is(err, backend.ErrDenied) {
					denied = err
				}
			case is.Header.GetRaftTerm() == term && is.Leader != 0:
				delete(absent, is.Header.GetMemberId())
			}
		})
	}
	asking.Wait()
	if denied != nil {
		return denied
	}
	if len(absent) > 0 {
		return errors.New("these servers have not told that they are in the term, or are no endpoints of the client: " +
			strings.Join(slices.Sorted(maps.Values(absent)), ", "))
	}
	return nil
}
