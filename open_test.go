package succession_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/succession-dev/succession"
	_ "github.com/succession-dev/succession/consul"
	"github.com/succession-dev/succession/elect"
	_ "github.com/succession-dev/succession/etcd"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	_ "github.com/succession-dev/succession/local"
	_ "github.com/succession-dev/succession/zookeeper"
)

// A program starts before its coordinator: Open tells of a wrong URL at once, and connects to nothing; Run waits.
func TestOpenBeforeTheCoordinator(t *testing.T) {
	addr := coordtest.Refused(t)
	for _, scheme := range []string{"etcd", "consul", "zookeeper"} {
		url := scheme + "://" + addr + "/app?ttl=20s&connect=300ms"
		b, err := succession.Open(url)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		if _, err := elect.New(b, "reports", nil).Leader(t.Context()); !errors.Is(err, succession.ErrUnavailable) {
			t.Errorf("%s: a look: %v; want ErrUnavailable", scheme, err)
		}
		if _, err := succession.Connect(t.Context(), url); !errors.Is(err, succession.ErrUnavailable) {
			t.Errorf("%s: Connect: %v; want ErrUnavailable", scheme, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		err = elect.New(b, "reports", nil).Run(ctx, func(context.Context, *elect.Term) error { return nil })
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, succession.ErrUnavailable) {
			t.Errorf("%s: Run: %v; want one that has waited for the coordinator", scheme, err)
		}
		for _, wrong := range []string{"?tll=20s", "?ca-file=/nowhere", "?ttl=x"} {
			if b, err := succession.Open(scheme + "://" + addr + wrong); !errors.Is(err, succession.ErrInvalid) {
				t.Errorf("%s: Open with %s: %v, %v; want ErrInvalid", scheme, wrong, b, err)
			}
		}
	}
	if b, err := succession.Open(""); b != nil || !errors.Is(err, succession.ErrInvalid) {
		t.Errorf("Open of nothing: %v, %v", b, err)
	}
	if c, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
		c.Close()
		t.Errorf("somebody listens at %s by now, and the test has shown nothing", addr)
	}
}
