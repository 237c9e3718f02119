package local

import (
	"errors"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/succession-dev/succession/backend/kit"
)

// A bell is rung when something may have changed. If it is rung again before the ring was heard,
// that is one ring.
type bell chan struct{}

func newBell() bell { return make(bell, 1) }

func (b bell) ring() { kit.Notify(b) }

// A notifier tells of changes of files and folders. It takes one inotify instance for the
// whole backend, because a user has few of them, and starts with the first session. It only says
// that something may have changed: the woken caller must look.
type notifier struct {
	logger *slog.Logger

	// adding is held while the set of watched paths changes. It is not mu, because that may
	// wait for the disk, and who is woken must not.
	adding  sync.Mutex
	inotify *inotify // nil before start, and if it could not be opened
	refused error    // why it could not be opened

	mu     sync.Mutex
	subs   map[string][]*subscription // by path
	unused []string                   // paths that may have no subscription
	due    bool                       // the unused paths must be removed
	poked  bool                       // run will be told so
	blind  int                        // number of subscriptions without inotify
	warned bool                       // the log says so
	poke   bell                       // unused or blind has changed
	stop   chan struct{}              // nil unless run runs
	ends   sync.WaitGroup             // run and what it reads
	closed bool
}

type subscription struct {
	wake  func()
	blind bool
}

// maxUnused is how many FIFOs may stay watched without a subscription.
const maxUnused = 32

func isFIFO(path string) bool { return strings.HasPrefix(filepath.Base(path), fifoPrefix) }

// lookAgain is how often subscriptions without inotify are woken.
const lookAgain = time.Second

func newNotifier(logger *slog.Logger) *notifier {
	return &notifier{logger: logger, subs: make(map[string][]*subscription), poke: newBell()}
}

// watch calls wake whenever the file or folder at path may have changed, been replaced or
// removed, until stop is called. Inside a folder only @state and @line count. If a path does not exist, its
// creation is noticed if the folder above it is watched too. The caller looks at the present state
// after watch has returned. wake must not block. watch does not fail: without inotify, wake is
// called once a second.
func (n *notifier) watch(path string, wake func()) (stop func()) {
	return n.subscribe(path, told, path, wake)
}

// watchRemoval has those who watch the folder at path woken when it is removed, also if somebody has it open: then only the folder above
// tells of that.
func (n *notifier) watchRemoval(path string) (stop func()) {
	return n.subscribe(filepath.Dir(path), unix.IN_DELETE, path, func() {})
}

// subscribe calls wake whenever inotify tells of a change at the path; changes says of which it is to tell. If the path cannot be
// watched, all who wait for the path otherwise are woken once a second.
func (n *notifier) subscribe(path string, changes uint32, otherwise string, wake func()) (stop func()) {
	n.adding.Lock()
	defer n.added()
	sub := &subscription{wake: wake}

	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return func() {}
	}
	others := n.subs[path]
	n.subs[path] = append(others, sub)
	n.mu.Unlock()

	same, err := n.add(path, changes)
	if !same && err == nil && len(others) > 0 {
		n.wake(path) // they wait for changes of what was there before
	}
	n.refuse(otherwise, err)
	return func() { n.unwatch(path, sub) }
}

// isWatched reports whether what is at the path has been watched since a call of watch. If it has not, it is from now on, and all who
// wait for the path look at the present state.
func (n *notifier) isWatched(path string) bool {
	n.adding.Lock()
	defer n.added()
	same, err := n.add(path, told)
	if !same && err == nil {
		n.wake(path)
	}
	n.refuse(path, err)
	return same || err != nil && !errors.Is(err, fs.ErrNotExist)
}

// refuse has all who wait for the path woken once a second, if err says that it cannot be watched.
func (n *notifier) refuse(path string, err error) {
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return
	}
	n.mu.Lock()
	newly := 0
	for _, sub := range n.subs[path] {
		if !sub.blind {
			sub.blind = true
			newly++
		}
	}
	n.blind += newly
	warned := n.warned
	n.warned = n.warned || newly > 0
	n.mu.Unlock()
	if newly == 0 {
		return
	}
	n.poke.ring()
	if warned { // who looks again and again would say it each time
		return
	}
	n.logger.Warn("no inotify watch; looking once a second instead (raise fs.inotify.max_user_instances or max_user_watches)",
		"path", path, "error", err)
}

// add watches what is at a path; see [inotify.add]. The caller holds adding.
func (n *notifier) add(path string, of uint32) (same bool, err error) {
	if n.inotify == nil {
		return false, n.refused
	}
	return n.inotify.add(path, of)
}

// added is called at the end of watch and isWatched.
func (n *notifier) added() {
	n.adding.Unlock()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.due { // run may have found nothing to do
		n.poke.ring()
	}
}

// start opens inotify and begins to pass on what it tells. Only the first call does
// anything.
func (n *notifier) start() {
	n.adding.Lock()
	defer n.adding.Unlock()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stop != nil || n.closed {
		return
	}
	stop := make(chan struct{})
	n.stop = stop
	n.ends.Go(func() { n.run(stop) })
	i, err := openInotify()
	if err != nil {
		n.refused = err
		return
	}
	n.inotify = i
	n.ends.Go(func() { i.read(n.changed, n.lost) })
}

// changed wakes those who wait for a change at the path.
func (n *notifier) changed(path string) {
	n.wake(path)
	if base := filepath.Base(path); base == stateName || base == lineName {
		n.wake(filepath.Dir(path))
	}
}

// lost wakes all: changes were not told, as they were too many.
func (n *notifier) lost() { n.wakeAll(func(*subscription) bool { return true }) }

// unwatch does not wait for calls that add a path, which may wait for the disk, because a candidate
// calls it that is about to lead.
func (n *notifier) unwatch(path string, sub *subscription) {
	n.mu.Lock()
	defer n.mu.Unlock()
	subs := n.subs[path]
	i := slices.Index(subs, sub)
	if n.subs[path] = slices.Delete(subs, i, i+1); len(subs) == 1 {
		delete(n.subs, path)
		n.unused = append(n.unused, path)
		// A watched FIFO gives only one event, its end, and inotify then forgets it. So a few of
		// them stay, and a handover does not compete with their removal. Nor does it compete with
		// the removal of others, which happens a moment later.
		n.due = n.due || !isFIFO(path) || len(n.unused) > maxUnused
		if n.due && !n.poked {
			n.poked = true
			time.AfterFunc(sweep, n.poke.ring)
		}
	}
	if sub.blind {
		n.blind--
	}
}

// sweep is how long after its last use the watch of a path ends.
const sweep = 20 * time.Millisecond

// removeUnused ends the watches of paths without a subscription. If a path is being added, it does
// nothing: added then makes run call it again.
func (n *notifier) removeUnused() {
	if !n.adding.TryLock() {
		return
	}
	defer n.adding.Unlock()
	n.mu.Lock()
	unused := slices.DeleteFunc(n.unused, func(path string) bool { return n.subs[path] != nil })
	n.unused, n.due, n.poked = nil, false, false
	n.mu.Unlock()
	for _, path := range unused {
		if n.inotify != nil {
			n.inotify.remove(path)
		}
	}
}

// run ends the watches of paths that nobody needs, and wakes those without inotify, until stop is closed.
func (n *notifier) run(stop <-chan struct{}) {
	var again <-chan time.Time
	for {
		if again == nil && n.anyBlind() {
			again = time.After(lookAgain*3/4 + rand.N(lookAgain/2))
		}
		select {
		case <-stop:
			return
		case <-n.poke:
			n.removeUnused()
		case <-again:
			again = nil
			n.wakeAll(func(s *subscription) bool { return s.blind })
		}
	}
}

func (n *notifier) anyBlind() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.blind > 0
}

func (n *notifier) wake(path string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, sub := range n.subs[path] {
		sub.wake()
	}
}

func (n *notifier) wakeAll(which func(*subscription) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, subs := range n.subs {
		for _, sub := range subs {
			if which(sub) {
				sub.wake()
			}
		}
	}
}

// close ends the notifier and waits for its goroutines. Afterwards nobody is woken.
func (n *notifier) close() {
	n.adding.Lock()
	defer n.adding.Unlock()
	n.mu.Lock()
	n.closed = true
	stop := n.stop
	n.stop = nil
	n.mu.Unlock()
	if stop == nil {
		return
	}
	if n.inotify != nil {
		n.inotify.close()
	}
	close(stop)
	n.ends.Wait()
	n.inotify = nil
}
