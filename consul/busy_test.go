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

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/consul"
)

// A busyStore is a Consul in which others write so often that each blocking query is
// answered at once.
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
		entry := fmt.Sprintf(`{"Key": %q, "CreateIndex": 1, "ModifyIndex": 1}`, b.member)
		const none = `{"KV": {"Key": "line"}}, {"KV": {"Key": "line/"}}` // there is no header
		switch {
		case req.URL.Path == "/v1/txn" && b.member == "":
			body = `{"Results": [` + none + `]}`
		case req.URL.Path == "/v1/txn":
			body = fmt.Sprintf(`{"Results": [{"KV": %s}, %s]}`, entry, none)
		case b.member == "":
			status, body = http.StatusNotFound, ""
		case kind == "query":
			body = fmt.Sprintf(`[%q]`, b.member)
		default:
			body = fmt.Sprintf(`[%s]`, entry)
		}
	}
	header := http.Header{"X-Consul-Index": {fmt.Sprint(b.index)}, "X-Consul-Lastcontact": {"0"}}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body)), Request: req}, nil
}

// A caller that waits for a change of a line must not ask as often as others write.
func TestWatchLineInBusyStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var store busyStore
		b, err := consul.New(&api.Config{HttpClient: &http.Client{Transport: &store}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		s := sessionOf(t, b)
		// waits watches a line that stays as it is.
		waits := func(what string, after backend.Line) {
			store.mu.Lock()
			store.queries = 0
			store.mu.Unlock()
			ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Second, errEnough)
			defer cancel()
			if l, err := s.WatchLine(ctx, "line", after); !errors.Is(err, errEnough) {
				t.Errorf("WatchLine of %s returned %+v, %v, want the cause of its context", what, l, err)
			}
			store.mu.Lock()
			defer store.mu.Unlock()
			if store.queries == 0 || store.queries > 40 {
				t.Errorf("WatchLine of %s sent %d queries in ten seconds, want some, and at most 40", what, store.queries)
			}
		}
		waits("an empty line", backend.Line{})

		type result struct {
			l   backend.Line
			err error
		}
		joined := make(chan result, 1)
		go func() {
			l, err := s.WatchLine(t.Context(), "line", backend.Line{})
			joined <- result{l, err}
		}()
		time.Sleep(10 * time.Second)
		store.mu.Lock()
		store.member = "line/00000000-0000-0000-0000-000000000002"
		store.mu.Unlock()
		r := <-joined
		if r.err != nil || len(r.l.Members) != 1 {
			t.Fatalf("WatchLine returned %+v, %v, want the line of one", r.l, r.err)
		}
		waits("a line of one", r.l)
	})
}
