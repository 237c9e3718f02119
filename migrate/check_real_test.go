package migrate_test

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/lane"
	"github.com/succession-dev/succession/migrate"
)

// A check on a coordinator that refuses a right names the coordinator, what could not
// be done there, and the right.
func TestCheckNamesTheRight(t *testing.T) {
	lane.Real(t)
	addr := coordtest.NewZooKeeper(t, nil).Addrs()[0]
	conn, _, err := zk.Connect([]string{addr}, 10*time.Second, zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for path, acl := range map[string][]zk.ACL{"/read": zk.WorldACL(zk.PermRead), "/app": zk.WorldACL(zk.PermAll)} {
		if _, err := conn.Create(path, nil, 0, acl); err != nil {
			t.Fatal(err)
		}
	}
	check := func(path string) error {
		b, err := succession.Connect(t.Context(), "migrate:?from="+url.QueryEscape("zookeeper://"+addr+path)+"&to=local:"+t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		return b.(*migrate.Backend).Check(t.Context(), election)
	}
	err = check("/read")
	if !errors.Is(err, backend.ErrDenied) {
		t.Fatalf("Check without the right to write: %v; want ErrDenied", err)
	}
	for _, word := range []string{"zookeeper://" + addr + "/read: ", "could not write a record", "CREATE", "/read"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error %q does not say %q", err, word)
		}
	}
	if err := check("/app"); err != nil {
		t.Errorf("Check with all rights: %v", err)
	}
	left, _, err := conn.Children("/app")
	left = slices.DeleteFunc(left, func(name string) bool { return name == "~deletions" }) // the driver's own
	if err != nil || len(left) > 0 {
		t.Errorf("a check leaves %q, %v", left, err)
	}
}
