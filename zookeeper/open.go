package zookeeper

import (
	"context"
	"fmt"

	"github.com/succession-dev/succession/backend"
)

func init() {
	backend.Register("zookeeper", func(ctx context.Context, u *backend.URL) (backend.Backend, error) {
		b, err := Open(ctx, u)
		if err != nil {
			return nil, err
		}
		return b, nil
	})
}

// Open opens the ensemble that u names:
//
//	zookeeper://h1:2181,h2:2181/chroot?session=10s&prefix=n_&connect=5s&relay=2500ms
//
// Everything but a host is optional; see [Options] for the parameters. Open
// blocks until a first session is established, ctx ends, or the connect timeout
// has passed ([backend.ErrUnavailable]).
func Open(ctx context.Context, u *backend.URL) (*Backend, error) {
	o := &Options{
		SessionTimeout: u.Duration("session", 0),
		ConnectTimeout: u.Duration("connect", 0),
		Relay:          u.Duration("relay", 0),
		Prefix:         u.Text("prefix", ""),
		Chroot:         u.Path,
	}
	if err := u.Err(); err != nil {
		return nil, fail("open", "", err)
	}
	if len(u.Hosts) == 0 {
		return nil, fail("open", "", fmt.Errorf("%w URL %s: name the servers, as in zookeeper://h1:2181,h2:2181/app", backend.ErrInvalid, u))
	}
	b, err := New(u.HostPorts("2181"), o)
	if err != nil {
		return nil, err
	}
	if _, err := b.Session(ctx); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}
