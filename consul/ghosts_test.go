package consul_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/consul"
)

// A denial to read many ghosts ends the session too, although it takes more than a TTL to ask for each of them.
func TestManyGhostsThatMayNotBeRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const ttl = 15 * time.Second
		b, err := consul.New(&api.Config{HttpClient: &http.Client{Transport: new(busyStore)}}, &consul.Options{TTL: ttl})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		consul.Tap(b, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
			if req.URL.Path != "/v1/txn" {
				return next.RoundTrip(req)
			}
			time.Sleep(ttl / 500)
			return &http.Response{StatusCode: http.StatusForbidden, Header: make(http.Header), Body: io.NopCloser(strings.NewReader("Permission denied")), Request: req}, nil
		})
		s := sessionOf(t, b)
		for i := range consul.MaxGhosts / 2 { // they take two requests each
			consul.Abandon(s, fmt.Sprintf("line/ghost-%d", i))
		}
		select {
		case <-s.Done():
			if err := s.Err(); !strings.Contains(fmt.Sprint(err), backend.ErrDenied.Error()) {
				t.Errorf("the session has ended because of %v", err)
			}
		case <-time.After(10 * ttl):
			t.Error("the session lives on")
		}
	})
}
