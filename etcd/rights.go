package etcd

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// A deniedError is a transaction that etcd refused for want of a right. etcd's answer
// does not name the right.
type deniedError struct {
	t   txn
	err error
}

func (e *deniedError) Error() string { return e.err.Error() }

func (e *deniedError) Unwrap() error { return e.err }

// A right is one that a role of etcd can have.
type right struct {
	op       string // "read" or "write"
	key, end string // end is empty for a single key
}

// noEnd is the end of the range of all keys.
const noEnd = "\x00"

func (r right) String() string {
	switch r.end {
	case "":
		return r.op + " the key " + r.key
	case noEnd:
		return r.op + " all keys"
	}
	return r.op + " all keys that begin with " + r.key
}

// args returns the arguments with which etcdctl role grant-permission grants the right.
// etcd keeps one kind of right for a range. So "write" would take the right to read away,
// without which nothing can be written here.
func (r right) args() string {
	if r.end == noEnd {
		r.key = `""` // as etcdctl takes it
	}
	args := "read " + r.key
	if r.op == "write" {
		args = "readwrite " + r.key
	}
	if r.end != "" {
		args += " --prefix"
	}
	return args
}

// public returns r as an error names it: a role that may touch one member must be able to
// touch all members of its line.
func (r right) public() right {
	if dir, name := path.Split(r.key); anyMember.MatchString(name) {
		r.key, r.end = dir, clientv3.GetPrefixRangeEnd(dir)
	} else if strings.HasPrefix(r.end, dir) && strings.HasSuffix(dir, "/") && r.end != "" {
		r.key, r.end = dir, clientv3.GetPrefixRangeEnd(dir) // a part of a folder
	}
	return r
}

// rights returns what t needs, in the order in which etcd checks it
// (server/etcdserver/apply/auth.go). etcd checks both branches of a transaction,
// whichever it takes.
func (t txn) rights() []right {
	var out []right
	for _, c := range t.when {
		out = append(out, right{op: "read", key: string(c.KeyBytes())})
	}
	for _, ops := range [][]clientv3.Op{t.then, t.otherwise} {
		for _, o := range ops {
			op := "write"
			if o.IsGet() {
				op = "read"
			}
			out = append(out, right{op, string(o.KeyBytes()), string(o.RangeBytes())})
		}
	}
	return out
}

// probe returns a transaction that needs r and changes nothing: it has no condition, so
// etcd takes the first branch. It may also need another right, which has been probed
// before.
func (r right) probe() txn {
	if r.op == "write" {
		return txn{otherwise: []clientv3.Op{clientv3.OpPut(r.key, "")}}
	}
	o := []clientv3.OpOption{clientv3.WithCountOnly()}
	if r.end != "" {
		o = append(o, clientv3.WithRange(r.end))
	}
	return txn{then: []clientv3.Op{clientv3.OpGet(r.key, o...)}}
}

// explain finds out which right is missing, if err is a refusal for want of one. It asks
// for each right separately, so a refusal costs a few round trips.
func (s *session) explain(ctx context.Context, err error) error {
	var denied *deniedError
	if !errors.As(err, &denied) {
		return err
	}
	asked := make(map[right]bool)
	for _, r := range denied.t.rights() {
		if asked[r] {
			continue
		}
		asked[r] = true
		if _, perr := s.commit(ctx, r.probe(), s.attempt()); errors.Is(perr, backend.ErrDenied) {
			return s.lacks(r.public(), denied.err)
		}
	}
	if denied.t.lease != 0 {
		if _, perr := s.commit(ctx, txn{otherwise: denied.t.then}, s.attempt()); errors.Is(perr, backend.ErrDenied) {
			s.End(errLeaseOfOthers)
			return s.Ended()
		}
	}
	return err // it has been granted meanwhile, or nobody answers
}

// errLeaseOfOthers says that another user has attached a key to the session's lease, which had
// none. To attach one to it, or to keep it alive, then takes the right to write that key
// (server/etcdserver/apply/auth.go, checkLeasePuts).
var errLeaseOfOthers = errors.New("another user has attached a key to its lease")

func (s *session) lacks(r right, why error) error {
	user := "the user"
	if name := s.b.client.Username; name != "" {
		user = "user " + name
	}
	return fmt.Errorf("%w; %s lacks the right to %s: etcdctl role grant-permission ROLE %s; %s", why, user, r, r.args(), kit.RightsHint)
}
