package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// A watcher carries all watches of a session on one stream. A waiter costs no goroutine
// beside its own. When the stream breaks, or is given up, all waiters learn of it, and go
// on together on the next stream.
//
// The client's own watcher resumes broken watches by itself, where they left off. That is
// of no use here, because a waiter must read the present state in any case. And it hides
// that a server does not answer.
//
// A stream may be dead without a sign of it, and its waiters would sleep for ever. So the
// watcher proves that it is alive, for all of them; see [watcher.probe].
type watcher struct {
	s    *session
	wake chan struct{} // has room for one: there is something to send

	mu     sync.Mutex
	epoch  uint64                  // of the stream that is open, or is the next
	queue  []*pb.WatchRequest      // to be sent on it
	subs   map[int64]*subscription // those on it
	ids    int64
	hangUp context.CancelFunc // ends the stream; nil while there is none

	sweeping bool   // unsubscribe has had wake notified for a later moment
	heard    bool   // something has come on the stream since the newest probe, if there was one
	revision int64  // the greatest that the stream's server has told
	server   uint64 // that has the stream; 0 while that is not known
}

// A subscription is one watch. The lock of the watcher guards the fields below signal.
type subscription struct {
	id     int64
	epoch  uint64
	folder bool            // a folder, and not a single key: a key that is written again does not count
	signal chan<- struct{} // has room for one: something below has changed

	sent    bool // to etcd
	created bool
	last    *mvccpb.Event // the newest that counts
	err     error         // it is over
}

func newWatcher(s *session) *watcher {
	return &watcher{s: s, wake: make(chan struct{}, 1), subs: make(map[int64]*subscription)}
}

// subscribe asks for a watch from the present on, and returns at once. signal must have
// room for one value.
func (w *watcher) subscribe(create *pb.WatchCreateRequest, signal chan<- struct{}) *subscription {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ids++
	sub := &subscription{id: w.ids, epoch: w.epoch, folder: len(create.RangeEnd) > 0, signal: signal}
	w.subs[sub.id] = sub
	w.queue = append(w.queue, &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{
		CreateRequest: &pb.WatchCreateRequest{Key: create.Key, RangeEnd: create.RangeEnd, Filters: create.Filters, WatchId: sub.id},
	}})
	kit.Notify(w.wake)
	return sub
}

// unsubscribe ends the watch. It lets a moment pass before it tells etcd, because a waiter that
// stops usually has an urgent request to send, such as its leave.
func (w *watcher) unsubscribe(sub *subscription) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if sub.epoch != w.epoch || w.subs[sub.id] != sub {
		return
	}
	delete(w.subs, sub.id)
	if !sub.sent {
		w.queue = slices.DeleteFunc(w.queue, func(r *pb.WatchRequest) bool { return r.GetCreateRequest().GetWatchId() == sub.id })
		return
	}
	w.queue = append(w.queue, &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CancelRequest{
		CancelRequest: &pb.WatchCancelRequest{WatchId: sub.id},
	}})
	if !w.sweeping {
		w.sweeping = true
		time.AfterFunc(sweep, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.sweeping = false
			kit.Notify(w.wake)
		})
	}
}

// sweep is how long after a watch has ended etcd is told.
const sweep = 20 * time.Millisecond

// state returns what has become of the watch.
func (w *watcher) state(sub *subscription) (created bool, last *mvccpb.Event, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return sub.created, sub.last, sub.err
}

// renew gives up the stream of the epoch, if that is still in use. All watches on the stream leave
// it together.
func (w *watcher) renew(epoch uint64, why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if epoch != w.epoch {
		return
	}
	w.epoch++
	w.queue = nil
	for _, sub := range w.subs {
		sub.err = why
		kit.Notify(sub.signal)
	}
	clear(w.subs)
	if w.hangUp != nil {
		w.hangUp()
		w.hangUp = nil
	}
}

// run opens a stream when there is something to send, and another one when that breaks,
// until the session ends.
func (w *watcher) run() {
	pause := newBackoff()
	for {
		select {
		case <-w.s.Context().Done():
			return
		case <-w.wake:
		}
		if w.idle() {
			continue
		}
		began := time.Now()
		epoch, err := w.serve()
		w.renew(epoch, err)
		if time.Since(began) > pause.Max {
			pause.Reset()
		}
		if pause.Sleep(w.s.Context()) != nil {
			return
		}
		kit.Notify(w.wake) // serve may have taken the signal of a watch that came meanwhile
	}
}

func (w *watcher) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.queue) == 0
}

// serve runs one stream.
func (w *watcher) serve() (epoch uint64, err error) {
	// A server that has lost its leader ends the stream. Otherwise a watch would stay for
	// ever on a server that is cut off from the others.
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(w.s.Context()))
	defer cancel()
	w.mu.Lock()
	epoch = w.epoch
	w.hangUp = cancel
	w.heard, w.revision, w.server = true, 0, 0
	w.mu.Unlock()
	limit := time.AfterFunc(w.s.attempt(), cancel)
	stream, err := w.s.b.watches.Watch(ctx, grpc.WaitForReady(true), grpc.MaxCallRecvMsgSize(maxAnswer))
	if err != nil {
		return epoch, w.s.b.classify(err)
	}
	limit.Stop()

	broken := make(chan error, 1)
	var receiving sync.WaitGroup
	receiving.Go(func() { broken <- w.receive(epoch, stream) })
	defer receiving.Wait()
	defer cancel()
	probe, answer := time.NewTimer(w.s.ttl/3), time.NewTimer(w.s.ttl)
	defer probe.Stop()
	defer answer.Stop()
	var due, next int64 // the revisions that the newest probe has to show, and the one after it
	for {
		for _, r := range w.take(epoch) {
			if err := stream.Send(r); err != nil {
				return epoch, <-broken // Send itself says only EOF
			}
		}
		select {
		case <-w.wake:
		case <-answer.C:
			if err := w.proven(due); err != nil {
				return epoch, err
			}
		case <-probe.C:
			due, next = next, w.probe()
			probe.Reset(w.s.ttl / 3)
			answer.Reset(w.s.attempt())
		case err := <-broken:
			return epoch, err
		}
	}
}

// errSilent and errBehind say why a stream was given up.
var (
	errSilent = errors.New("the server does not answer")
	errBehind = errors.New("the server lags behind the others")
)

// probe asks the server for a sign of life, if there is a watch, and returns the revision that
// this process knows of. A server tells its revision only if all watches of the stream have been
// told of everything up to it (server/storage/mvcc, progressIfSync).
func (w *watcher) probe() (known int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.subs) == 0 {
		w.heard = true // no answer is missed
		return 0
	}
	w.heard = false
	w.queue = append(w.queue, &pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{ProgressRequest: new(pb.WatchProgressRequest)}})
	return w.s.b.log.floor()
}

// proven fails if nothing has come since the newest probe by the time that the first attempt of a
// request has to be answered. It also fails if the server has not reached the revision that this
// process knew at the probe before: then a read at another server would show more than the watches
// do. While the session sends nothing else, this process knows only what the servers tell that have its two streams: so
// the heartbeats go to another server than the watches; see [keeper.part].
func (w *watcher) proven(due int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case !w.heard:
		return errSilent
	case w.revision < due:
		return errBehind
	}
	return nil
}

// on reports whether there are watches, and the server has them.
func (w *watcher) on(server uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.subs) > 0 && server != 0 && server == w.server
}

// take returns what is to be sent on the stream of the epoch.
func (w *watcher) take(epoch uint64) []*pb.WatchRequest {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.epoch != epoch {
		return nil
	}
	next := w.queue
	w.queue = nil
	for _, r := range next {
		if sub := w.subs[r.GetCreateRequest().GetWatchId()]; sub != nil {
			sub.sent = true
		}
	}
	return next
}

// receive hands out what comes, until the stream breaks.
func (w *watcher) receive(epoch uint64, stream pb.Watch_WatchClient) error {
	for {
		resp, err := stream.Recv()
		if err != nil {
			return w.s.b.classify(err)
		}
		if err := w.s.b.log.observe(0, resp.Header); err != nil {
			w.s.End(err)
			return err
		}
		if slices.ContainsFunc(resp.Events, func(ev *mvccpb.Event) bool { return ev.Kv == nil }) {
			return &lostError{errStrange}
		}
		w.hear(epoch, resp)
		if resp.Canceled && resp.WatchId == clientv3.InvalidWatchID {
			return canceled(resp) // of one of the watches; the server does not say which
		}
		w.deliver(epoch, resp)
	}
}

// hear notes that the stream of the epoch is alive.
func (w *watcher) hear(epoch uint64, resp *pb.WatchResponse) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if epoch == w.epoch {
		w.heard, w.revision = true, max(w.revision, resp.Header.GetRevision())
		w.server = resp.Header.GetMemberId()
	}
}

func (w *watcher) deliver(epoch uint64, resp *pb.WatchResponse) {
	w.mu.Lock()
	defer w.mu.Unlock()
	sub := w.subs[resp.WatchId]
	if sub == nil || epoch != w.epoch { // unsubscribed meanwhile
		return
	}
	sub.created = sub.created || resp.Created
	for _, ev := range resp.Events {
		// A pin, and a move to another lease, write a member again, which changes no line.
		again := ev.Type == clientv3.EventTypePut && ev.Kv.CreateRevision != ev.Kv.ModRevision
		if !sub.folder || !again {
			sub.last = ev
		}
	}
	if resp.Canceled {
		sub.err = canceled(resp)
		delete(w.subs, sub.id)
	}
	kit.Notify(sub.signal)
}

// canceled returns why the server has ended a watch. The server says it as text only.
func canceled(resp *pb.WatchResponse) error {
	for _, denial := range []error{rpctypes.ErrGRPCPermissionDenied, rpctypes.ErrGRPCInvalidAuthToken, rpctypes.ErrGRPCUserEmpty} {
		if strings.Contains(resp.CancelReason, rpctypes.ErrorDesc(denial)) {
			return fmt.Errorf("%w: %s", backend.ErrDenied, resp.CancelReason)
		}
	}
	return &lostError{errors.New("etcd ended the watch: " + resp.CancelReason)}
}

// watchKey asks for the events of one key.
func watchKey(key string, filters ...pb.WatchCreateRequest_FilterType) *pb.WatchCreateRequest {
	return &pb.WatchCreateRequest{Key: []byte(key), Filters: filters}
}

// watchFolder asks for the events of all keys that begin with prefix.
func watchFolder(prefix string) *pb.WatchCreateRequest {
	return &pb.WatchCreateRequest{Key: []byte(prefix), RangeEnd: []byte(clientv3.GetPrefixRangeEnd(prefix))}
}

const (
	noPut    = pb.WatchCreateRequest_NOPUT
	noDelete = pb.WatchCreateRequest_NODELETE
)
