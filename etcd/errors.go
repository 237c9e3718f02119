package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/succession-dev/succession/backend"
)

// scheme is the scheme of URLs, and what errors call this driver.
const scheme = "etcd"

// errLeaseGone says that the server knows the session's lease no more.
var errLeaseGone = errors.New("etcd knows its lease no more: it has expired or was revoked")

// errOutdated says that the server knows a lease no more that the session has left.
var errOutdated = errors.New("the session has another lease by now")

// errClosed is why a session ends that is closed.
var errClosed = errors.New("it was closed")

// A lostError is a request that another server is to be asked: its answer did not come,
// and it may or may not have had its effect, or else [notTaken].
type lostError struct{ err error }

func (e *lostError) Error() string { return fmt.Sprintf("%v: %v", backend.ErrUnavailable, e.err) }

func (e *lostError) Unwrap() []error { return []error{backend.ErrUnavailable, e.err} }

func isLost(err error) bool {
	var lost *lostError
	return errors.As(err, &lost)
}

// refusals are of servers that have not passed the request on, where another may: one that
// lags behind in what it has applied (server/etcdserver, processInternalRaftRequestOnce), a
// learner, and one that has just started and knows nobody's version yet
// (server/etcdserver/api/v3rpc, interceptor.go).
var refusals = []error{
	rpctypes.ErrTooManyRequests,
	rpctypes.Error(rpctypes.ErrGRPCNotSupportedForLearner),
	rpctypes.ErrNotCapable,
}

// notTaken reports whether err is one of the refusals.
func notTaken(err error) bool {
	return slices.ContainsFunc(refusals, func(r error) bool { return errors.Is(err, r) })
}

func wrap(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &backend.Error{Backend: scheme, Op: op, Name: name, Err: err}
}

// denials are refusals for which etcd has no gRPC code of their own.
var denials = []error{
	rpctypes.ErrPermissionDenied,
	rpctypes.ErrAuthFailed,
	rpctypes.ErrUserEmpty,
	rpctypes.ErrInvalidAuthToken,
}

// classify turns an error of the client into one of the contract. The request was
// not given up by its caller.
func (b *Backend) classify(err error) error {
	if b.client.Ctx().Err() != nil {
		return fmt.Errorf("%w: the etcd client was closed by its owner", backend.ErrClosed)
	}
	return classify(err)
}

func classify(err error) error {
	err = rpctypes.Error(err)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return &lostError{errors.New("no answer in time")}
	}
	for _, d := range denials {
		if errors.Is(err, d) {
			return fmt.Errorf("%w: %w; check the user, its roles and the prefix", backend.ErrDenied, err)
		}
	}
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return errLeaseGone
	}
	if notTaken(err) {
		return &lostError{err}
	}
	switch code(err) {
	case codes.PermissionDenied, codes.Unauthenticated:
		return fmt.Errorf("%w: %w; check the user, its roles and the prefix", backend.ErrDenied, err)
	case codes.ResourceExhausted:
		return fmt.Errorf("%w: %w", backend.ErrUnavailable, err)
	case codes.InvalidArgument, codes.OutOfRange, codes.FailedPrecondition:
		if errors.Is(err, rpctypes.ErrAuthOldRevision) { // the client's token is renewed by then
			return &lostError{err}
		}
		return fmt.Errorf("%w: %w", backend.ErrInvalid, err)
	case codes.Unimplemented, codes.DataLoss:
		return err
	}
	return &lostError{err}
}

// code returns the gRPC code of an error of the client.
func code(err error) codes.Code {
	var e rpctypes.EtcdError
	if errors.As(err, &e) {
		return e.Code()
	}
	return status.Code(err)
}
