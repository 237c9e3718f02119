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
	create []*pb.WatchCreateRequest
	// look reads the present state through the log. It reports whether that is what is
	// waited for, and the revision at which it has read.
	look func(ctx context.Context) (done bool, revision int64, err error)
	// seen says what the newest event of a watch, which is newer than what look has read,
	// means. If seen is nil, each event means that look is called again.
	seen func(*mvccpb.Event) verdict
}

// A verdict says what an event means for the waiter.
type verdict int

const (
	ignore verdict = iota // nothing
	look                  // perhaps what is waited for: look tells
	done                  // what is waited for
)

// await blocks until w is done. The watches are open before look reads, so nothing is
// missed. They begin with the present, so they need no revision that compaction could have
// taken away.
//
// If anything goes wrong with a watch, await opens another one on a fresh stream and reads the
// state again: if its server has lost its leader, does not answer, or was restarted, or if the
// token of the stream has expired. It does so also if etcd refuses the watch: the refusal may be
// for the token, or for another watch on the stream. If this watch lacks a right, look fails, which
// needs the same one.
func (s *session) await(ctx context.Context, w watching) error {
	pause := newBackoff()
	signal := make(chan struct{}, 1)
	limit := s.attempt()
	for {
		subs := make([]*subscription, len(w.create))
		for i, create := range w.create {
			subs[i] = s.watcher.subscribe(create, signal)
		}
		done, err := s.attend(ctx, subs, signal, limit, w)
		for _, sub := range subs {
			s.watcher.unsubscribe(sub)
		}
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
		s.watcher.renew(subs[0].epoch, broken.err)
		s.b.o.Logger.Debug("watch broke, opening another", "key", string(w.create[0].Key), "err", broken.err)
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

// attend waits with one subscription for each watch.
func (s *session) attend(ctx context.Context, subs []*subscription, signal <-chan struct{}, limit time.Duration, w watching) (bool, error) {
	patience := time.NewTimer(limit)
	defer patience.Stop()
	looked, revision := false, int64(0)
	for {
		open, means := true, ignore
		for _, sub := range subs {
			created, last, err := s.watcher.state(sub)
			if err != nil {
				return false, &brokenWatch{err, created}
			}
			open = open && created
			if looked && last != nil && last.Kv.ModRevision > revision { // a server that lags behind sends old events
				means = max(means, w.means(last))
			}
		}
		switch {
		case !open:
		case !looked || means == look:
			patience.Stop()
			looked = true
			var met bool
			var err error
			if met, revision, err = w.look(ctx); met || err != nil {
				return met, err
			}
			continue // for events that came meanwhile
		case means == done:
			return true, nil
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

func (w *watching) means(ev *mvccpb.Event) verdict {
	if w.seen == nil {
		return look
	}
	return w.seen(ev)
}
