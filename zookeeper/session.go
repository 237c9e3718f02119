package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/zookeeper/internal/wire"
)

// A session is one session of the coordinator, with a zk.Conn of its own. For callers it
// ends when its link ends, or when Close begins.
type session struct {
	*kit.Life
	kit.NoImports
	kit.NoSurvey
	kit.NoFiles
	backend *Backend
	options *Options
	link    *wire.Link
	conn    *zk.Conn
	events  <-chan zk.Event // closed when the library has stopped

	wg   sync.WaitGroup // everything that runs for the session
	jobs sync.WaitGroup // joins and pins, which Close waits for before it removes members
	kick chan struct{}  // wakes keep

	turns chan struct{} // has a value for each request under way that is not a heartbeat
	calls chan func()   // requests for runCalls

	watches watches
	lookout kit.Lookout[reading]
	backlog kit.Backlog
	joining kit.Joins[*member]
	leaving kit.Leaves

	mu      sync.Mutex
	members map[string]*member    // by path
	warm    map[*member]bool      // those that stand among the first of their line
	leading int                   // how many of them lead
	joins   map[string]*lineJoins // by line, while joins are under way there
	made    map[string]*made      // by path; see sweep.go
	down    bool                  // no goroutine may be started any more
}

var _ backend.Session = (*session)(nil)

// newSession returns a session that is about to be established.
func newSession(b *Backend) (*session, error) {
	s := &session{
		backend: b,
		options: b.options,
		link:    wire.New(b.options.wire(), &b.zxids),
		kick:    make(chan struct{}, 1),
		members: make(map[string]*member),
		turns:   make(chan struct{}, maxTurns),
		calls:   make(chan func()),
		warm:    make(map[*member]bool),
		joins:   make(map[string]*lineJoins),
		made:    make(map[string]*made),
	}
	s.watches.armed = make(map[wire.WatchKey]*watch)
	var err error
	s.conn, s.events, err = zk.Connect(b.servers, b.options.TTL,
		zk.WithDialer(s.link.Dial),
		zk.WithHostProvider(s.link),
		zk.WithEventCallback(s.link.Event),
		zk.WithLogger(libraryLog{b.options.Logger}),
		// The longest request has a record and its path, or a pinned member and a header.
		zk.WithMaxConnBufferSize(backend.MaxRecord+64<<10),
	)
	if err != nil {
		s.link.Kill(err)
		return nil, err
	}
	s.Life = b.sessions.NewLife(kit.Rules{Over: s.link.Ended, Ending: s.link.Lease.End, Release: s.release, Explain: s.explain, Stands: s.standing})
	s.joining = kit.Joins[*member]{Go: s.job, Ended: s.Ended, Backlog: &s.backlog, Undo: s.undo, End: s.link.Kill}
	s.leaving = kit.Leaves{Go: s.spawn, Ended: s.link.Ended, Backlog: &s.backlog, Context: s.link.Context, Alone: s.leaveAlone, Together: s.leaveTogether}
	s.lookout.Life, s.lookout.Read = s.Life, func(line string) (reading, error) {
		return s.readPlaces(s.Context(), line, func() {})
	}
	s.link.Lease.Confirmed = s.Beat
	context.AfterFunc(s.link.Context(), func() { s.End(s.link.Ended()) })
	return s, nil
}

// tearDown waits until all goroutines of the session have ended. Its link is dead.
func (s *session) tearDown() {
	parked := s.link.Parked()
	for open := true; open; {
		select {
		case <-parked:
			parked = nil
			s.conn.Close()
		case _, open = <-s.events:
		}
	}
	s.mu.Lock()
	s.down = true
	s.mu.Unlock()
	s.conn.Close() // ends calls that the library has not answered
	s.wg.Wait()
}

// spawn runs f in a goroutine that tearDown waits for. It reports false, and does not run
// f, once tearDown has begun to wait.
func (s *session) spawn(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return false
	}
	s.wg.Go(f)
	return true
}

// wake makes keep look again at what is to be done.
func (s *session) wake() { kit.Notify(s.kick) }

// abandon ends a session that could not be opened, before any caller has it. It does not
// block.
func (s *session) abandon(why error) {
	if s.link.IsReady() {
		s.End(why) // which also asks the server to end the session
		return
	}
	s.link.Kill(why)
}

// TTL implements [backend.Session].
func (s *session) TTL() time.Duration {
	_, ttl := s.link.State()
	return ttl
}

// release ends the session on the servers, and tears it down. It first deletes the members
// one by one, and repeats each delete until it is answered: if the close request gets no answer, it
// is not known whether it was carried out. If no server can be reached for a session time, the
// servers have ended the session by themselves.
func (s *session) release(ctx context.Context) error {
	if id, _ := s.link.State(); id == 0 {
		s.link.Kill(errors.New("it was closed before a server had opened it"))
	}
	why := s.link.Ended()
	if why == nil {
		ctx, cancel := context.WithTimeout(ctx, s.TTL())
		defer cancel()
		why = s.clear(ctx)
		closed := make(chan struct{})
		s.spawn(func() {
			defer close(closed)
			s.conn.Close()
		})
		select {
		case <-closed:
		case <-ctx.Done():
		}
		s.link.Kill(errors.New("it was closed"))
	}
	s.tearDown()
	s.mu.Lock()
	defer s.mu.Unlock()
	left := 0
	for _, o := range s.members {
		if !o.pinned {
			left++
		}
	}
	if s.link.Over() || left == 0 && !errors.Is(why, errUnsettled) {
		return nil
	}
	return why
}

func (s *session) standing() string { return fmt.Sprintf("the session's %v have passed", s.TTL()) }

var errUnsettled = errors.New("a join was not settled")

// clear removes the members that are not pinned, once no join or pin is under way.
func (s *session) clear(ctx context.Context) error {
	joined := make(chan struct{})
	s.spawn(func() {
		s.jobs.Wait()
		close(joined)
	})
	select {
	case <-joined:
	case <-ctx.Done():
		return errUnsettled
	case <-s.link.Context().Done():
		return s.link.Ended()
	}
	members := s.owned()
	errs := make(chan error, len(members))
	for _, o := range members {
		if !s.spawn(func() { errs <- s.leaving.Do(ctx, o.member()) }) {
			errs <- s.link.Ended()
		}
	}
	var first error
	for range members {
		if err := <-errs; err != nil && first == nil {
			first = err
		}
	}
	return first
}
