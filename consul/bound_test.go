package consul

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/backend"
)

// What answers without an end is cut off, on each of the connections, and named.
func TestEndlessAnswer(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for chunk := make([]byte, 1<<20); r.Context().Err() == nil; {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}))
	t.Cleanup(s.Close)
	o, err := (*Options)(nil).filled()
	if err != nil {
		t.Fatal(err)
	}
	c, err := newClient(t.Context(), &api.Config{Address: s.URL}, o, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	if len(c.https) == 0 {
		t.Error("the client has no connections")
	}
	for _, h := range c.https {
		resp, err := h.Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if n != maxAnswer || !errors.Is(err, errTooLong) {
			t.Errorf("%d bytes were read, and then %v", n, err)
		}
		if err := c.explain(err); !errors.Is(err, backend.ErrUnavailable) || !strings.Contains(err.Error(), "longer than 128 MiB") || !strings.Contains(err.Error(), "in its place") {
			t.Errorf("that is explained as %v", err)
		}
	}
}
