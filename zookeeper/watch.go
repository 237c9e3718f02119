package zookeeper

import (
	"context"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/zookeeper/internal/wire"
)

// watches keeps one registration for each path and kind, which all its waiters share. The library
// cannot take a registration back: if each call made a new one, they would pile up until the znode
// changes.
type watches struct {
	mu    sync.Mutex
	armed map[wire.WatchKey]*watch
	sweep int // above this size, watches that have fired are dropped
}

// A watch is one registration.
type watch struct {
	users int           // calls that use it now; watches.mu guards it
	turn  chan struct{} // full while a call makes the registration, or reads its state
	fired <-chan zk.Event
	seen  sight // what was there when the watch was registered, and still is until it fires
}

func (w *watches) acquire(key wire.WatchKey) *watch {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.armed) > w.sweep {
		for k, e := range w.armed {
			w.drop(k, e)
		}
		w.sweep = 2*len(w.armed) + 64
	}
	e := w.armed[key]
	if e == nil {
		e = &watch{turn: make(chan struct{}, 1)}
		w.armed[key] = e
	}
	e.users++
	return e
}

func (w *watches) release(key wire.WatchKey, e *watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e.users--
	w.drop(key, e)
}

// drop forgets a watch that has fired and that nobody uses.
func (w *watches) drop(key wire.WatchKey, e *watch) {
	select {
	case e.turn <- struct{}{}:
		if e.users == 0 && !e.live() {
			delete(w.armed, key)
		}
		<-e.turn
	default:
	}
}

// known returns what key names without a request, if a watch on it is registered and has not
// fired. That is at least as fresh as every answer that the session has had: a server gives
// notice of a change before any answer that comes after the change (zookeeperProgrammers.md,
// "What ZooKeeper Guarantees about Watches"), and the library handles both in that order. No
// change goes unnoticed with a connection that breaks, because its watches fire then.
func (w *watches) known(key wire.WatchKey) (v watched, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.armed[key]
	if e == nil {
		return v, false
	}
	select {
	case e.turn <- struct{}{}:
		defer func() { <-e.turn }()
		return watched{e.seen, e.fired}, e.live()
	default:
		return v, false
	}
}

// without notes that the record was absent while the watch with that channel was registered.
func (w *watches) without(key wire.WatchKey, fired <-chan zk.Event, record string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.armed[key]
	if e == nil {
		return
	}
	select {
	case e.turn <- struct{}{}:
		if e.fired == fired && e.live() {
			e.seen.lacks = record
		}
		<-e.turn
	default:
	}
}

// live reports whether the watch is registered and has not fired. The caller has filled
// turn.
func (e *watch) live() bool {
	if e.fired == nil || len(e.fired) > 0 { // the event is for the waiter
		return false
	}
	select {
	case <-e.fired:
		e.fired = nil
		return false
	default:
		return true
	}
}

// A sight is what a look has found.
type sight struct {
	node
	names   []string
	missing bool
	lacks   string // a record that was absent at a moment since; see [join.absent]
}

// look reads what key names. It also returns a channel that has at most one event, and is
// closed when what was read may have changed. The channel is nil if nothing is there to
// watch. When a connection breaks, all channels are closed (see internal/wire).
func (s *session) look(ctx context.Context, key wire.WatchKey) (sight, <-chan zk.Event, error) {
	e := s.watches.acquire(key)
	defer s.watches.release(key, e)
	v, err := kit.Retry(ctx, pauses(), isLost, func(ctx context.Context) (watched, error) { return s.lookOnce(ctx, key, e) })
	return v.sight, v.fired, err
}

// follow looks at the znode, and again whenever that may have changed, until check reports true
// or fails. As long as the znode is missing, it waits for its coming.
func (s *session) follow(ctx context.Context, path string, kind wire.WatchKind, check func(sight) (done bool, err error)) error {
	for {
		v, fired, err := s.look(ctx, wire.WatchKey{Path: path, Kind: kind})
		if err != nil {
			return err
		}
		if done, err := check(v); done || err != nil {
			return err
		}
		if v.missing {
			if v, fired, err = s.look(ctx, wire.WatchKey{Path: path, Kind: wire.WatchExists}); err != nil {
				return err
			}
			if !v.missing || fired == nil {
				continue // it came into being between two looks
			}
		}
		select {
		case <-fired:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (s *session) lookOnce(ctx context.Context, key wire.WatchKey, e *watch) (watched, error) {
	glance := func() (sight, error) {
		return do(ctx, s, func(c *zk.Conn) (sight, error) {
			v, _, err := see(c, key, false)
			return v, err
		})
	}
	select {
	case e.turn <- struct{}{}:
	default:
		// Another call is making the registration. If the znode is missing, there will be
		// none, unless the registration is for its coming. So many who look at once need not
		// wait for each other to find that.
		if key.Kind != wire.WatchExists {
			if v, err := glance(); err != nil || v.missing {
				return watched{sight: v}, err
			}
		}
		select {
		case e.turn <- struct{}{}:
		case <-ctx.Done():
			return watched{}, context.Cause(ctx)
		}
	}
	if e.live() {
		fired := e.fired
		<-e.turn
		v, err := glance()
		return watched{v, fired}, err
	}
	// The registration is kept even if the caller goes meanwhile. The turn is given up once, however often it is tried.
	register := renewed(s, func(c *zk.Conn) (watched, error) {
		v, fired, err := see(c, key, true)
		e.seen, e.fired = v, fired
		return watched{v, fired}, err
	})
	c, err := inTurn(ctx, s, func(c *zk.Conn) (watched, error) {
		defer func() { <-e.turn }()
		return register(c)
	})
	if err != nil {
		<-e.turn
		return watched{}, err
	}
	return c.wait(ctx)
}

type watched struct {
	sight
	fired <-chan zk.Event
}

// see reads what key names, and registers for a notice if arm is set. It is no error that
// the znode is missing.
func see(c *zk.Conn, key wire.WatchKey, arm bool) (v sight, fired <-chan zk.Event, err error) {
	switch {
	case key.Kind == wire.WatchData && arm:
		v.data, v.stat, fired, err = c.GetW(key.Path)
	case key.Kind == wire.WatchData:
		v.data, v.stat, err = c.Get(key.Path)
	case key.Kind == wire.WatchChildren && arm:
		v.names, v.stat, fired, err = c.ChildrenW(key.Path)
	case key.Kind == wire.WatchChildren:
		v.names, v.stat, err = c.Children(key.Path)
	case arm:
		var there bool
		there, v.stat, fired, err = c.ExistsW(key.Path)
		v.missing = !there
	default:
		var there bool
		there, v.stat, err = c.Exists(key.Path)
		v.missing = !there
	}
	if err == zk.ErrNoNode {
		v.missing, err = true, nil
	}
	return v, fired, need(mayRead, key.Path, err)
}
