package etcd

import (
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// Ghosts are those keys of a session at which no member may stand, and at which a request
// to create one may still take effect: its answer was lost, or its caller has gone. The session
// watches these keys until it ends, and deletes what appears. After that nothing can appear,
// because its leases are gone.
type ghosts struct {
	s      *session
	signal chan struct{} // has room for one: there may be something to do

	mu   sync.Mutex
	keys map[string]*ghost
}

// A ghost is one such key. Its fields belong to the goroutine that runs.
type ghost struct {
	sub      *subscription // nil while there is no watch
	revision int64         // when it was last known to be absent; 0 for never
	absent   chan struct{} // closed when it was known to be absent for the first time
	seen     bool          // absent is closed
	denied   kit.Denial    // of its deletion
}

func newGhosts(s *session) *ghosts {
	return &ghosts{s: s, signal: make(chan struct{}, 1), keys: make(map[string]*ghost)}
}

// add makes key one of the ghosts.
func (g *ghosts) add(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.keys[key] == nil {
		g.keys[key] = &ghost{absent: make(chan struct{})}
	}
	kit.Notify(g.signal)
}

// settle returns when the key was known to be absent once, if it is one of the ghosts, or when the session
// has ended.
func (g *ghosts) settle(key string) {
	g.mu.Lock()
	gh := g.keys[key]
	g.mu.Unlock()
	if gh == nil {
		return
	}
	select {
	case <-gh.absent:
	case <-g.s.Context().Done():
	}
}

// run deletes what appears at the ghosts, until the session ends.
func (g *ghosts) run() {
	pause := newBackoff()
	patience := time.NewTimer(g.s.attempt())
	defer patience.Stop()
	for {
		select {
		case <-g.s.Context().Done():
			return
		case <-patience.C:
			g.renew()
		case <-g.signal:
			patience.Reset(g.s.attempt())
		}
		if err := g.lay(); err == nil {
			pause.Reset()
			continue
		}
		if pause.Sleep(g.s.Context()) != nil {
			return
		}
		kit.Notify(g.signal)
	}
}

// renew gives up watches that the server has not confirmed.
func (g *ghosts) renew() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, gh := range g.keys {
		if gh.sub == nil {
			continue
		}
		if created, _, _ := g.s.watcher.state(gh.sub); !created {
			g.s.watcher.renew(gh.sub.epoch, errUnconfirmed)
		}
	}
}

// lay does what each key needs now. At first that is a watch and a deletion. When the
// watch has begun, and at each event, it is another deletion. lay fails if something must
// be tried again.
func (g *ghosts) lay() error {
	g.mu.Lock()
	keys := maps.Clone(g.keys)
	g.mu.Unlock()
	var failed error
	for key, gh := range keys {
		if gh.sub == nil {
			gh.sub = g.s.watcher.subscribe(watchKey(key, noDelete), g.signal)
			failed = errors.Join(failed, g.delete(key, gh))
			gh.revision = 0 // what comes before the watch has begun is not seen
			continue
		}
		created, last, err := g.s.watcher.state(gh.sub)
		switch {
		case err != nil:
			gh.sub = nil
			failed = errors.Join(failed, err)
		case created && (gh.revision == 0 || last != nil && last.Kv.ModRevision > gh.revision):
			failed = errors.Join(failed, g.delete(key, gh))
		}
	}
	return failed
}

// delete deletes what stands at the key. If etcd denies that for a TTL, delete ends the session.
func (g *ghosts) delete(key string, gh *ghost) error {
	begun := time.Now()
	resp, _, err := g.s.persist(g.s.Context(), txn{then: []clientv3.Op{clientv3.OpDelete(key)}})
	if gh.denied.Lasts(g.s.Context(), begun, err, g.s.ttl) { // what stands there goes with the session
		g.s.joining.Stuck(fmt.Errorf("%s: %w", key, err))
	}
	if err != nil {
		return err
	}
	if n := resp.Responses[0].GetResponseDeleteRange().Deleted; n > 0 {
		g.s.b.o.Logger.Debug("deleted a member that nobody owns", "key", key)
	}
	gh.revision = resp.Header.Revision
	if !gh.seen {
		gh.seen = true
		close(gh.absent)
	}
	return nil
}

// undo removes a member that no caller knows of. If etcd denies that, the member becomes one of the ghosts.
func (s *session) undo(m backend.Member) error {
	err := s.Leave(s.Context(), m)
	if errors.Is(err, backend.ErrDenied) {
		s.doubt(m.Line, m.Key)
		s.gone(m)
		return nil
	}
	return kit.About(m, err)
}

// disown deletes everything that appears under the name, for as long as the session lives.
func (s *session) disown(line, name string) {
	s.doubt(line, name)
	s.ghosts.add(s.b.folder(line) + name)
}
