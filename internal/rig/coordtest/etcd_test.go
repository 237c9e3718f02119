package coordtest_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// etcdPut writes a key through the server's HTTP gateway and returns the revision.
func etcdPut(t *testing.T, addr string) int {
	t.Helper()
	_, body, err := request(t.Context(), http.MethodPost, addr, "/v3/kv/put", `{"key":"YQ==","value":"YQ=="}`)
	if err != nil {
		t.Fatal(err)
	}
	var answer struct{ Header struct{ Revision string } }
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(answer.Header.Revision)
	if err != nil {
		t.Fatalf("%+v: %v", answer, err)
	}
	return n
}

func TestEtcd(t *testing.T) {
	e := coordtest.NewEtcd(t, nil)
	addr := e.Addrs()[0]
	first := etcdPut(t, addr)
	if err := e.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := etcdPut(t, addr); n != first+1 {
		t.Errorf("after a restart the revision is %d; want %d", n, first+1)
	}
	if err := e.Wipe(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := etcdPut(t, addr); n != first {
		t.Errorf("after a wipe the revision is %d; want %d", n, first)
	}
}

func TestEtcdCluster(t *testing.T) {
	t.Parallel()
	// A leader that was deposed in the middle of a write would not say whether it has been done.
	e := coordtest.NewEtcd(t, &coordtest.EtcdOptions{Nodes: 3, Heartbeat: 200 * time.Millisecond, Election: 2 * time.Second})
	first := etcdPut(t, e.Addrs()[0])
	e.Servers()[0].Kill()
	// The survivors may have to elect a leader.
	if err := e.Servers()[1].Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := etcdPut(t, e.Addrs()[1]); n != first+1 {
		t.Errorf("the other servers are at revision %d; want %d", n, first+1)
	}
	if err := e.Servers()[0].Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := etcdPut(t, e.Addrs()[0]); n != first+2 {
		t.Errorf("the server that was restarted is at revision %d; want %d", n, first+2)
	}
}
