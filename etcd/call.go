package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/succession-dev/succession/internal/backoff"
)

const (
	minAttempt = 250 * time.Millisecond
	maxAttempt = 2 * time.Second
)

// A txn is one request: everything but leases and watches is a transaction, and
// linearizable.
type txn struct {
	when            []clientv3.Cmp
	then, otherwise []clientv3.Op
	// lease is what then attaches a key to; 0 for none.
	lease int64
	// urgent has persist ask two servers at once from the beginning.
	urgent bool
}

// commit sends t once and waits for the answer, at most for the given time. If ctx has
// ended, its error is the cause of ctx, except where a server has said that it did not take
// t ([notTaken]). If the session has left the lease that t names, it is errOutdated. Every
// other error is one of the contract.
func (s *session) commit(ctx context.Context, t txn, limit time.Duration) (*clientv3.TxnResponse, error) {
	attempt, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	floor := s.b.log.floor()
	resp, err := s.b.kv.Txn(attempt).If(t.when...).Then(t.then...).Else(t.otherwise...).Commit()
	if err != nil {
		if ctx.Err() != nil && !notTaken(err) {
			return nil, context.Cause(ctx)
		}
		err = s.b.classify(err)
		if errors.Is(err, errLeaseGone) {
			if t.lease != s.present().lease {
				return nil, errOutdated
			}
			s.End(err)
			return nil, s.Ended()
		}
		if errors.Is(err, rpctypes.ErrPermissionDenied) {
			err = &deniedError{t, err}
		}
		return nil, err
	}
	if err := s.b.log.observe(floor, resp.Header); err != nil {
		s.End(err)
		return nil, s.Ended()
	}
	return resp, nil
}

// once sends t, which must not be repeated. A lost answer is an error.
func (s *session) once(ctx context.Context, t txn) (*clientv3.TxnResponse, error) {
	return s.commit(ctx, t, max(s.ttl, minAttempt))
}

// persist sends t, which may be repeated, until it is answered: a server that does
// not answer is passed over for another, see [first], and so is one that has not taken it.
// It ends at the latest when the session does, which an etcd that answers nobody brings
// about. lost says that an answer was lost before; what was sent then may yet take effect.
func (s *session) persist(ctx context.Context, t txn) (resp *clientv3.TxnResponse, lost bool, err error) {
	pause := newBackoff()
	for limit := s.attempt(); ; limit = min(2*limit, max(s.ttl, minAttempt)) {
		resp, err = first(ctx, lost || t.urgent, func(ctx context.Context) (*clientv3.TxnResponse, error) {
			return s.commit(ctx, t, limit)
		})
		if !isLost(err) {
			return resp, lost, err
		}
		lost = lost || !notTaken(err)
		s.b.o.Logger.Debug("no answer, asking again", "err", err)
		if why := pause.Sleep(ctx); why != nil {
			var refused *lostError
			if !lost && errors.As(err, &refused) {
				why = fmt.Errorf("%w: %w", why, refused.err)
			}
			return nil, lost, why
		}
	}
}

// first calls f, or where one server may not do, f twice at once, and returns the first
// result that is not the loss of an answer. gRPC has the next server of all take the
// next request: of two that go out together one passes over a server that stands
// still, while one after the other may both hit it, with other requests in between.
func first[T any](ctx context.Context, both bool, f func(context.Context) (T, error)) (T, error) {
	if !both {
		return f(ctx)
	}
	type result struct {
		v   T
		err error
	}
	ctx, cancel := context.WithCancel(ctx)
	results := make(chan result, 2)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	for range cap(results) {
		running.Go(func() {
			v, err := f(ctx)
			results <- result{v, err}
		})
	}
	r := <-results
	if isLost(r.err) {
		r = <-results
	}
	return r.v, r.err
}

// twice calls f, and where no answer comes in time once more, by way of [first].
func twice[T any](ctx context.Context, limit time.Duration, urgent bool, f func(context.Context) (T, error)) (v T, err error) {
	for _, again := range []bool{false, true} {
		v, err = first(ctx, urgent || again, func(ctx context.Context) (T, error) {
			ctx, cancel := context.WithTimeout(ctx, limit)
			defer cancel()
			return f(ctx)
		})
		if !isLost(err) {
			break
		}
	}
	return v, err
}

// read is persist for a transaction that changes nothing.
func (s *session) read(ctx context.Context, ops ...clientv3.Op) (*clientv3.TxnResponse, error) {
	resp, _, err := s.persist(ctx, txn{then: ops})
	return resp, err
}

// attempt is how long a first attempt waits for its answer before another server
// is asked.
func (s *session) attempt() time.Duration {
	return min(max(s.ttl/4, minAttempt), maxAttempt)
}

// newBackoff returns the pauses between attempts.
func newBackoff() backoff.Backoff {
	return backoff.Backoff{Min: 20 * time.Millisecond, Max: time.Second}
}

func rangeOf(resp *clientv3.TxnResponse, i int) *pb.RangeResponse {
	return resp.Responses[i].GetResponseRange()
}
