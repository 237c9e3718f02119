package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// errLeaseGone says that etcd no longer knows the session's lease.
var errLeaseGone = errors.New("etcd knows its lease no more: it has expired or was revoked")

// errOutdated says that etcd no longer knows a lease, and that the session has given it up.
var errOutdated = errors.New("the session has another lease by now")

// A lostError says that another server may answer the request. Either no answer came, and
// the request may have taken effect. Or a server did not take the request; see
// [notTaken].
type lostError struct{ err error }

func (e *lostError) Error() string { return fmt.Sprintf("%v: %v", backend.ErrUnavailable, e.err) }

func (e *lostError) Unwrap() []error { return []error{backend.ErrUnavailable, e.err} }

func isLost(err error) bool {
	var lost *lostError
	return errors.As(err, &lost)
}

// refusals are the errors of servers that have not passed a request on, where another
// server may. Such a server lags behind in what it has applied (server/etcdserver,
// processInternalRaftRequestOnce), or is a learner, or has just started and does not know the other
// servers' versions yet (server/etcdserver/api/v3rpc, interceptor.go).
var refusals = []error{
	rpctypes.ErrTooManyRequests,
	rpctypes.Error(rpctypes.ErrGRPCNotSupportedForLearner),
	rpctypes.ErrNotCapable,
}

// notTaken reports whether err is one of the refusals.
func notTaken(err error) bool {
	return slices.ContainsFunc(refusals, func(r error) bool { return errors.Is(err, r) })
}

// denials are errors by which etcd refuses credentials or a right, whatever their gRPC
// code is.
var denials = []error{
	rpctypes.ErrPermissionDenied,
	rpctypes.ErrAuthFailed,
	rpctypes.ErrUserEmpty,
	rpctypes.ErrInvalidAuthToken,
}

// classify turns an error of the client into one of the contract. The caller must not
// have given up the request.
func (b *Backend) classify(err error) error {
	if b.client.Ctx().Err() != nil {
		return fmt.Errorf("%w: the etcd client was closed by its owner", backend.ErrClosed)
	}
	return classify(err)
}

func classify(err error) error {
	err = kit.Brief(rpctypes.Error(err))
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
	case codes.DataLoss:
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

// unanswered is classify for a request that waits for a connection. If its context has
// ended, the error of gRPC says what it has been waiting for.
func (b *Backend) unanswered(ctx context.Context, err error) error {
	classified := b.classify(err)
	if ctx.Err() != nil && isLost(classified) {
		return &lostError{err}
	}
	return classified
}

// hints say what it means that no connection comes about, by a piece of gRPC's error.
// gRPC hands on what the operating system, crypto/tls and http2 say, as text only.
var hints = []struct{ said, means string }{
	{"looked like an HTTP/1.1 header", "what answers there is an HTTP server and not etcd"},
	{"tls: no application protocol", "what answers there speaks TLS and is not etcd"},
	{"tls: first record does not look like a TLS handshake", "the server does not speak TLS"},
	{"authentication handshake failed: EOF", "the server does not speak TLS"},
	{"authentication handshake failed: read tcp", "the server does not speak TLS"},
	{"tls: certificate required", "the server wants a certificate of its clients"},
	{"use of closed network connection", "something listens there and does not answer"},
	{"error reading server preface: EOF", "the server hung up, as one does that wants TLS"},
	{"error reading server preface: read tcp", "the server hung up, as one does that wants TLS"},
	{"error reading server preface: connection reset", "the server hung up, as one does that wants TLS"},
	{"context deadline exceeded", "something listens there and does not answer"},
	{"i/o timeout", "nothing answers at that address"},
	{"connection refused", "no server listens there"},
}

// hint returns the meaning of err, for the front of a message, or nothing.
func hint(err error) string {
	for _, h := range hints {
		if strings.Contains(err.Error(), h.said) {
			return h.means + ": "
		}
	}
	return ""
}
