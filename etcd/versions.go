package etcd

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// A release is a version of etcd: 3, minor and patch.
type release struct{ minor, patch int }

// releases are the first release of each minor version that has a property; later minor versions
// have it, too.
type releases []release

var (
	// sound are the releases whose leases can be trusted: docs/safety.md says why.
	sound = releases{{5, 23}, {6, 5}, {7, 0}}
	// strict are the releases that enforce the rights of users: docs/etcd.md says what others
	// allow.
	strict = releases{{5, 33}, {6, 14}, {7, 1}}
)

func (all releases) String() string {
	var names []string
	for _, r := range all {
		names = append(names, fmt.Sprintf("3.%d.%d", r.minor, r.patch))
	}
	return strings.Join(names, ", ")
}

// have reports whether the version is one of them, or later. A version that cannot be read is taken
// for a later one, and one that precedes a release, such as 3.6.0-rc.0, for the one before.
func (all releases) have(version string) bool {
	plain, _, early := strings.Cut(version, "-")
	parts := strings.Split(plain, ".")
	var n [3]int
	for i := range n {
		var err error
		if len(parts) != len(n) {
			return true
		}
		if n[i], err = strconv.Atoi(parts[i]); err != nil {
			return true
		}
	}
	if n[0] != 3 {
		return n[0] > 3
	}
	if early {
		n[2]--
	}
	for _, r := range all {
		if n[1] == r.minor {
			return n[2] >= r.patch
		}
	}
	return n[1] > all[len(all)-1].minor
}

// heedVersion warns, once for a backend, of a server that is too old. It asks one server for its
// version, which some versions tell only to root.
func (s *session) heedVersion() {
	if s.b.aged.Swap(true) {
		return
	}
	ctx, cancel := context.WithTimeout(s.Context(), s.b.o.ConnectTimeout)
	defer cancel()
	is, err := pb.NewMaintenanceClient(s.b.client.ActiveConnection()).Status(ctx, new(pb.StatusRequest))
	switch {
	case err != nil: // it does not tell, or is away
	case !sound.have(is.Version):
		s.b.o.Logger.Warn("this etcd may confirm a lease that it has just ended, so that two lead; use "+sound.String()+" or later", "version", is.Version)
	case !s.b.strict.have(is.Version) && s.b.authenticates(ctx):
		s.b.o.Logger.Warn("this etcd lets others do what they have no right to, such as to prolong a dead leader's lease; use "+s.b.strict.String()+" or later", "version", is.Version)
	}
}

// authenticates reports whether etcd requires authentication. A server that does not says so to
// every login, also to one without a user.
func (b *Backend) authenticates(ctx context.Context) bool {
	if b.client.Username != "" {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err := pb.NewAuthClient(b.client.ActiveConnection()).Authenticate(ctx, &pb.AuthenticateRequest{})
	return err != nil && !errors.Is(rpctypes.Error(err), rpctypes.ErrAuthNotEnabled) && ctx.Err() == nil
}
