package consul_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// silent returns the address of a server that accepts connections and says nothing.
func silent(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String() // the kernel accepts
}

// web returns the address of a server that is not Consul.
func web(t *testing.T, status int) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		io.WriteString(w, "<html><body>welcome</body></html>")
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// A wrong address fails within five seconds by default, and the error says what is wrong
// with it.
func TestOpenUnreachable(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	secure := coordtest.NewConsul(t, &coordtest.ConsulOptions{CertFile: cert, KeyFile: key}).Addrs()[0]
	production := coordtest.NewConsul(t, &coordtest.ConsulOptions{MinTTL: 10 * time.Second}).Addrs()[0]
	plain := server(t)
	tests := []struct {
		name string
		url  string
		is   error
		says string
	}{
		{"wrong port", "consul://" + coordtest.Refused(t), backend.ErrUnavailable, "connection refused"},
		{"silent server", "consul://" + silent(t), backend.ErrUnavailable, "answers in time"},
		{"silent server, TLS", "consul://" + silent(t) + "?tls=on", backend.ErrUnavailable, "answers in time"},
		{"another server, 404", "consul://" + web(t, http.StatusNotFound), backend.ErrUnavailable, "is not the HTTP API of Consul"},
		{"another server, 200", "consul://" + web(t, http.StatusOK), backend.ErrUnavailable, "is not the HTTP API of Consul"},
		{"TLS at a plain port", "consul://" + plain + "?tls=on", backend.ErrUnavailable, "does not speak TLS; remove tls=on"},
		{"plain at a TLS port", "consul://" + secure, backend.ErrInvalid, "speaks TLS; add tls=on"},
		{"certificate not trusted", "consul://" + secure + "?tls=on", backend.ErrUnavailable, "certificate signed by unknown authority"},
		{"name that does not exist", "consul://no-such-host.invalid", backend.ErrUnavailable, "no-such-host.invalid"},
		{"TTL below the least", "consul://" + production + "?ttl=9s", backend.ErrInvalid, "TTL 9s"},
		{"TTL below the least, what to do", "consul://" + production + "?ttl=9s", backend.ErrInvalid, "session_ttl_min"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			watch := calm.Start(t)
			b, err := succession.Connect(t.Context(), tt.url)
			if err == nil {
				b.Close()
			}
			if (!errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.says)) && (err == nil || !watch.NotJudged(prompt/4, "got error %v", err)) {
				t.Errorf("got error %v, want %v that says %q", err, tt.is, tt.says)
			} else {
				t.Log(err)
			}
			watch.Within(prompt+ttl/2, "Open")
		})
	}
}

// What answers in place of Consul may answer at length. An error, which is logged again and again, has the beginning.
func TestErrorsAreBounded(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusNotFound, http.StatusForbidden, http.StatusTooManyRequests, http.StatusBadRequest, http.StatusBadGateway} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			io.WriteString(w, strings.Repeat("Permission denied? ", 100_000)[:1_000_000])
		}))
		t.Cleanup(s.Close)
		b, err := succession.Connect(t.Context(), "consul://"+strings.TrimPrefix(s.URL, "http://")+"?connect=1s")
		if err == nil {
			b.Close()
			t.Fatalf("%d is no error", status)
		}
		if n := len(err.Error()); n > 4000 {
			t.Errorf("the error of %d has %d bytes", status, n)
		}
	}
}
