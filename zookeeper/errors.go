package zookeeper

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/zookeeper/internal/wire"
)

// errLost says that a request was sent, or may have been, and that its answer will not
// come.
var errLost = fmt.Errorf("%w: the answer was lost", backend.ErrUnavailable)

func isLost(err error) bool { return errors.Is(err, errLost) }

// explain turns an error that the driver has not acted upon into one of the contract. Between two requests of a call somebody may have
// deleted, or made, what it is about: who calls again finds out what is there now. If the caller's time is over and there is no
// connection, the error says why there is none.
func (s *session) explain(ctx context.Context, err error) error {
	for _, answer := range []error{zk.ErrNoNode, zk.ErrNodeExists, zk.ErrBadVersion, zk.ErrNotEmpty} {
		if errors.Is(err, answer) {
			return fmt.Errorf("%w: it was changed meanwhile: %w", backend.ErrUnavailable, err)
		}
	}
	late := ctx.Err() == context.DeadlineExceeded && errors.Is(err, context.Cause(ctx)) && !errors.Is(err, backend.ErrUnavailable)
	if _, problem := s.link.Silence(); late && problem != nil && !s.link.IsReady() {
		var b backoff.Backoff
		b.Failed(fmt.Errorf("%w: %w", backend.ErrUnavailable, problem))
		return b.Cause(ctx)
	}
	return err
}

// classify returns an error of the library as one of the contract. It is either an answer
// of the coordinator or errLost, after which a request can be repeated. The error of a
// throttled request is errLost, too.
func classify(err error) error {
	switch {
	case err == nil, err == zk.ErrNoNode, err == zk.ErrNodeExists, err == zk.ErrBadVersion, err == zk.ErrNotEmpty:
		return err // the driver acts upon these, and none leaves the package; see explain
	case errors.Is(err, backend.ErrDenied): // from need
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
	case err == zk.ErrInvalidPath, err == zk.ErrShortBuffer, err == zk.ErrBadArguments, err == zk.ErrAPIError:
		return err
	}
	var code int
	if n, _ := fmt.Sscanf(err.Error(), "unknown error: %d", &code); n == 0 { // how the library names a code that it does not know
		return fmt.Errorf("%w: %w", errLost, err)
	}
	switch code {
	case wire.CodeThrottled:
		return fmt.Errorf("%w: the server throttles, and has not carried it out (code %d)", errLost, code)
	case wire.CodeLocalSession:
		return fmt.Errorf("the servers have local sessions, which can have no members: set localSessionsUpgradingEnabled=true in zoo.cfg (code %d)", code)
	case wire.CodeQuota:
		return fmt.Errorf("the quota of a znode above is used up: raise it (setquota), or delete what nobody needs (code %d)", code)
	}
	if -code > wire.MaxFrame {
		return fmt.Errorf("the answer has %d bytes, and at most %d are taken: are there so many members, items or records?", -code, wire.MaxFrame)
	}
	return err
}

// notEmpty returns err. If the znode at path, which is that of a member or an item, has children and cannot be deleted, it says so:
// somebody has to delete them first, because the driver makes none there.
func notEmpty(path string, err error) error {
	if err != zk.ErrNotEmpty {
		return err
	}
	return fmt.Errorf("%w: somebody has made children of %s, so it cannot be deleted: delete them", backend.ErrDenied, path)
}
