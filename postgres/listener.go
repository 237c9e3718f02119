package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// A listener has the channels on which a session listens, and the waiters for their notices. The
// goroutine that has the connection calls changes, work and rest in turns; any goroutine may call
// the other methods.
type listener struct {
	prefix string      // of the names of channels
	own    atomic.Bool // the session should check itself: its row may have gone, or the connection is new
	polled atomic.Bool // notices do not arrive: waiters look again and again

	mu        sync.Mutex
	served    bool // the connection is there, and the server tells of what is marked so below
	listening bool // to the session's own channel
	channels  map[string]*channel
	waits     int // number of waiters for channels
	far       int // number of waiters that need no notices
	changed   bool
	jobs      []job
	came      chan struct{} // holds one if there are jobs
	told      bool          // a waiter was just woken, and may soon have a job for the connection
	resting   net.Conn      // the connection while it waits for notices, and nil otherwise
	until     time.Time     // until when it waits
	lingers   bool          // the connection waits for jobs
}

// A channel is one that has, or had, a waiter.
type channel struct {
	asked     bool // LISTEN is on its way
	listening bool
	waiting   map[chan struct{}]bool
}

// A job is a request that the connection is to send. done has room for one.
type job struct {
	ask  func(*conn) (answer, error)
	done chan result
}

type result struct {
	a   answer
	err error
}

// The names of channels, without the prefix; schema.sql makes the same ones.
func memberChannel(m backend.Member) string { return "m" + strconv.FormatUint(m.Position, 10) }
func lineChannel(line string) string        { return "l" + digest(line) }
func recordChannel(name string) string      { return "r" + digest(name) }

// digest is the function of that name in schema.sql.
func digest(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:16])
}

// quiet reports whether all waiters are far, so that the server need not notify.
func (l *listener) quiet() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.quietLocked()
}

func (l *listener) quietLocked() bool { return l.far > 0 && l.waits == 0 }

// retreat counts a waiter that needs no notices, until leave is called.
func (l *listener) retreat() (leave func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.far++
	l.hushLocked()
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.far--
		l.changed = l.changed || !l.listening // to hear of its own end again; that has time
	}
}

// hushLocked makes the server stop all notices if no waiter needs them.
func (l *listener) hushLocked() {
	if l.quietLocked() && l.listening {
		l.changed = true
		l.wake()
	}
}

// enter has w told of the notices of the channels, until leave is called.
func (l *listener) enter(w chan struct{}, names []string) (leave func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.channels == nil {
		l.channels = make(map[string]*channel)
	}
	for _, name := range names {
		c := l.channels[name]
		if c == nil {
			c = &channel{waiting: make(map[chan struct{}]bool)}
			l.channels[name] = c
		}
		c.waiting[w] = true
		l.changed = l.changed || !c.listening
	}
	l.waits++
	l.wake()
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, name := range names {
			c := l.channels[name]
			if delete(c.waiting, w); len(c.waiting) == 0 && !c.listening && !c.asked {
				delete(l.channels, name) // what the server tells of, it tells of until the next change
			}
		}
		l.waits--
		l.hushLocked()
	}
}

// poll says that notices may never arrive. Who waits looks, and then again and again.
func (l *listener) poll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.polled.Swap(true) {
		return
	}
	for _, c := range l.channels {
		c.tell()
	}
}

// wake ends the rest of the connection if there is something to do for it. The caller holds the lock.
func (l *listener) wake() {
	if l.changed && !l.polled.Load() || len(l.jobs) > 0 {
		l.endRest()
	}
}

// stir makes the session check itself now.
func (l *listener) stir() {
	l.own.Store(true)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endRest()
}

// endRest ends the rest of the connection. The caller holds the lock.
func (l *listener) endRest() {
	if l.resting != nil {
		_ = l.resting.SetReadDeadline(time.Unix(1, 0))
		l.resting = nil
	}
}

// rest is called before the connection waits for notices, and rise after it. What waits is the read, which has a deadline
// and no context: a context would have a goroutine of its own each time, which would have to run first. rest returns false if there is
// something to do.
func (l *listener) rest(conn net.Conn, until time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = conn.SetReadDeadline(until)
	l.resting, l.until = conn, until
	l.wake()
	return l.resting != nil && !l.own.Load()
}

// rise ends the rest. It reports whether a read that has failed did so because the rest was over: connections report that with
// different errors.
func (l *listener) rise(conn net.Conn) (over bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	over = l.resting == nil || !time.Now().Before(l.until)
	l.resting = nil
	_ = conn.SetReadDeadline(time.Time{})
	return over
}

// linger waits for the job of a waiter that was just woken, for 2 ms at most: to rest, and to end the rest for that job, would take
// longer.
func (l *listener) linger() {
	l.mu.Lock()
	l.lingers, l.told = l.told, false
	lingers := l.lingers
	l.mu.Unlock()
	if !lingers {
		return
	}
	select {
	case <-l.came:
	case <-time.After(2 * time.Millisecond):
	}
	l.mu.Lock()
	l.lingers = false
	l.mu.Unlock()
}

// ready reports whether the server tells of all these channels.
func (l *listener) ready(names []string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !slices.ContainsFunc(names, func(name string) bool { return !l.channels[name].listening })
}

// tell is called with the name of the channel of a notice.
func (l *listener) tell(name string) {
	name, ok := strings.CutPrefix(name, l.prefix)
	if !ok || name == "" {
		return
	}
	if name[0] == 's' { // it listens to no other
		l.own.Store(true)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.channels[name]; c != nil {
		c.tell()
		l.told = l.told || len(c.waiting) > 0
	}
}

func (c *channel) tell() {
	for w := range c.waiting {
		kit.Notify(w)
	}
}

// deaf says that the connection is broken.
func (l *listener) deaf() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, j := range l.jobs {
		j.done <- result{err: errNotSent}
	}
	l.jobs, l.served, l.listening, l.changed, l.resting = nil, false, false, true, nil
	for _, c := range l.channels {
		c.asked, c.listening = false, false
	}
	l.own.Store(true)
}

// errNotSent says that the connection broke before it could send a request.
var errNotSent = fmt.Errorf("%w: the connection is broken", backend.ErrUnavailable)

// work sends what waits for the connection. When the time is due it leaves the rest for the next turn.
func (l *listener) work(c *conn, due time.Time) {
	l.mu.Lock()
	jobs := l.jobs
	l.jobs = nil
	select {
	case <-l.came:
	default:
	}
	l.mu.Unlock()
	for i, j := range jobs {
		if c.IsClosed() {
			j.done <- result{err: errNotSent}
			continue
		}
		if !time.Now().Before(due) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.jobs = append(jobs[i:], l.jobs...)
			kit.Notify(l.came)
			return
		}
		a, err := j.ask(c)
		j.done <- result{a, err}
	}
}

// take has the connection send a request, if it has nothing to do, and waits for the answer.
func (l *listener) take(ask func(*conn) (answer, error)) (a answer, err error, taken bool) {
	l.mu.Lock()
	if l.resting == nil && !l.lingers {
		l.mu.Unlock()
		return a, nil, false
	}
	done := l.addLocked(ask)
	l.mu.Unlock()
	r := <-done
	return r.a, r.err, r.err != errNotSent
}

// add has the connection send a request when it comes to it.
func (l *listener) add(ask func(*conn) (answer, error)) <-chan result {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.addLocked(ask)
}

func (l *listener) addLocked(ask func(*conn) (answer, error)) <-chan result {
	done := make(chan result, 1)
	if !l.served && !l.polled.Load() {
		done <- result{err: errNotSent}
		return done
	}
	l.jobs = append(l.jobs, job{ask, done})
	kit.Notify(l.came)
	l.wake()
	return done
}

// changes returns the statements that make the server notify on exactly the channels with waiters,
// and a func to call when it does. The func is nil if nothing has to change.
func (l *listener) changes(own string) (script string, done func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.changed && l.served {
		return "", nil
	}
	var b strings.Builder
	do := func(verb, name string) { b.WriteString(verb + ` "` + l.prefix + name + `";`) }
	listening := !l.quietLocked()
	switch {
	case listening && !l.listening:
		do("LISTEN", own)
	case !listening && l.listening:
		do("UNLISTEN", own)
	}
	var now []*channel
	for name, c := range l.channels {
		switch {
		case len(c.waiting) == 0:
			do("UNLISTEN", name)
			delete(l.channels, name)
		case !c.listening:
			do("LISTEN", name)
			c.asked = true
			now = append(now, c)
		}
	}
	l.changed = false
	return b.String(), func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.served, l.listening = true, listening
		for _, c := range now {
			c.asked, c.listening = false, true
			c.tell() // to look for what has happened before
		}
	}
}

// listen makes the server notify on the channels with waiters. If it fails, the connection cannot
// be used again.
func (s *session) listen(c *conn) error {
	if s.listener.polled.Load() {
		return nil
	}
	script, done := s.listener.changes("s" + s.id)
	if script != "" {
		ctx, cancel := bounded(s.Context(), s.b.o.TTL/4)
		defer cancel()
		if _, err := c.script(ctx, script); err != nil {
			return err
		}
	}
	if done != nil {
		done()
	}
	return nil
}

// look sends a request that only reads, on the connection that listens: it has just had a notice,
// so it is free at once. If that fails, look sends it again on another one.
func (s *session) look(ctx context.Context, function string, args ...any) (answer, error) {
	q := &request{function: function, args: args}
	done := s.listener.add(func(c *conn) (answer, error) { return s.ask(c, s.b.o.TTL/4, q) })
	select {
	case r := <-done:
		if r.err == nil || !lost(r.err) {
			return r.a, r.err
		}
	case <-ctx.Done():
		return answer{}, context.Cause(ctx)
	}
	return kit.Await(ctx, s.Life, func() (answer, error) { return s.again(ctx, q) })
}

// watch calls look when the server tells of the channels, and again after each notice, until it
// says that it is done. at, which may be nil, is what look has found of how far the head of the
// line is.
func (s *session) watch(ctx context.Context, names []string, at *far, look func() (done bool, err error)) error {
	w := make(chan struct{}, 1)
	listens, leave := true, s.listener.enter(w, names)
	defer func() { leave() }()
	for {
		polled := s.listener.polled.Load()
		if polled || !listens || s.listener.ready(names) {
			if done, err := look(); done || err != nil {
				return err
			}
		}
		polled = polled || s.listener.polled.Load()
		if at != nil && at.now == listens {
			leave()
			if listens = !listens; listens {
				leave = s.listener.enter(w, names)
				continue
			}
			leave = s.listener.retreat()
		}
		var again <-chan time.Time
		switch {
		case at != nil && (at.depth >= near || polled && at.depth > 0):
			again = time.After(at.pause())
		case polled:
			again = time.After(max(s.b.o.TTL/40, 20*time.Millisecond))
		}
		select {
		case <-w:
		case <-again:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
