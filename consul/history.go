package consul

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
)

// A history is what a backend has seen of Consul's log. It notices two things:
//
//   - The log has gone back: the cluster was rebuilt.
//   - The keys have gone back, and the log goes on: a snapshot was restored into a
//     running cluster. Members that have left stand again, and a fence may be lower than
//     it was. Until the next write of any key, the index of all keys shows that. After
//     that only the header of an election shows it: its index is lower than one that the
//     backend has seen.
//
// It is safe for concurrent use.
type history struct {
	mu     sync.Mutex
	log    uint64 // the highest index that has been seen
	keys   uint64 // the highest at which a key has changed
	beside string // a key that does not exist, and that who may stand in a line may read
	inLine bool   // that beside is in a line
	reset  error  // for good, because it is not known how far the keys had really come

	records map[string]uint64 // the index at which each election's record has last changed
}

// maxRecords is how many elections' records are remembered.
const maxRecords = 1 << 14

// saw notes the index of a change of a key that is in a line, or of the folder of one.
func (h *history) saw(index uint64, key string) { h.note(index, key, true) }

// sawRecord notes the index of a change of a record.
func (h *history) sawRecord(index uint64, key string) { h.note(index, key, false) }

// note notes an index. Who stands in a line may read all that is in it, and of records, such as the history of an election, perhaps no key beside.
func (h *history) note(index uint64, key string, inLine bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if inLine || !h.inLine {
		h.beside, h.inLine = strings.TrimSuffix(key, "/")+"/~", inLine // no name has a tilde
	}
	h.keys, h.log = max(h.keys, index), max(h.log, index)
}

// reached checks that the log, which has just reached index, has not gone back.
func (h *history) reached(index uint64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.reset == nil && index <= h.log {
		h.reset = fmt.Errorf("%w: the log of Consul is at %d and was at %d: its data were lost, or restored from a snapshot; %s",
			backend.ErrReset, index, h.log, afterReset)
	}
	h.log = max(h.log, index)
	return h.reset
}

// floor returns the least index that the header can have, if it exists, in the answer to
// a linearizable read that is sent now.
func (h *history) floor(record string) uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.records[record]
}

// changed checks that the header, which was last changed at index, is not older than
// floor. floor is what floor returned when the read was sent.
func (h *history) changed(record string, floor, index uint64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.reset == nil && index < floor {
		h.reset = fmt.Errorf("%w: the record %s was last changed at index %d of Consul, and is that of %d now: a snapshot was restored; %s",
			backend.ErrReset, record, floor, index, afterReset)
	}
	if h.records == nil || len(h.records) >= maxRecords {
		h.records = make(map[string]uint64)
	}
	h.records[record] = max(h.records[record], index)
	return h.reset
}

// afterReset says what to do after a reset.
const afterReset = "raise the fence of each election above every token that anybody holds, and then restart this process"

// verify checks that Consul's keys have not gone back. A linearizable read of a key that
// does not exist returns the index of the last change of any key
// (agent/consul/kvs_endpoint.go, Get).
func (h *history) verify(ctx context.Context, c *client) error {
	h.mu.Lock()
	keys, beside, reset := h.keys, h.beside, h.reset
	h.mu.Unlock()
	if reset != nil || keys == 0 {
		return reset
	}
	pair, index, err := c.get(ctx, beside)
	switch {
	case errors.Is(err, backend.ErrDenied): // the key does not matter
		return nil
	case err != nil || pair != nil || index >= keys:
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reset = fmt.Errorf("%w: the last change of Consul's keys is at %d and was at %d: a snapshot was restored; %s",
		backend.ErrReset, index, keys, afterReset)
	return h.reset
}

// verify ends the session if Consul's keys have gone back.
func (s *session) verify(ctx context.Context) error {
	return s.heed(s.retry(ctx, func(ctx context.Context) error { return s.b.history.verify(ctx, s.b.c) }))
}

// heed ends the session if err says that it must not go on.
func (s *session) heed(err error) error {
	if errors.Is(err, backend.ErrReset) {
		s.End(err)
		return s.Ended()
	}
	return err
}

// resume is called before the caller reads again, after a blocking query that has proved
// nothing. It pauses if the query has failed, and verifies. A restored snapshot ends all
// blocking queries (agent/blockingquery/blockingquery.go, AbandonCh), so it is noticed
// here.
func (s *session) resume(ctx context.Context, q *query, wait *backoff.Backoff) error {
	if q.err == nil {
		wait.Reset()
	} else if err := wait.Sleep(ctx); err != nil {
		return err
	}
	return s.verify(ctx)
}
