package etcd

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/succession-dev/succession/backend"
)

// Our lease IDs begin with leaseMark. So the name distinguishes a member from a record, also if the
// member is pinned and has no lease. etcd lets the client choose the ID (etcdserverpb,
// LeaseGrantRequest.ID).
const leaseMark = 0x5ecc << 48

func newLeaseID() int64 { return leaseMark | rand.Int64N(1<<48) }

var (
	// ourMember is the name of a member of ours: hex(lease), a number if the session has
	// joined the same line again, and what says that it is shared.
	ourMember = regexp.MustCompile(`^5ecc[0-9a-f]{12}(-[0-9]+)?(-shared)?$`)
	// anyMember is what the name of a member of any client looks like: of ours, and of those whose lease ID etcd has chosen. That is
	// in hexadecimal, without leading zeros: 15 bits of the server's ID, which may be 0, 40 of the time when it started, in
	// milliseconds, and 8 of a counter that goes on into these (pkg/idutil of etcd). Times, addresses of network cards and short IDs
	// of containers look like that, too; see [isMember].
	anyMember = regexp.MustCompile(`^[0-9a-f]{12,16}(-[0-9]+)?(-shared)?$`)
)

// isMember reports whether the name is that of a member, if it is that of a key with the lease: of ours, or of etcd's own elections, which
// name their members after the lease.
func isMember(name string, lease int64) bool {
	return ourMember.MatchString(name) || lease != 0 && name == memberKey(lease, 1, false)
}

// record returns the key of a record, or of an election's header.
func (b *Backend) record(name string) string { return b.o.Prefix + name }

// folder returns what the keys of a line's members begin with.
func (b *Backend) folder(line string) string { return b.o.Prefix + line + "/" }

// member returns the key of a member.
func (b *Backend) member(m backend.Member) string { return b.folder(m.Line) + m.Key }

// memberKey returns the name of the nth member of a session in one line; lease is the
// session's first. The first member has the name that etcd's own elections give it
// (client/v3/concurrency, election.go). Nobody reads the number; the name must only be unique
// in the line. The name also says whether the member is shared, because an answer with keys alone
// has no values.
func memberKey(lease int64, nth int, shared bool) string {
	key := fmt.Sprintf("%x", lease)
	if nth > 1 {
		key += fmt.Sprintf("-%d", nth)
	}
	if shared {
		key += sharedSuffix
	}
	return key
}

// itemKey returns the name of an item that is appended when the log is known to have the revision.
// So its position is larger. A random number follows, because many may append at one revision.
func itemKey(revision int64) string {
	return fmt.Sprintf("%s-%d", itemMark(uint64(revision)), 2+rand.IntN(1<<31-2))
}

// itemMark returns what the names of items begin with that were appended when the log was known to
// have the revision.
func itemMark(revision uint64) string { return fmt.Sprintf("%x", leaseMark|revision&(1<<48-1)) }

// appendedAfter returns the revision in the name of an item; 0 if it is none.
func appendedAfter(name string) uint64 {
	mark, _, ok := strings.Cut(name, "-")
	id, err := strconv.ParseUint(mark, 16, 64)
	if !ok || err != nil || id>>48 != leaseMark>>48 {
		return 0
	}
	return id & (1<<48 - 1)
}

const sharedSuffix = "-shared"

func isShared(key string) bool { return strings.HasSuffix(key, sharedSuffix) }

// memberOf returns the member that kv is, or false if it is no member of the line. Members
// stand directly in the folder. A key there without a lease, whose name is not like that
// of a member of ours, is a record that somebody has put in the wrong place: no other client pins
// a member. If the answer does not show leases, it may also be a foreign member.
func (b *Backend) memberOf(line string, kv *mvccpb.KeyValue) (backend.Member, bool) {
	rest, ok := strings.CutPrefix(string(kv.Key), b.folder(line))
	if !ok || rest == "" || strings.Contains(rest, "/") || kv.Lease == 0 && !ourMember.MatchString(rest) {
		return backend.Member{}, false
	}
	return backend.Member{
		Line:     line,
		Key:      rest,
		Position: uint64(kv.CreateRevision),
		Value:    strings.ToValidUTF8(string(kv.Value), "\uFFFD"), // foreign clients write what they like
		Shared:   isShared(rest),
		Pinned:   kv.Lease == 0,
	}, true
}

// prefixOf returns the prefix of keys that the path of a URL stands for.
func prefixOf(path string) string {
	p := strings.TrimPrefix(path, "/")
	if p == "" || strings.HasSuffix(p, "/") {
		return p
	}
	return p + "/"
}
