package etcd

import (
	"context"
	"errors"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// A watching is something to wait for.
type watching struct {
	create *pb.WatchCreateRequest
	// look reads the present state through the log. It reports whether that is what is
	// waited for, and the revision at which it has read.
	look func(ctx context.Context) (done bool, revision int64, err error)
	// seen takes the newest event, which is newer than what look has read, and reports
	// whether that is what is waited for. If seen is nil, look is called again.
	seen func(*mvccpb.Event) bool
}

// await blocks until w is done. The watch is open before look reads, so nothing is
// missed. It begins with the present, so it needs no revision that compaction could have
// taken away.
//
// Whatever goes wrong with the watch, await opens another one on a fresh stream and reads
// the state again: if its server has lost its leader, does not answer, or was restarted,
// or if the token of the stream has expired. It does so also if etcd refuses the watch:
// the refusal may be for the token, or for another watch on the stream. If this watch
// lacks a right, look fails, which needs the same one.
func (s *session) await(ctx context.Context, w watching) error {
	pause := newBackoff()
	signal := make(chan struct{}, 1)
	limit := s.attempt()
	for {
		sub := s.watcher.subscribe(w.create, signal)
		done, err := s.attend(ctx, sub, signal, limit, w)
		s.watcher.unsubscribe(sub)
		if done {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var broken *brokenWatch
		if !errors.As(err, &broken) {
			return err
		}
		s.watcher.renew(sub.epoch, broken.err)
		s.b.o.Logger.Debug("watch broke, opening another", "key", string(w.create.Key), "err", broken.err)
		if limit = min(2*limit, max(s.ttl, minAttempt)); broken.opened {
			limit = s.attempt()
			pause.Reset()
		}
		if err := pause.Sleep(ctx); err != nil {
			return err
		}
		if done, _, err := w.look(ctx); done || err != nil {
			return err
		}
	}
}

// A brokenWatch says that it was the watch that failed.
type brokenWatch struct {
	err    error
	opened bool // it had been confirmed
}

func (e *brokenWatch) Error() string { return "watch broke: " + e.err.Error() }

// errUnconfirmed says that the server has not confirmed a watch in time.
var errUnconfirmed = errors.New("not confirmed in time")

// attend waits with one subscription.
func (s *session) attend(ctx context.Context, sub *subscription, signal <-chan struct{}, limit time.Duration, w watching) (done bool, err error) {
	patience := time.NewTimer(limit)
	defer patience.Stop()
	looked, revision := false, int64(0)
	for {
		created, last, err := s.watcher.state(sub)
		switch {
		case err != nil:
			return false, &brokenWatch{err, created}
		case !created:
		case !looked || w.seen == nil && last != nil && last.Kv.ModRevision > revision:
			patience.Stop()
			looked = true
			if done, revision, err = w.look(ctx); done || err != nil {
				return done, err
			}
			continue // for what came meanwhile
		case last != nil && last.Kv.ModRevision > revision: // a server that lags behind tells old news
			if w.seen(last) {
				return true, nil
			}
		}
		select {
		case <-signal:
		case <-patience.C:
			return false, &brokenWatch{errUnconfirmed, false}
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}
