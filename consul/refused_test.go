package consul_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/consul"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// A transaction that only reads states no condition. If it was refused, what is missing
// in the answer is not absent: nobody has left the line, and nobody is first.
func TestRefusedReads(t *testing.T) {
	t.Parallel()
	addr, name := server(t), coordtest.Name(t)
	var refuse atomic.Int64 // how many reads
	var why atomic.Value
	b := ledBy(t, addr, time.Minute, "first", func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		if req.URL.Path != "/v1/txn" || kindOf(req) != "read" || refuse.Add(-1) < 0 {
			return next.RoundTrip(req)
		}
		header := http.Header{"Content-Type": {"application/json"}}
		body := io.NopCloser(strings.NewReader(fmt.Sprintf(`{"Results":null,"Errors":[{"OpIndex":1,"What":%q}]}`, why.Load())))
		return &http.Response{StatusCode: http.StatusConflict, Header: header, Body: body, Request: req}, nil
	})
	s := sessionOf(t, b)
	m := join(t, s, name, "x")

	why.Store("out of patience")
	for what, ask := range map[string]func(ctx context.Context) error{
		"Line":  func(ctx context.Context) error { _, err := s.Line(ctx, name); return err },
		"Ahead": func(ctx context.Context) error { _, err := s.Ahead(ctx, m); return err },
		"Pin":   func(ctx context.Context) error { return s.Pin(ctx, m, backend.Header{}, 0) },
	} {
		refuse.Store(1000)
		ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errEnough)
		if err := ask(ctx); !errors.Is(err, errEnough) {
			t.Errorf("%s of what could not be read returned %v, want the cause of its context", what, err)
		}
		cancel()
	}
	refuse.Store(2)
	b.leader.Store("second")
	if err := consul.Renew(s); err != nil {
		t.Fatal(err)
	}
	if p, _, err := admin(t, addr).KV().Get(name+"/"+m.Key, nil); err != nil || p == nil || p.Session != consul.SessionID(s) {
		t.Errorf("the member's key is %+v, %v; want it locked by %s", p, err, consul.SessionID(s))
	}

	why.Store(`unknown KV verb "get-or-empty"`) // Consul 1.13
	refuse.Store(1)
	if _, err := s.Line(t.Context(), name); !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), "1.14") {
		t.Errorf("Line at an old Consul returned %v, want ErrInvalid that says from which version on it works", err)
	}
}
