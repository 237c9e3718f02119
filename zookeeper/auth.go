package zookeeper

import (
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession/backend"
)

// Digest is a user of ZooKeeper's authentication scheme "digest". Servers keep no
// list of users: any name and password are accepted, and what they are good for is
// said by the ACLs that name them. The password goes over the network as it is: use
// TLS.
type Digest struct {
	User, Password string
}

// String returns the user alone.
func (d Digest) String() string { return "digest:" + d.User }

// GoString returns the user alone.
func (d Digest) GoString() string { return d.String() }

// acl is the ACL of all that a backend creates. With credentials it gives every
// right to those who have the same, and everybody else the right to read: without
// that, foreign participants and observers could neither wait nor look.
//
// It protects a znode's data. Whether a member may be deleted is a matter of the
// znode above it, which is the line: ZooKeeper asks for the right DELETE there
// (PrepRequestProcessor.java, OpCode.delete).
func (o *Options) acl() []zk.ACL {
	if o.Auth == nil {
		return zk.WorldACL(zk.PermAll)
	}
	return append(zk.AuthACL(zk.PermAll), zk.WorldACL(zk.PermRead)...)
}

// The rights, by ZooKeeper's names for them.
const (
	mayRead   = "READ"
	mayWrite  = "WRITE"
	mayCreate = "CREATE"
	mayDelete = "DELETE"
)

// need names the right that a server missed.
func need(right, path string, err error) error {
	if !errors.Is(err, zk.ErrNoAuth) || errors.Is(err, backend.ErrDenied) {
		return err
	}
	return fmt.Errorf("%w: the right %s on znode %s is missing; its ACL must give it to whoever the parameters user and password-file name",
		backend.ErrDenied, right, path)
}

// needs names the right that a server missed for one of the operations of a
// transaction.
func needs(ops []any, results []zk.MultiResponse, err error) error {
	if err != zk.ErrNoAuth {
		return err
	}
	for i, r := range results {
		if r.Error != zk.ErrNoAuth || i >= len(ops) {
			continue
		}
		switch op := ops[i].(type) {
		case *zk.CheckVersionRequest:
			return need(mayRead, op.Path, err)
		case *zk.SetDataRequest:
			return need(mayWrite, op.Path, err)
		case *zk.CreateRequest:
			return need(mayCreate, parent(op.Path), err)
		case *zk.DeleteRequest:
			return need(mayDelete, parent(op.Path), err)
		}
	}
	return err
}
