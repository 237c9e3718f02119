package zookeeper

import (
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// Digest is a user of ZooKeeper's authentication scheme "digest". Servers keep no list of
// users: they accept any name and password, and the ACLs that name a user say what the
// user may do. The password goes over the network as it is: use TLS.
type Digest struct {
	User, Password string
}

// String returns the user alone.
func (d Digest) String() string { return "digest:" + d.User }

// GoString returns the user alone.
func (d Digest) GoString() string { return d.String() }

// An ACL says who may change what a backend creates. Everybody may read it, because
// otherwise foreign candidates and observers could neither wait nor look.
//
// The ACL of a znode protects its data. The right to delete a member depends on the znode above it,
// which is the election's: ZooKeeper asks for the right DELETE there (PrepRequestProcessor.java,
// OpCode.delete).
type ACL string

const (
	// CreatorACL gives every right to clients with the same credentials: the same user, or a client
	// certificate with the same subject.
	CreatorACL ACL = "creator"

	// OpenACL gives every right to everybody who reaches the ensemble.
	OpenACL ACL = "open"
)

// checkACL fills in the default. There is none for a certificate without a user: it may be
// meant for the connection only, and often each host has one of its own. Either default
// could then be wrong: what its owner creates would be open to everybody, or closed to the
// other candidates.
func (o *Options) checkACL() error {
	certificate := o.TLS != nil && (len(o.TLS.Certificates) > 0 || o.TLS.GetClientCertificate != nil)
	switch {
	case o.ACL == "" && o.Auth == nil && certificate:
		return fmt.Errorf("%w: a client certificate is given, and not who may change what it creates: "+
			"say acl=%s for all certificates with its subject, which every candidate then needs, or acl=%s for everybody who reaches the ensemble",
			backend.ErrInvalid, CreatorACL, OpenACL)
	case o.ACL == "" && o.Auth == nil:
		o.ACL = OpenACL
	case o.ACL == "":
		o.ACL = CreatorACL
	case o.ACL == CreatorACL && o.Auth == nil && !certificate:
		return fmt.Errorf("%w: acl=%s needs credentials: a user, or a client certificate", backend.ErrInvalid, o.ACL)
	case o.ACL != CreatorACL && o.ACL != OpenACL:
		return fmt.Errorf("%w acl=%s: known are %s and %s", backend.ErrInvalid, o.ACL, CreatorACL, OpenACL)
	}
	return nil
}

// acl is the ACL of all that a backend creates. Servers replace the scheme auth by every
// identity that the client has shown.
func (o *Options) acl() []zk.ACL {
	if o.ACL == OpenACL {
		return zk.WorldACL(zk.PermAll)
	}
	return append(zk.AuthACL(zk.PermAll), zk.WorldACL(zk.PermRead)...)
}

// The rights, as ZooKeeper names them.
const (
	mayRead   = "READ"
	mayWrite  = "WRITE"
	mayCreate = "CREATE"
	mayDelete = "DELETE"
)

// need returns err. If a server refused the request, it says which right is missing on path.
func need(right, path string, err error) error {
	if !errors.Is(err, zk.ErrNoAuth) || errors.Is(err, backend.ErrDenied) {
		return err
	}
	return fmt.Errorf("%w: the right %s on znode %s is missing; its ACL must give it to the user, or to the certificate, that this client has; %s",
		backend.ErrDenied, right, path, kit.RightsHint)
}

// needs is need for a transaction: it says which right is missing for which operation.
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
