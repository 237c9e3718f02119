package metrics_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/metrics"
)

func TestHandler(t *testing.T) {
	m := metrics.New(nil)
	m.Trace(trace.Event{Election: "reports", Kind: trace.SessionOpened})
	for method, status := range map[string]int{"GET": 200, "HEAD": 200, "POST": 405, "DELETE": 405} {
		w := httptest.NewRecorder()
		m.ServeHTTP(w, httptest.NewRequest(method, "/metrics", nil))
		if w.Code != status {
			t.Errorf("%s is answered with %d, want %d", method, w.Code, status)
		}
		if status == http.StatusOK && w.Header().Get("Content-Type") != metrics.ContentType {
			t.Errorf("%s has the type %q", method, w.Header().Get("Content-Type"))
		}
		if method == "GET" && !strings.Contains(w.Body.String(), "succession_leader{election=\"reports\"} 0\n") {
			t.Errorf("GET is answered with\n%s", w.Body)
		}
	}
}
