package coordtest_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// consulAsk sends a request to the server at addr and returns the answer.
func consulAsk(t *testing.T, method, addr, path, body string) (status int, answer string) {
	t.Helper()
	status, answer, err := request(t.Context(), method, addr, path, body)
	if err != nil {
		t.Fatal(err)
	}
	return status, answer
}

// request sends a request to the server at addr, and leaves no connection.
func request(ctx context.Context, method, addr, path, body string) (status int, answer string, err error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+addr+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

func TestConsulData(t *testing.T) {
	tests := []struct {
		name string
		o    coordtest.ConsulOptions
		keep bool // a restart keeps the data
	}{
		{"in memory", coordtest.ConsulOptions{}, false},
		{"durable", coordtest.ConsulOptions{Durable: true}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := coordtest.NewConsul(t, &tt.o)
			s := c.Servers()[0]
			put := func() {
				t.Helper()
				if status, answer := consulAsk(t, "PUT", s.Addr(), "/v1/kv/x", "1"); status != http.StatusOK {
					t.Fatalf("status %d: %s", status, answer)
				}
			}
			kept := func() bool {
				t.Helper()
				status, _ := consulAsk(t, "GET", s.Addr(), "/v1/kv/x?consistent", "")
				return status == http.StatusOK
			}
			put()
			if !kept() {
				t.Fatal("a key that was just written is missing")
			}
			if err := s.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			if kept() != tt.keep {
				t.Errorf("after a restart the data are there: %t, want %t", !tt.keep, tt.keep)
			}
			put()
			if err := c.Wipe(t.Context()); err != nil {
				t.Fatal(err)
			}
			if kept() {
				t.Error("the data have outlived Wipe")
			}
		})
	}
}

// Sessions are fast enough to test with, as far as MinTTL says.
func TestConsulMinTTL(t *testing.T) {
	c := coordtest.NewConsul(t, &coordtest.ConsulOptions{MinTTL: 50 * time.Millisecond})
	addr, nodes := c.Addrs()[0], c.Nodes()
	if len(nodes) != 1 {
		t.Fatalf("the nodes are %q", nodes)
	}
	// A server enters itself into the catalog soon after it serves.
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		_, answer := consulAsk(t, "GET", addr, "/v1/catalog/nodes", "")
		if strings.Contains(answer, nodes[0]) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the catalog has no node %s: %s", nodes[0], answer)
		}
	}
	if status, answer := consulAsk(t, "PUT", addr, "/v1/session/create", `{"TTL":"50ms","NodeChecks":[]}`); status != http.StatusOK {
		t.Errorf("status %d: %s", status, answer)
	}
	if status, answer := consulAsk(t, "PUT", addr, "/v1/session/create", `{"TTL":"49ms","NodeChecks":[]}`); status != http.StatusInternalServerError {
		t.Errorf("status %d: %s", status, answer)
	}
}

func TestConsulCluster(t *testing.T) {
	c := coordtest.NewConsul(t, &coordtest.ConsulOptions{Nodes: 3})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	leader, err := c.LeaderAfter(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	leader.Kill()
	next, err := c.LeaderAfter(ctx, leader)
	if err != nil {
		t.Fatal(err)
	}
	if err := next.Ready(ctx); err != nil {
		t.Error(err)
	}
	if err := leader.Restart(ctx); err != nil {
		t.Error(err)
	}
}
