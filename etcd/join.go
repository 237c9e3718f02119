package etcd

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// maxChecked is how many lines a backend remembers to have checked for nesting.
const maxChecked = 1 << 14

// Join adds one member at the end of the line; see [backend.Session]. The first member of
// a session in a line has the key that etcd's own elections give it.
//
// Join is one transaction: it creates the key if it does not exist, and reads it if it
// does. So it can be sent again when its answer was lost. The first request may then
// still be on its way. A key about which there is such doubt is never used again. When
// its member has left, or Join has been given up, the key becomes one of the session's
// [ghosts]. What etcd refuses leaves none.
//
// If it is to tell of a record, the transaction reads too: that record, the header, and whether the
// line is empty. It reads before it writes, and at the same revision. So if m is the first, it
// returns the place of m; a member behind others asks [session.Ahead].
func (s *session) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	return s.join(ctx, line, value, false, s.firstLook(line, record))
}

// JoinShared is Join for a shared member; see [backend.Session].
func (s *session) JoinShared(ctx context.Context, line, value, record string) (backend.Joined, error) {
	return s.join(ctx, line, value, true, s.firstLook(line, record))
}

// A firstLook is what Join reads.
type firstLook struct {
	ops    []clientv3.Op
	record string
	item   *backend.Member // what the member claims, and what must stand; nil if it claims nothing
}

// firstLook returns what Join reads to tell of the place and of the record; nil if it is to tell nothing.
func (s *session) firstLook(line, record string) *firstLook {
	if record == "" {
		return nil
	}
	return &firstLook{record: record, ops: []clientv3.Op{
		clientv3.OpGet(s.b.folder(line), clientv3.WithPrefix(), clientv3.WithCountOnly()),
		clientv3.OpGet(s.b.record(line)),
		clientv3.OpGet(s.b.record(record)),
	}}
}

// crowd is how many members of a session in one line make a crowd. To count a line, etcd goes through
// its keys in memory, and writes nothing meanwhile. So a member that joins a crowd does not ask.
const crowd = 8

// join joins. look is what is read too; nil for nothing.
func (s *session) join(ctx context.Context, line, value string, shared bool, look *firstLook) (j backend.Joined, err error) {
	if err := s.checkNesting(ctx, line); err != nil {
		return j, err
	}
	return s.joining.Do(ctx, func() (j backend.Joined, undo func(), err error) {
		for {
			name, standing := s.take(line, shared)
			if standing > crowd {
				look = nil
			}
			if j, err = s.create(ctx, line, name, value, look); !errors.Is(err, errTaken) {
				return j, func() { s.ghosts.settle(s.b.folder(line) + name) }, err
			}
		}
	})
}

// taken is a name that no other Join may use.
type taken struct {
	position uint64     // of the member that stands there; 0 while that is not known
	doubtful bool       // a request to create a member there may still be on its way
	unseen   kit.Denial // of watches of the member, and of looks where it stands
}

// errTaken says that the key exists and belongs to somebody else.
var errTaken = errors.New("key is taken")

// create makes the member under a name that take has returned. ctx is the caller's; see [session.persistFor].
func (s *session) create(ctx context.Context, line, name, value string, look *firstLook) (j backend.Joined, err error) {
	m := backend.Member{Line: line, Key: name, Value: value, Shared: isShared(name)}
	key, lost, before := s.b.member(m), false, s.b.log.floor()
	when := []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(key), "=", 0)}
	var reads []clientv3.Op
	if look != nil {
		reads = look.ops
	}
	claims := look != nil && look.item != nil
	if claims {
		when = append(when, clientv3.Compare(clientv3.CreateRevision(s.b.member(*look.item)), "=", int64(look.item.Position)))
	}
	var resp *clientv3.TxnResponse
	var heartbeat ack
	err = errOutdated
	for errors.Is(err, errOutdated) {
		lease, again := s.present().lease, false
		heartbeat = s.proof.last()
		resp, again, err = s.persistFor(ctx, s.Context(), txn{
			when:      when,
			then:      append(slices.Clip(reads), clientv3.OpPut(key, value, clientv3.WithLease(clientv3.LeaseID(lease)))),
			otherwise: []clientv3.Op{clientv3.OpGet(key)},
			lease:     lease,
		})
		lost = lost || again
		if err == nil {
			err = s.catchUp(s.Context(), key, lease)
		}
	}
	switch {
	case err != nil && s.Ended() != nil:
		return j, err
	case err != nil && !lost && resp == nil && s.undone(ctx, key, err): // with resp, the member stands and could not be moved
		s.free(line, name)
		return j, err
	case err != nil:
		s.disown(line, name)
		return j, err
	}
	if claims && !resp.Succeeded && len(rangeOf(resp, 0).Kvs) == 0 {
		// The item has gone for good, so another copy of the request that comes late has no effect either.
		s.free(line, name)
		return j, fmt.Errorf("%w: %s has gone", backend.ErrTaken, look.item.Key)
	}
	if lost {
		s.doubt(line, name)
	}
	m.Position = uint64(resp.Header.Revision)
	if !resp.Succeeded {
		kvs := rangeOf(resp, 0).Kvs
		switch {
		case len(kvs) == 0: // it must be there, or it would have been made
			s.disown(line, name)
			return j, &lostError{errStrange}
		case !s.had(kvs[0].Lease):
			return j, errTaken
		case !lost || kvs[0].CreateRevision <= before: // this call has not made it; it may come from a backup
			s.disown(line, name)
			return j, errTaken
		}
		m.Position = uint64(kvs[0].CreateRevision)
	}
	s.occupy(m)
	j.Member = m
	if look != nil && resp.Succeeded {
		j.Place, j.Record = s.told(ctx, m, look, heartbeat, resp)
	}
	return j, nil
}

// told returns what the transaction that has made m says of its place and of the record. heartbeat is
// the newest answered one of before.
func (s *session) told(ctx context.Context, m backend.Member, look *firstLook, heartbeat ack, resp *clientv3.TxnResponse) (p *backend.Place, r *backend.Record) {
	if look.record != "" {
		r = new(backend.Record)
		*r = recordOf(look.record, rangeOf(resp, 2))
	}
	others := rangeOf(resp, 0)
	switch {
	case look.item != nil:
		if kit.ClaimedBefore(m, s.b.membersOf(m.Line, others.Kvs)) {
			return nil, r
		}
	case others.Count > 0:
		return nil, r // somebody is in front, or a key that is no member's
	}
	h, err := headerOf(rangeOf(resp, 1))
	if err != nil {
		return nil, r // Ahead says what is wrong
	}
	if look.item == nil {
		s.sawHead(m.Line, m.Position)
	}
	place, err := s.place(ctx, m, nil, h, heartbeat, resp.Header.RaftTerm)
	if err != nil {
		return nil, r
	}
	return &place, r
}

// undone reports whether nothing stands under the key, and never will, when why is the
// only answer that etcd gave to the request to create it.
func (s *session) undone(ctx context.Context, key string, why error) bool {
	switch {
	case errors.Is(why, rpctypes.ErrNoSpace):
		// etcd may have done it all the same (server/etcdserver/apply, quotaApplierV3).
		// The deletion is sent once: one that came late would remove the next member
		// under this key.
		_, err := s.commit(s.Context(), txn{then: []clientv3.Op{clientv3.OpDelete(key)}}, s.attempt())
		return err == nil
	case errors.Is(why, backend.ErrDenied), errors.Is(why, backend.ErrInvalid), notTaken(why):
		return true
	}
	return ctx.Err() != nil && errors.Is(why, context.Cause(ctx)) // the caller has gone before etcd has taken anything
}

// take returns a name in the line for a new member, and reserves it. It also returns how many the
// session has there with it.
func (s *session) take(line string, shared bool) (name string, standing int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.numbers[line]
	if n == nil {
		n = new(numbers)
		s.numbers[line] = n
	}
	n.last++
	n.taken++
	name = memberKey(s.id, n.last, shared)
	s.taken[line+"/"+name] = new(taken)
	return name, n.taken
}

// numbers are the numbers in the names of one line. They grow as long as a name is taken, so that
// no search for a free one is needed.
type numbers struct{ last, taken int }

// occupy notes that m stands under the name that take has returned for it.
func (s *session) occupy(m backend.Member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken[m.Line+"/"+m.Key].position = m.Position
}

// watched is called when a watch of m has ended, or a look where m stands, which began at begun. If m is of this session, and all of
// them were denied for a whole TTL, watched ends the session; see [kit.Denial].
func (s *session) watched(ctx context.Context, m backend.Member, begun time.Time, err error) {
	s.mu.Lock()
	held := s.taken[m.Line+"/"+m.Key]
	tooLong := held != nil && held.position == m.Position && held.unseen.Lasts(ctx, begun, err, s.ttl)
	s.mu.Unlock()
	if tooLong {
		s.End(fmt.Errorf("for %v it was denied to watch its member %w", s.ttl, kit.About(m, err)))
	}
}

// free lets Join use the name again, unless there is doubt about it. It reports whether
// there is.
func (s *session) free(line, name string) (doubtful bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch held := s.taken[line+"/"+name]; {
	case held == nil: // two have left with the same member
		return false
	case held.doubtful:
		return true
	}
	delete(s.taken, line+"/"+name)
	if s.numbers[line].taken--; s.numbers[line].taken == 0 {
		delete(s.numbers, line)
	}
	return false
}

// doubt notes that a request to create the member may still be on its way.
func (s *session) doubt(line, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken[line+"/"+name].doubtful = true
}

// checkNesting refuses a line if another election stands within its folder, or if the
// line is within the folder of another election. etcd's own clients take every key below
// the folder for a member, and would wait for the wrong ones. It asks once for each line,
// also if many join at once. Our own clients recognize such keys, so a later election there does
// them no harm.
func (s *session) checkNesting(ctx context.Context, line string) error {
	b := s.b
	for {
		b.mu.Lock()
		known, asked := b.flat[line], b.asking[line]
		if !known && asked == nil {
			b.asking[line] = make(chan struct{})
		}
		b.mu.Unlock()
		switch {
		case known:
			return nil
		case asked == nil:
			err := s.askNesting(ctx, line)
			b.mu.Lock()
			defer b.mu.Unlock()
			if err == nil {
				if len(b.flat) >= maxChecked {
					clear(b.flat)
				}
				b.flat[line] = true
			}
			close(b.asking[line])
			delete(b.asking, line)
			return err
		}
		select {
		case <-asked:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// askNesting is checkNesting for a line that is not known.
func (s *session) askNesting(ctx context.Context, line string) error {
	folder := s.b.folder(line)
	var above []string
	for i := len(folder) - 2; i >= len(s.b.o.Prefix); i-- {
		if folder[i] == '/' {
			above = append(above, folder[:i+1])
		}
	}
	read := func(how ...clientv3.OpOption) (*clientv3.TxnResponse, error) {
		ops := []clientv3.Op{clientv3.OpGet(folder, append(how, clientv3.WithPrefix())...)}
		for _, parent := range above {
			// A sample is enough: the folder of an election holds only members, whose names
			// are hexadecimal.
			ops = append(ops, clientv3.OpGet(parent+"0", append(how, clientv3.WithRange(parent+"g"), clientv3.WithLimit(256))...))
		}
		return s.read(ctx, ops...)
	}
	find := func(resp *clientv3.TxnResponse, member func(name string, lease int64) bool) error {
		for _, kv := range rangeOf(resp, 0).Kvs {
			inner, name := path.Split(string(kv.Key[len(folder):]))
			if inner != "" && member(name, kv.Lease) {
				return nested(line, line+"/"+strings.TrimSuffix(inner, "/"))
			}
		}
		for i, parent := range above {
			for _, kv := range rangeOf(resp, 1+i).Kvs {
				if member(string(kv.Key[len(parent):]), kv.Lease) {
					return nested(strings.TrimSuffix(parent, "/"), line)
				}
			}
		}
		return nil
	}
	resp, err := read(clientv3.WithKeysOnly())
	if errors.Is(err, backend.ErrDenied) && len(above) > 0 { // this user may not see what is above
		above = nil
		resp, err = read(clientv3.WithKeysOnly())
	}
	if err != nil || find(resp, func(name string, _ int64) bool { return anyMember.MatchString(name) }) == nil {
		return err
	}
	// A name alone may deceive, and an answer without values does not say which keys have a lease.
	if resp, err = read(); err != nil {
		return err
	}
	return find(resp, isMember)
}

func nested(outer, inner string) error {
	return fmt.Errorf("%w name: the elections %s and %s cannot both be used on etcd, where the members of the second would "+
		"stand in the line of the first; choose names of which none continues the other with a slash", backend.ErrInvalid, outer, inner)
}
