package consul_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/consul"
)

// A busyStore is a Consul in which others write so often that each blocking query on an
// empty line is answered at once.
type busyStore struct {
	mu             sync.Mutex
	index, queries int
	member         string // the key of who stands in line, if anybody
}

func (b *busyStore) RoundTrip(req *http.Request) (*http.Response, error) {
	time.Sleep(time.Millisecond)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.index++
	const id = "00000000-0000-0000-0000-000000000001"
	status, body := http.StatusOK, "true"
	switch kind := kindOf(req); kind {
	case "leader":
		body = `"one"`
	case "PUT /v1/session/create":
		body = fmt.Sprintf(`{"ID": %q}`, id)
	case "renewal":
		body = fmt.Sprintf(`[{"ID": %q, "CreateIndex": %d}]`, id, b.index)
	case "query", "read":
		if kind == "query" {
			b.queries++
		}
		status, body = http.StatusNotFound, ""
		if b.member != "" {
			status, body = http.StatusOK, fmt.Sprintf(`[{"Key": %q, "CreateIndex": 1, "ModifyIndex": 1}]`, b.member)
		}
	}
	header := http.Header{"X-Consul-Index": {fmt.Sprint(b.index)}, "X-Consul-Lastcontact": {"0"}}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body)), Request: req}, nil
}

// A caller that waits at an empty line must not ask as often as others write.
func TestJoinedInBusyStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var store busyStore
		b, err := consul.New(&api.Config{HttpClient: &http.Client{Transport: &store}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		s := sessionOf(t, b)
		ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Second, errEnough)
		defer cancel()
		if err := s.Joined(ctx, "line"); !errors.Is(err, errEnough) {
			t.Errorf("Joined at an empty line returned %v, want the cause of its context", err)
		}
		store.mu.Lock()
		if store.queries == 0 || store.queries > 40 {
			t.Errorf("in ten seconds there were %d queries, want some, and at most 40", store.queries)
		}
		store.mu.Unlock()

		joined := make(chan error, 1)
		go func() { joined <- s.Joined(t.Context(), "line") }()
		time.Sleep(10 * time.Second)
		store.mu.Lock()
		store.member = "line/00000000-0000-0000-0000-000000000002"
		store.mu.Unlock()
		if err := <-joined; err != nil {
			t.Error(err)
		}
	})
}
