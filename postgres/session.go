package postgres

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/backend/kit/clock"
	"github.com/succession-dev/succession/backend/kit/lease"
)

// A session is a row of the database. It ends when its deadline passes, when the row has gone, or
// when it is closed, whichever is first.
type session struct {
	kit.AlwaysFresh // there is one primary
	kit.NoDates
	kit.NoFiles
	*kit.Life
	b   *Backend
	id  string
	era string // of the server that has opened it

	lease   lease.Lease
	number  atomic.Int64          // of its newest heartbeat that was acknowledged
	joins   atomic.Int64          // how many joins it has begun
	problem atomic.Pointer[error] // why there was no connection last; nil if a heartbeat was acknowledged since
	backlog kit.Backlog
	joining kit.Joins[backend.Joined]

	led      atomic.Bool // it was first in a line at some time
	observes atomic.Bool // its role must not say that an era has begun
	pins     kit.Pins
	main     *conn         // only run uses it, until ran is closed; nil if there is none
	ran      chan struct{} // closed when run has returned
	spread   float64       // from 0 to 1, so that sessions differ
	listener listener
	observer observer
}

var _ backend.Session = (*session)(nil)

// open opens a session. If the answer is lost, it is called again, and other sessions end the first.
func (b *Backend) open(ctx context.Context) (_ kit.Session, err error) {
	defer func() {
		if lost(err) {
			b.wire.turn.Add(1) // another host comes first
		}
	}()
	s := &session{b: b, id: textOf(randomUUID()), spread: rand.Float64(), ran: make(chan struct{})}
	s.listener.prefix, s.listener.came = b.o.Schema+".", make(chan struct{}, 1)
	c, err := b.wire.dial(ctx, s.listener.tell)
	var pg *pgconn.PgError
	if b.id != "" && errors.As(err, &pg) && pg.Code == stateNoDatabase {
		return nil, fmt.Errorf("%w: the database is not there any more, perhaps to be restored: %w", backend.ErrUnavailable, pg)
	}
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			c.kill()
		}
	}()
	if err = b.stuck(ctx, c); err != nil {
		return nil, err
	}
	b.asked[address(c.PgConn)] = c.pid
	sent := clock.Now()
	rows, err := c.query(ctx, b.call("open", 3), s.id, b.o.TTL.Milliseconds(), b.format)
	if errors.Is(err, errNoSchema) {
		if rows, sent, err = b.make(ctx, c, s.id, err); err != nil {
			return nil, err
		}
	}
	if err != nil {
		return nil, err
	}
	r := rows[0]
	why, format, oldest := r.text(), r.int(), r.int()
	if err = r.err(); err == nil && why != "" {
		err = unfit(b.format, format, oldest, b.o.Schema)
	}
	if err != nil {
		return nil, err
	}
	id, life, number, top, now, pid, lacks := r.uuid(), r.text(), r.int(), r.int(), r.int(), r.int(), r.text()
	if err = r.err(); err == nil {
		err = b.known(id, life, top, now)
	}
	if err == nil {
		err = b.heed(lacks)
	}
	if err != nil {
		_, _ = c.query(ctx, b.call("close", 1), s.id) // otherwise others end it
		return nil, err
	}
	b.saw(top)
	s.era = eraOf(life)
	c.knows = s.id
	b.wire.opened.Store(true)
	b.wire.renew() // another server may have opened this session than the one before
	s.number.Store(number)
	s.main = c
	s.listener.polled.Store(pid != c.pid)
	c.direct = pid == c.pid
	s.lease.Extend(sent, b.o.TTL)
	if !s.lease.Hold(true) {
		return nil, fmt.Errorf("%w: the session was opened too late", backend.ErrUnavailable)
	}
	s.Life = b.sessions.NewLife(kit.Rules{Over: s.over, Left: s.lease.Left, Ending: s.lease.End, Release: s.release, Stands: s.stands})
	s.lease.Confirmed = s.Beat
	s.joining = kit.Joins[backend.Joined]{Go: s.Go, Ended: s.Ended, Backlog: &s.backlog, Undo: func(j backend.Joined) error { return kit.About(j.Member, s.leave(j.Member)) }, End: s.End}
	s.Start()
	if !s.Go(s.run) {
		close(s.ran)
	}
	return s, nil
}

// make opens a session where the schema was not there.
func (b *Backend) make(ctx context.Context, c *conn, id string, missing error) (rows []row, sent clock.Instant, err error) {
	if b.id != "" {
		return nil, sent, fmt.Errorf("%w: the schema %s is not there any more", backend.ErrReset, b.o.Schema)
	}
	if err := c.ensure(ctx, b.o.Schema, false); err != nil {
		return nil, sent, err
	}
	sent = clock.Now()
	rows, err = c.query(ctx, b.call("open", 3), id, b.o.TTL.Milliseconds(), b.format)
	if errors.Is(err, errNoSchema) {
		err = fmt.Errorf("%w schema %s: it is not one of this package, or lacks something: have its owner apply what \"succession postgres schema\" prints: %w", backend.ErrInvalid, b.o.Schema, missing)
	}
	return rows, sent, err
}

// call returns the statement that calls a function with so many arguments.
func (b *Backend) call(function string, args int) string {
	var s strings.Builder
	s.WriteString("SELECT * FROM " + quoted(b.o.Schema) + "." + function + "(")
	for i := range args {
		if i > 0 {
			s.WriteByte(',')
		}
		fmt.Fprintf(&s, "$%d", i+1)
	}
	s.WriteByte(')')
	return s.String()
}

// tell calls a function that says nothing of interest. A server that never had the session, see [session.believe], would not say so: if it is
// not certain that this one has, it is asked before.
func (s *session) tell(ctx context.Context, function string, args ...any) error {
	return s.b.wire.with(ctx, func(c *conn) error {
		if c.knows != s.id {
			err := s.knownTo(ctx, c)
			if errors.Is(err, errNoSchema) {
				err = fmt.Errorf("%w: %w", backend.ErrUnavailable, err)
			}
			if err != nil && !(err == errEnded && function == "close") { // which ends one of an earlier era
				c.kill()
				s.b.wire.turn.CompareAndSwap(c.turn, c.turn+1) // another host comes first
				return err
			}
		}
		return s.b.tellBy(ctx, c, function, args...)
	})
}

func (b *Backend) tellBy(ctx context.Context, c *conn, function string, args ...any) error {
	ctx, cancel := bounded(ctx, b.o.attempt())
	defer cancel()
	_, err := c.query(ctx, b.call(function, len(args)), args...)
	return err
}

var (
	errEnded = errors.New("its row has gone from the database: another session has ended it, or an operator; or another server has taken over")
	errBurnt = errors.New("a later join has taken its place")
)

// refusals are the errors for the first column of answers.
var refusals = map[string]error{
	"ended":   errEnded,
	"member":  backend.ErrNotMember,
	"denied":  fmt.Errorf("%w: another session joined the member, or it is no item", backend.ErrDenied),
	"version": backend.ErrVersion,
	"pinned":  errPinned,
	"taken":   backend.ErrTaken,
	"burnt":   errBurnt,
}

// An answer is the rows of one, the first without its first column, and when the request was sent.
type answer struct {
	rows []row
	why  string
	sent clock.Instant
}

func (a *answer) first() *row { return &a.rows[0] }

// judge returns the error of an answer that refuses, and ends the session if its row has gone.
func (s *session) judge(c *conn, rows []row, sent clock.Instant, err error) (answer, error) {
	a := answer{rows: rows, sent: sent}
	if err == nil {
		a.why = a.first().text()
		if err = a.first().err(); err == nil {
			if err = refusals[a.why]; err != errEnded { // for others it is not an error
				c.knows = s.id
			}
		}
	}
	if err == errEnded || errors.Is(err, errNoSchema) {
		err = s.believe(c, err)
	}
	if ended := s.Alive(); ended != nil { // a late answer does not count
		return a, ended
	}
	return a, err
}

// believe ends the session because a server has said that its row, or the schema, has gone, if that server can know it, and returns what it
// has said. Not every server can: a connection may lead to a primary that was deposed, and does not know it yet. That one
// never had a session, or a schema, which its successor has. Then believe closes the connection, and the error says that
// another server is to be asked. If none acknowledges the session, that ends with its deadline.
//
// So a connection for requests is believed only where the server has answered the session before; where it has not, the connection of the
// session asks its own server at once. That connection may have been made anew, after a failover. It is believed that the session has ended,
// unless the server is known to be of an earlier era.
func (s *session) believe(c *conn, said error) error {
	switch knows := c.knows == s.id; {
	case !knows && !c.main:
		s.b.wire.turn.CompareAndSwap(c.turn, c.turn+1)
		s.listener.stir()
		fallthrough
	case !knows && said != errEnded:
		c.kill()
		return fmt.Errorf("%w: %s does not know the session, and may not be its server: %w", backend.ErrUnavailable, address(c.PgConn), said)
	case said != errEnded:
		s.End(fmt.Errorf("%w: %w", backend.ErrReset, said))
		return said
	}
	switch err := s.knownTo(s.Context(), c); {
	case err == nil:
		c.kill()
		return fmt.Errorf("%w: %s has said that the session has ended, and then something else: it leads to several servers", backend.ErrUnavailable, address(c.PgConn))
	case err != errEnded:
		return err
	}
	s.End(errEnded)
	return errEnded
}

// knownTo returns nil if the server has the session, errEnded if it has not, and can know it, and another error if it cannot or does not say.
func (s *session) knownTo(ctx context.Context, c *conn) error {
	ctx, cancel := bounded(ctx, s.b.o.TTL/4)
	defer cancel()
	rows, err := c.query(ctx, s.b.call("beat", 2), s.id, 0)
	if err != nil {
		return err
	}
	why, life := rows[0].text(), rows[0].text()
	switch err := rows[0].err(); {
	case err != nil:
		return err
	case refusals[why] != errEnded:
		c.knows = s.id
		return nil
	case !precedes(eraOf(life), s.era):
		return errEnded
	}
	c.kill()
	return fmt.Errorf("%w: %s was deposed before the session was opened, and does not know it", backend.ErrUnavailable, address(c.PgConn))
}

// A request calls a function of the schema for the session.
type request struct {
	function string
	args     []any
	// begin, if not nil, is called when the request can be sent, and may change the arguments, or fail.
	begin func() error
	// lost says that its answer was lost, or that of another request, for which it waits.
	lost bool
}

// send sends a request once. If the connection of the session rests, that takes it, and otherwise
// another one. If an answer was lost, it is another one in any case: if the request waits for a lock, each attempt breaks the connection,
// and that of the session has the heartbeats and the notices. The limit counts from when it can be sent. Its context is the session's, so that a
// connection is not lost each time that a caller gives up.
func (s *session) send(q *request) (answer, error) {
	if !q.lost {
		if a, err, taken := s.listener.take(func(c *conn) (answer, error) { return s.ask(c, s.b.o.TTL/4, q) }); taken {
			return a, err
		}
	}
	var a answer
	err := s.b.wire.with(s.Context(), func(c *conn) (err error) {
		a, err = s.ask(c, s.b.o.attempt(), q)
		return err
	})
	if ended := s.Alive(); ended != nil {
		err = ended
	}
	return a, err
}

// ask sends a request once, on a connection.
func (s *session) ask(c *conn, limit time.Duration, q *request) (answer, error) {
	if q.begin != nil {
		if err := q.begin(); err != nil {
			return answer{}, err
		}
	}
	ctx, cancel := bounded(s.Context(), limit)
	defer cancel()
	sent := clock.Now()
	rows, err := c.query(ctx, s.b.call(q.function, len(q.args)+1), append([]any{s.id}, q.args...)...)
	a, err := s.judge(c, rows, sent, err)
	q.lost = q.lost || lost(err)
	return a, err
}

// once sends a request once, because it must not be done twice. It is not sent any more if its caller has given up meanwhile, waiting for
// a connection: others have perhaps been told of what they wrote since.
func (s *session) once(ctx context.Context, function string, args ...any) (answer, error) {
	return kit.Await(ctx, s.Life, func() (answer, error) {
		var a answer
		err := s.b.wire.with(s.Context(), func(c *conn) (err error) {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			a, err = s.ask(c, s.b.o.TTL, &request{function: function, args: args})
			return err
		})
		return a, err
	})
}

// repeat sends a request until it is answered.
func (s *session) repeat(ctx context.Context, function string, args ...any) (answer, error) {
	return kit.Await(ctx, s.Life, func() (answer, error) { return s.again(ctx, &request{function: function, args: args}) })
}

// again is repeat in the caller's goroutine. It goes on with what was sent when ctx ends.
func (s *session) again(ctx context.Context, q *request) (answer, error) {
	return kit.Retry(ctx, s.b.o.backoff(), lost, func(context.Context) (answer, error) { return s.send(q) })
}

// release makes the database end the session. It sends that over the connection that run leaves, so that the server need not start a
// process for another; and if the answer is lost, over others. It tries for a TTL: then other sessions end the session.
func (s *session) release(ctx context.Context) error {
	s.b.o.Logger.Info("session ended", "session", s.id, "why", s.Ended())
	ctx, cancel := context.WithTimeout(ctx, s.b.o.TTL)
	defer cancel()
	var c *conn
	select {
	case <-s.ran: // soon, as its context has ended
		c = s.main
	case <-ctx.Done():
	}
	if c != nil {
		defer c.kill() // from one that a request has broken, the library would go on reading for 15 s
	}
	_, err := kit.Retry(ctx, s.b.o.backoff(), lost, func(ctx context.Context) (struct{}, error) {
		if c == nil || c.IsClosed() {
			return struct{}{}, s.tell(ctx, "close", s.id)
		}
		defer c.leave()
		return struct{}{}, s.b.tellBy(ctx, c, "close", s.id)
	})
	if errors.Is(err, errNoSchema) {
		return nil
	}
	return err
}

func (s *session) stands() string {
	return fmt.Sprintf("other sessions end it, after they have seen no heartbeat for %v", s.b.o.TTL)
}

func randomUUID() (b [16]byte) {
	crand.Read(b[:])
	return b
}

func textOf(b [16]byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
