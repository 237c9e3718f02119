package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/backoff"
)

// Answers that the recipes act upon. They never leave the package.
var (
	errNoNode     = zk.ErrNoNode
	errNodeExists = zk.ErrNodeExists
	errBadVersion = zk.ErrBadVersion
	errNotEmpty   = zk.ErrNotEmpty
)

// errLost says that a request was sent, or may have been, and its answer will not
// come.
var errLost = fmt.Errorf("%w: the answer was lost", backend.ErrUnavailable)

// throttled is how the library tells a code that it does not know.
var throttled = fmt.Sprintf("unknown error: %d", codeThrottled)

// A call is a request under way.
type call[T any] struct {
	s      *session
	answer <-chan answer[T]
}

type answer[T any] struct {
	value T
	err   error
}

// start waits until requests can be sent, and sends one. It fails when ctx or the
// session ends first; then nothing has been sent.
func start[T any](ctx context.Context, s *session, op func(*zk.Conn) (T, error)) (call[T], error) {
	ch := make(chan answer[T], 1)
	c := call[T]{s, ch}
	if err := s.link.await(ctx); err != nil {
		return c, err
	}
	ok := s.spawn(func() {
		v, err := op(s.conn)
		ch <- answer[T]{v, classify(err)}
	})
	if !ok {
		return c, s.link.ended()
	}
	return c, nil
}

// wait returns the answer. When ctx or the session ends first, the request may
// have been carried out all the same.
func (c call[T]) wait(ctx context.Context) (T, error) {
	var none T
	select {
	case a := <-c.answer:
		if err := c.s.link.ended(); a.err != nil && err != nil {
			return none, err
		}
		return a.value, a.err
	case <-ctx.Done():
		return none, context.Cause(ctx)
	case <-c.s.link.ctx.Done():
		return none, c.s.link.ended()
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
	for try := 0; ; try++ {
		v, err := do(ctx, s, op)
		if !errors.Is(err, errLost) {
			return v, err
		}
		if err := pause(ctx, try); err != nil {
			var none T
			return none, err
		}
	}
}

// pause waits before a repetition, the longer the more there were. The next
// request waits for a connection anyway; this is for servers that hang up on it.
func pause(ctx context.Context, try int) error {
	d := 2 * time.Millisecond << min(try, 8)
	return backoff.Sleep(ctx, d/2+rand.N(d/2+1))
}

// classify maps the library's errors. An error is the coordinator's answer, or
// else the answer was lost. A request that a server throttles is treated like one whose
// answer was lost.
func classify(err error) error {
	switch {
	case err == nil, err == errNoNode, err == errNodeExists, err == errBadVersion, err == errNotEmpty:
		return err
	case errors.Is(err, backend.ErrDenied): // by need
		return err
	case err == zk.ErrInvalidACL:
		return fmt.Errorf("%w: the server knows nobody whom acl=%s could mean: does it ask for this client's certificate (ssl.clientAuth)?",
			backend.ErrDenied, CreatorACL)
	case err == zk.ErrNoAuth, err == zk.ErrAuthFailed:
		return fmt.Errorf("%w: %w", backend.ErrDenied, err)
	case err == zk.ErrSessionExpired:
		return fmt.Errorf("%w: %w", backend.ErrSessionEnded, err)
	case err == zk.ErrNoChildrenForEphemerals:
		return fmt.Errorf("%w: a znode on the path is ephemeral and cannot have children", backend.ErrInvalid)
	case err.Error() == throttled:
		return fmt.Errorf("%w: the server throttles, and has not carried it out (code %d)", errLost, codeThrottled)
	case err == zk.ErrInvalidPath, err == zk.ErrShortBuffer, err == zk.ErrBadArguments, err == zk.ErrAPIError,
		strings.HasPrefix(err.Error(), "unknown error:"): // a code that the library does not know
		return err
	}
	return fmt.Errorf("%w: %w", errLost, err)
}

// fail returns err as the error of an operation of this driver.
func fail(op, name string, err error) error {
	if err == nil {
		return nil
	}
	var done *backend.Error
	if errors.As(err, &done) {
		return err
	}
	return &backend.Error{Backend: "zookeeper", Op: op, Name: name, Err: err}
}

// bind returns ctx, ended also when other ends, with why as the cause, or, if that
// is nil, with the cause of other.
func bind(ctx, other context.Context, why error) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	end := func() {
		if why == nil {
			why = context.Cause(other)
		}
		cancel(why)
	}
	if other.Err() != nil {
		end()
		return ctx, func() {}
	}
	stop := context.AfterFunc(other, end)
	return ctx, func() {
		stop()
		cancel(nil)
	}
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

// stat fails with errNoNode where there is none, unlike the library's Exists.
func stat(path string) func(*zk.Conn) (*zk.Stat, error) {
	return func(c *zk.Conn) (*zk.Stat, error) {
		ok, st, err := c.Exists(path)
		if err == nil && !ok {
			err = errNoNode
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
		data = []byte{} // nil would become null, which peers do not expect
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
		return results, needs(ops, results, err)
	}
}

// barrier is a quorum write that changes nothing. Once it is answered, the server
// has applied every write of the session that it had not refused before.
// What is answered does not matter: a check that fails is a write like any other.
func barrier(path string) func(*zk.Conn) ([]zk.MultiResponse, error) {
	return multiResults([]any{check(path)})
}

func check(path string) *zk.CheckVersionRequest {
	return &zk.CheckVersionRequest{Path: path, Version: -1}
}
