package memory

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/backend/kit"
)

// driver is the scheme of URLs, and what errors call this driver.
const driver kit.Scheme = "memory"

func init() {
	coordinator.Register(coordinator.Driver{Scheme: string(driver), Open: open, Example: "memory:test", About: "a coordinator inside of this process", InProcess: true})
}

// named are the coordinators that URLs name. They live as long as the process: a server
// outlives its clients, too.
var named struct {
	sync.Mutex
	coordinators map[string]*Coordinator
}

// Named returns the coordinator that is called name in URLs of this process. If there is
// none yet, it makes one with the options o, which may be nil. It fails with [backend.ErrInvalid]
// if there is one with another TTL than o has.
//
// A test that gives its program a URL uses Named to put faults into the coordinator behind
// it. A client that was opened by URL is a [*Backend].
func Named(name string, o *Options) (*Coordinator, error) {
	if err := backend.CheckName(name); err != nil {
		return nil, fmt.Errorf("memory: coordinator: %w", err)
	}
	named.Lock()
	defer named.Unlock()
	c := named.coordinators[name]
	if c == nil {
		c = New(o)
		if named.coordinators == nil {
			named.coordinators = make(map[string]*Coordinator)
		}
		named.coordinators[name] = c
		return c, nil
	}
	if o != nil && o.TTL > 0 && o.TTL != c.ttl {
		return nil, fmt.Errorf("memory: %w: coordinator %s has ttl=%v in this process; leave ttl=%v out, or take another name",
			backend.ErrInvalid, name, c.ttl, o.TTL)
	}
	return c, nil
}

// open opens memory:name?ttl=10s&client=web-1.
func open(u *coordinator.URL) (backend.Backend, error) {
	ttl := u.Duration("ttl", 0)
	client := u.Text("client", "")
	if err := u.Err(); err != nil {
		return nil, err
	}
	if len(u.Hosts) > 0 || u.Path == "" || u.Path[0] == '/' {
		return nil, fmt.Errorf("%w URL %s: want memory:NAME, such as memory:test", backend.ErrInvalid, u)
	}
	var o *Options
	if ttl > 0 {
		o = &Options{TTL: ttl}
	}
	c, err := Named(u.Path, o)
	if err != nil {
		return nil, err
	}
	return c.Client(client), nil
}

// closeBound is the longest time that Close waits for the coordinator.
const closeBound = time.Second

// A Backend is one client of a [Coordinator], with a connection of its own. A test can put
// faults into that connection: see [Backend.Cut] and the others. A Backend is safe for
// concurrent use.
//
// The coordinator's lock guards all its fields, because the two live in one process. A Backend
// knows of the coordinator only what answers have told it.
type Backend struct {
	c    *Coordinator
	name string

	up, down pipe
	broken   bool    // the connection is dead, and the client has made no new one yet
	gone     bool    // no connection any more: the client is closed or killed
	calls    []*call // unanswered, in the order of sending

	closed  bool
	session *session // the live one, or nil
	opening *opening // while one is being opened
	seen    uint64   // the highest index of the log in any answer

	loseRequest, loseAnswer losses
	hold                    *hold // of the newest HoldBack

	lag      time.Duration // how far its server lags behind; see Lag
	answered uint64        // up to which index of the log it has been told what has happened

	rate  float64 // how much faster the coordinator's clock is; see Drift
	reset error   // stays for good, because nobody knows how far the log had really come

	severed int         // counts requests while each breaks the connection (Sever); otherwise 0
	again   *time.Timer // connects anew after such a request
	hidden  bool        // no connection can be made
}

var _ backend.Backend = (*Backend)(nil)

// Name returns the name that the client was made with.
func (b *Backend) Name() string { return b.name }

// An opening is the request for a new session. All callers that want a session meanwhile wait for
// the same one.
type opening struct {
	id    uint64
	call  *call
	timer *time.Timer
	done  chan struct{} // closed when session or err is set
	ended bool

	session *session
	err     error
}

// Session returns the live session, or opens one; see [backend.Backend]. It blocks until the
// coordinator has answered. After a session time without an answer it fails with
// [backend.ErrUnavailable].
func (b *Backend) Session(ctx context.Context) (backend.Session, error) {
	s, err := b.live(ctx)
	if err != nil {
		return nil, driver.Wrap(string(OpOpen), "", err)
	}
	return s, nil
}

func (b *Backend) live(ctx context.Context) (*session, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	b.c.lock()
	switch {
	case b.closed:
		b.c.unlock()
		return nil, backend.ErrClosed
	case b.reset != nil:
		b.c.unlock()
		return nil, b.reset
	case b.session != nil && b.session.alive() == nil:
		s := b.session
		b.c.unlock()
		return s, nil
	case b.opening == nil:
		b.open()
	}
	o := b.opening
	b.c.unlock()
	select {
	case <-o.done:
		return o.session, o.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// open asks for a new session. The client chooses the session's id: so it can repeat the
// request, or take it back, without having had an answer.
func (b *Backend) open() {
	id := b.c.newID()
	o := &opening{id: id, done: make(chan struct{})}
	o.call = &call{op: OpOpen}
	o.call.apply = func() (any, error) {
		b.c.grant(b, id)
		return b.c.store.index, nil
	}
	o.call.then = func(v any, err error) {
		switch {
		case err != nil || o.ended:
		case time.Since(o.call.sent) >= b.c.ttl:
			b.fail(o, b.tooLate())
		case v.(uint64) < b.seen:
			b.fail(o, b.wentBack(v.(uint64)))
		default:
			b.opened(o)
		}
	}
	o.timer = time.AfterFunc(b.c.ttl, func() {
		b.c.lock()
		defer b.c.unlock()
		b.fail(o, b.tooLate())
	})
	b.opening = o
	b.send(o.call)
}

func (b *Backend) tooLate() error {
	return fmt.Errorf("%w: no answer within %v; the client is cut off, or the coordinator stands still", backend.ErrUnavailable, b.c.ttl)
}

func (b *Backend) opened(o *opening) {
	o.ended = true
	o.timer.Stop()
	o.session = newSession(b, o.id, o.call.sent)
	b.opening, b.session = nil, o.session
	close(o.done)
}

// fail ends the opening. If the coordinator has granted the session, or will yet, fail takes
// it back.
func (b *Backend) fail(o *opening, err error) {
	if o.ended {
		return
	}
	b.abandon(o, err)
	b.hangUp()
	b.release(o.id)
}

// abandon ends the opening for its waiters.
func (b *Backend) abandon(o *opening, err error) {
	o.ended, o.err = true, err
	o.timer.Stop()
	b.opening = nil
	b.finish(o.call, nil, err)
	close(o.done)
}

// Close ends the session, if there is one, and the connection. It waits for the coordinator
// for a second at most, on the clock of package time. If there is no answer by then, the
// error says that the members stand until the coordinator ends the session. To close twice
// is not an error.
func (b *Backend) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeBound)
	defer cancel()

	b.c.lock()
	b.closed = true
	if b.opening != nil {
		b.fail(b.opening, backend.ErrClosed)
	}
	if b.session != nil {
		b.session.end(fmt.Errorf("%w: the backend was closed", backend.ErrSessionEnded), false)
	}
	last := slices.Clone(b.calls) // only releases of sessions: all other calls have failed
	b.c.unlock()

	var err error
	for _, cl := range last {
		if _, err = wait(ctx, b.c, cl); err != nil {
			err = driver.Wrap(string(OpClose), "", errStands)
			break
		}
	}
	b.c.lock()
	defer b.c.unlock()
	b.vanish()
	return err
}

// errStands is the error of Close if the coordinator has not answered.
var errStands = fmt.Errorf("%w: what the session joined stands until the coordinator ends the session by itself", backend.ErrUnavailable)

// vanish ends the connection for good, without a word to the coordinator.
func (b *Backend) vanish() {
	b.gone = true
	b.discard()
	if b.again != nil {
		b.again.Stop()
	}
	for _, cl := range slices.Clone(b.calls) {
		b.finish(cl, nil, errStands)
	}
	b.c.clients = slices.DeleteFunc(b.c.clients, func(o *Backend) bool { return o == b })
	b.c.lagChanged()
}
