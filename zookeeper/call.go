package zookeeper

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/backend/kit/backoff"
)

// A call is a request under way.
type call[T any] struct {
	s      *session
	answer chan answer[T]
}

type answer[T any] struct {
	value T
	err   error
}

// maxTurns is how many requests, without heartbeats, a session has under way. A server answers them
// in turn, so that thousands at once would hold up the heartbeats.
const maxTurns = 128

// start waits until requests can be sent, when fewer than [maxTurns] others wait for answers, and
// sends one. If ctx or the session ends first, it fails, and nothing has been sent.
func start[T any](ctx context.Context, s *session, op func(*zk.Conn) (T, error)) (call[T], error) {
	return inTurn(ctx, s, renewed(s, op))
}

// inTurn is start for a request that is not sent again if it is denied.
func inTurn[T any](ctx context.Context, s *session, op func(*zk.Conn) (T, error)) (call[T], error) {
	select {
	case s.turns <- struct{}{}:
	case <-ctx.Done():
		return call[T]{}, context.Cause(ctx)
	case <-s.link.Context().Done():
		return call[T]{}, s.link.Ended()
	}
	c, err := startAtOnce(ctx, s, func(c *zk.Conn) (T, error) {
		defer func() { <-s.turns }()
		return op(c)
	})
	if err != nil {
		<-s.turns
	}
	return c, err
}

// startAtOnce is start for a request that waits for no other.
func startAtOnce[T any](ctx context.Context, s *session, op func(*zk.Conn) (T, error)) (call[T], error) {
	c := call[T]{s, make(chan answer[T], 1)}
	if err := s.link.Await(ctx); err != nil {
		return c, err
	}
	if !c.send(op) {
		return c, s.link.Ended()
	}
	return c, nil
}

// send runs op, which blocks until the request is answered, in a goroutine beside the caller's.
func (c call[T]) send(op func(*zk.Conn) (T, error)) bool {
	f := func() {
		v, err := op(c.s.conn)
		c.answer <- answer[T]{v, classify(err)}
	}
	select {
	case c.s.calls <- f: // one of [session.runCalls] waits
		return true
	default:
		return c.s.spawn(f)
	}
}

// maxCallers is how many goroutines of a session wait for a request to send. Ahead sends two, and a
// heartbeat beside them.
const maxCallers = 3

// runCalls sends requests, one after the other, until the session ends. The stack of a new goroutine has
// to grow before the library has queued its request. In a process that was idle that takes 0.02 ms,
// before the delete of a leader and before the list of its heir.
func (s *session) runCalls() {
	for {
		select {
		case f := <-s.calls:
			f()
		case <-s.Context().Done():
			return
		}
	}
}

// startInOrder sends two requests, the second right behind the first.
//
// A call of the library queues its request and then blocks, so each request needs a goroutine;
// and of two that are started in turn, Go's scheduler runs the later one first. So the goroutine of
// the first request starts the other one, and then queues its own request. The order is almost
// always right. If it matters, the caller checks the answers.
func startInOrder[A, B any](ctx context.Context, s *session, first func(*zk.Conn) (A, error), second func(*zk.Conn) (B, error)) (call[A], call[B], error) {
	b := call[B]{s, make(chan answer[B], 1)}
	first, second = renewed(s, first), renewed(s, second)
	a, err := inTurn(ctx, s, func(c *zk.Conn) (A, error) {
		b.send(second) // it fails only if the session has ended, and so does wait
		return first(c)
	})
	return a, b, err
}

// renewed does op once more if the server denies it and the password has been replaced: the next
// connection shows the new one. What was denied was not done.
func renewed[T any](s *session, op func(*zk.Conn) (T, error)) func(*zk.Conn) (T, error) {
	return func(c *zk.Conn) (T, error) {
		shown := s.link.Shown()
		v, err := op(c)
		if errors.Is(classify(err), backend.ErrDenied) && s.link.Renew(shown) && s.link.Await(s.link.Context()) == nil {
			v, err = op(c)
		}
		return v, err
	}
}

// wait returns the answer. If ctx or the session ends first, it fails, and the request may
// nevertheless have been carried out.
func (c call[T]) wait(ctx context.Context) (T, error) {
	var none T
	select {
	case a := <-c.answer:
		if err := c.s.link.Ended(); a.err != nil && err != nil {
			return none, err
		}
		return a.value, a.err
	case <-ctx.Done():
		return none, context.Cause(ctx)
	case <-c.s.link.Context().Done():
		return none, c.s.link.Ended()
	}
}

// do sends one request and returns its answer.
func do[T any](ctx context.Context, s *session, op func(*zk.Conn) (T, error)) (T, error) {
	c, err := start(ctx, s, op)
	if err != nil {
		var none T
		return none, err
	}
	return c.wait(ctx)
}

// retry sends a request that may be repeated, until it is answered.
func retry[T any](ctx context.Context, s *session, op func(*zk.Conn) (T, error)) (T, error) {
	return kit.Retry(ctx, pauses(), isLost, func(ctx context.Context) (T, error) { return do(ctx, s, op) })
}

// sure calls f, and once more after a Refresh if f refuses: the caller may know from another server of a member or a
// version, or of what has become of it, and this server may be behind that one.
func sure[T any](ctx context.Context, s *session, f func(ctx context.Context) (T, error)) (T, error) {
	v, err := f(ctx)
	if !errors.Is(err, backend.ErrVersion) && !errors.Is(err, backend.ErrNotMember) && !errors.Is(err, backend.ErrDenied) {
		return v, err
	}
	if err := s.Refresh(ctx); err != nil {
		return v, err
	}
	return f(ctx)
}

// pauses returns the pauses before repetitions. The next request waits for a connection
// anyway; the pauses are for servers that close the connection upon a request.
func pauses() backoff.Backoff {
	return backoff.Backoff{Min: 2 * time.Millisecond, Max: 512 * time.Millisecond}
}

// The requests, in the form that do takes.

type node struct {
	data []byte
	stat *zk.Stat
}

func get(path string) func(*zk.Conn) (node, error) {
	return func(c *zk.Conn) (node, error) {
		data, stat, err := c.Get(path)
		return node{data, stat}, need(mayRead, path, err)
	}
}

// stat fails with zk.ErrNoNode if there is no znode, unlike the library's Exists.
func stat(path string) func(*zk.Conn) (*zk.Stat, error) {
	return func(c *zk.Conn) (*zk.Stat, error) {
		ok, st, err := c.Exists(path)
		if err == nil && !ok {
			err = zk.ErrNoNode
		}
		return st, need(mayRead, path, err)
	}
}

type listing struct {
	names []string
	stat  *zk.Stat
}

func children(path string) func(*zk.Conn) (listing, error) {
	return func(c *zk.Conn) (listing, error) {
		names, stat, err := c.Children(path)
		return listing{names, stat}, need(mayRead, path, err)
	}
}

func (s *session) create(path string, data []byte, flags int32) func(*zk.Conn) (string, error) {
	if data == nil {
		data = []byte{} // nil would become null, which foreign clients do not expect
	}
	return func(c *zk.Conn) (string, error) {
		at, err := c.Create(path, data, flags, s.options.acl())
		return at, need(mayCreate, parent(path), err)
	}
}

func remove(path string, version int32) func(*zk.Conn) (struct{}, error) {
	return func(c *zk.Conn) (struct{}, error) {
		return struct{}{}, need(mayDelete, parent(path), c.Delete(path, version))
	}
}

func multi(ops ...any) func(*zk.Conn) ([]zk.MultiResponse, error) {
	return func(c *zk.Conn) ([]zk.MultiResponse, error) {
		results, err := c.Multi(ops...)
		if err == nil && !answers(results, ops) {
			return nil, errors.New("the answer is none to the request; what answers there?")
		}
		return results, needs(ops, results, err)
	}
}

// answers reports whether the results have the form that the operations ask for. So the caller may
// take the results apart without further checks.
func answers(results []zk.MultiResponse, ops []any) bool {
	if len(results) != len(ops) {
		return false
	}
	for i, op := range ops {
		switch op.(type) {
		case *zk.SetDataRequest:
			if results[i].Stat == nil {
				return false
			}
		case *zk.CreateRequest:
			if results[i].String == "" {
				return false
			}
		}
	}
	return true
}

// barrier is a quorum write that changes nothing. Once it is answered, the server has
// applied every earlier write of the session that was not refused. The answer does not
// matter: a check that fails is a write like any other.
func barrier(path string) func(*zk.Conn) ([]zk.MultiResponse, error) {
	return multiResults([]any{check(path)})
}

func check(path string) *zk.CheckVersionRequest {
	return &zk.CheckVersionRequest{Path: path, Version: -1}
}
