package etcd

import (
	"fmt"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/succession-dev/succession/backend"
)

// A history is what a backend has seen of the coordinator's log. It notices when the log
// goes back, because the cluster was rebuilt or restored from a backup: create revisions,
// and with them tokens, would fall. It is safe for concurrent use.
type history struct {
	mu       sync.Mutex
	cluster  uint64
	revision int64
	reset    error // for good, because it is not known how far the log had really come
}

// floor returns the least revision that the answer to a request sent now can have, if the
// request goes through the log.
func (h *history) floor() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.revision
}

// observe notes the header of an answer. floor is what floor returned when the request
// was sent, or 0 if the answer need not be fresh. observe returns [backend.ErrReset] once
// the log has gone back.
func (h *history) observe(floor int64, r *pb.ResponseHeader) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.reset != nil:
		return h.reset
	case r == nil || r.ClusterId == 0: // a proxy may leave it out
		return nil
	case h.cluster != 0 && r.ClusterId != h.cluster:
		h.reset = resetError(fmt.Sprintf("cluster %x answers in place of cluster %x: check that all servers of the client are of one cluster; if they are, ", r.ClusterId, h.cluster))
	case r.Revision < floor:
		h.reset = resetError(fmt.Sprintf("its log is at revision %d and was at %d; ", r.Revision, floor))
	default:
		h.cluster = r.ClusterId
		h.revision = max(h.revision, r.Revision)
	}
	return h.reset
}

// resetError returns an error that begins with what was seen, up to "it was rebuilt".
func resetError(what string) error {
	return fmt.Errorf("%w: %sit was rebuilt or restored from a backup, so raise the fence of each election above "+
		"every token that anybody holds, and then restart this process", backend.ErrReset, what)
}
