package etcd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/backend/kit/clock"
)

const (
	minAttempt = 250 * time.Millisecond
	maxAttempt = 2 * time.Second

	// maxTurns is how many requests about keys a backend has on their way. More do not make
	// etcd quicker, and thousands at once would hold up the heartbeats. All copies of one request
	// that either sends count as one.
	maxTurns = 128
)

// A txn is one request about keys. All requests about keys are transactions, and
// linearizable.
type txn struct {
	when            []clientv3.Cmp
	then, otherwise []clientv3.Op
	// lease is the lease to which then attaches a key; 0 for none.
	lease int64
	// urgent makes persist ask two servers at once from the beginning, and it waits for no
	// other request.
	urgent bool
}

// turn waits until fewer than [maxTurns] requests wait for answers. The caller calls done when it has
// its answer. If ctx ends first, the error is the cause of ctx.
func (s *session) turn(ctx context.Context) (done func(), err error) {
	select {
	case s.b.turns <- struct{}{}:
		return func() { <-s.b.turns }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// commit is send in its [session.turn], unless t is urgent.
func (s *session) commit(ctx context.Context, t txn, limit time.Duration) (*clientv3.TxnResponse, error) {
	if !t.urgent {
		done, err := s.turn(ctx)
		if err != nil {
			return nil, err
		}
		defer done()
	}
	return s.send(ctx, t, limit)
}

// send sends t once. It then waits for the answer, no longer than limit. If ctx has ended,
// the error is the cause of ctx, unless a server has said that it did not take t
// ([notTaken]). If t names a lease that the session has given up, the error is
// errOutdated. Every other error is one of the contract.
func (s *session) send(ctx context.Context, t txn, limit time.Duration) (*clientv3.TxnResponse, error) {
	attempt, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	floor := s.b.log.floor()
	sent := clock.Now()
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
	s.answered.Store(int64(clock.Since(sent)))
	if err := s.b.log.observe(floor, resp.Header); err != nil {
		s.End(err)
		return nil, s.Ended()
	}
	if !t.answeredBy(resp) {
		return nil, &lostError{errStrange}
	}
	return resp, nil
}

// errStrange says that what answers is not etcd, or that something in between has changed
// the answer.
var errStrange = errors.New("the answer is none to the request; what answers there?")

// answeredBy reports whether the answer has the form that t asks for. So the caller may take the
// answer apart without further checks.
func (t txn) answeredBy(resp *clientv3.TxnResponse) bool {
	ops := t.then
	if !resp.Succeeded {
		ops = t.otherwise
	}
	if resp.Header == nil || !resp.Succeeded && len(t.when) == 0 || len(resp.Responses) != len(ops) {
		return false
	}
	for i, op := range ops {
		r, ok := resp.Responses[i], true
		switch {
		case op.IsGet():
			found := r.GetResponseRange()
			ok = found != nil && (len(found.Kvs) > 0 || !found.More) && !slices.ContainsFunc(found.Kvs, func(kv *mvccpb.KeyValue) bool {
				return !asksFor(op, kv.Key)
			})
		case op.IsPut():
			ok = r.GetResponsePut() != nil
		case op.IsDelete():
			ok = r.GetResponseDeleteRange() != nil
		}
		if !ok {
			return false
		}
	}
	return true
}

// asksFor reports whether the key is among those that op names.
func asksFor(op clientv3.Op, key []byte) bool {
	end := op.RangeBytes()
	if len(end) == 0 {
		return bytes.Equal(key, op.KeyBytes())
	}
	all := len(end) == 1 && end[0] == 0 // as etcd writes that there is no end
	return bytes.Compare(key, op.KeyBytes()) >= 0 && (all || bytes.Compare(key, end) < 0)
}

// once sends t, which must not be sent twice. A lost answer is an error.
func (s *session) once(ctx context.Context, t txn) (*clientv3.TxnResponse, error) {
	return s.commit(ctx, t, s.longest())
}

// longest is how long the last attempt waits for its answer.
func (s *session) longest() time.Duration { return max(s.ttl, minAttempt) }

// either sends t, of which only one copy can take effect: after that, the condition of t never
// holds again. If no answer comes in time, or it is lost, either sends more copies; see [beside].
// The answer of the copy that has taken effect is the answer of t.
//
// If an answer says that the condition does not hold, another copy may have taken effect before,
// and its answer may still come. So that answer counts only if all copies have said so, or if
// untouched reports that no copy has taken effect before it, and that none will.
func (s *session) either(ctx context.Context, t txn, untouched func(*clientv3.TxnResponse) bool) (*clientv3.TxnResponse, error) {
	done, err := s.turn(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return beside(ctx, s, s.patience(t), func(ctx context.Context) (*clientv3.TxnResponse, error) {
		return s.send(ctx, t, s.longest())
	}, func(resp *clientv3.TxnResponse, err error) bool {
		return err == nil && (resp.Succeeded || untouched(resp))
	})
}

// beside calls f. If that takes longer than patience, or its answer is lost, it calls f twice more at the same time, see [first], or
// once more if there is one server. It returns the first result that is enough. If there is none, it returns one that says that an
// answer was lost, if there is one, or any.
func beside[T any](ctx context.Context, s *session, patience time.Duration, f func(context.Context) (T, error), enough func(T, error) bool) (T, error) {
	type result struct {
		v   T
		err error
	}
	ctx, cancel := context.WithCancel(ctx)
	results := make(chan result, 3)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	call := func() {
		running.Go(func() {
			v, err := f(ctx)
			results <- result{v, err}
		})
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	call()
	var all result
	for copied, left := false, 1; left > 0; {
		late := false
		select {
		case <-timer.C:
			late = true
		case r := <-results:
			left--
			if enough(r.v, r.err) {
				return r.v, r.err
			}
			late = isLost(r.err) // its server has gone
			if all.err == nil || late {
				all = r
			}
		}
		if late && !copied {
			copied = true
			call()
			left++
			if s.several() {
				call()
				left++
			}
		}
	}
	return all.v, all.err
}

// persist sends t, which may be repeated, until it is answered. If a server does not
// answer, or has not taken t, it asks another; see [first]. It ends at the latest with the session,
// which also ends if etcd never answers. lost reports that an answer was lost before: what was sent
// then may yet take effect.
func (s *session) persist(ctx context.Context, t txn) (resp *clientv3.TxnResponse, lost bool, err error) {
	return s.persistFor(ctx, ctx, t)
}

// persistFor is persist for a caller that goes when ctx ends. Then it sends nothing more, but waits
// for the answer to what it has sent until requests ends.
func (s *session) persistFor(ctx, requests context.Context, t txn) (resp *clientv3.TxnResponse, lost bool, err error) {
	if ctx.Err() != nil {
		return nil, false, context.Cause(ctx)
	}
	pause := newBackoff()
	for limit := s.patience(t); ; limit = min(2*limit, s.longest()) {
		resp, err = first(requests, t.urgent || lost && s.several(), func(ctx context.Context) (*clientv3.TxnResponse, error) {
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

// first calls f once, or if both is true twice at the same time. It returns the first
// result that is not the loss of an answer. gRPC sends each request to the next of all
// servers. So of two that go out together, one passes over a server that stands still.
// Two that go out one after the other may both hit it, with other requests in between.
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

// twice calls f, and if no answer comes in time once more, by way of [first]. It is for what heartbeats need: an attempt
// may take as long as one of theirs, and counts as one of theirs if it fails.
func twice[T any](ctx context.Context, s *session, urgent bool, f func(context.Context) (T, error)) (v T, err error) {
	for _, again := range []bool{false, true} {
		limit := s.beatLimit()
		v, err = first(ctx, urgent || again, func(ctx context.Context) (T, error) {
			ctx, cancel := context.WithTimeout(ctx, limit)
			defer cancel()
			return f(ctx)
		})
		if !isLost(err) {
			break
		}
		s.failures.Add(1)
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

// several reports whether there are several servers. One that is the only one, and slow, is not sent more copies than
// needed, which would make it slower.
func (s *session) several() bool { return len(s.b.client.Endpoints()) > 1 }

// patience is how long the first attempt of t waits: longer if the last answer of the only server came late.
func (s *session) patience(t txn) time.Duration {
	if t.urgent || s.several() {
		return s.attempt()
	}
	return min(max(s.attempt(), 2*time.Duration(s.answered.Load())), s.longest())
}

// newBackoff returns the pauses between attempts.
func newBackoff() backoff.Backoff {
	return backoff.Backoff{Min: 20 * time.Millisecond, Max: time.Second}
}

func rangeOf(resp *clientv3.TxnResponse, i int) *pb.RangeResponse {
	return resp.Responses[i].GetResponseRange()
}
