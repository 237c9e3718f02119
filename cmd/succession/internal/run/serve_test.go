//go:build unix

package run

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

func TestServeAddr(t *testing.T) {
	for asked, want := range map[string]string{
		"9090":         "127.0.0.1:9090",
		":9090":        "127.0.0.1:9090",
		"0.0.0.0:9090": "0.0.0.0:9090",
		"[::1]:9090":   "[::1]:9090",
		"web-1:http":   "web-1:http",
		"":             "",
		"web-1":        "",
		":http":        "",
		"99999":        "",
		"-1":           "",
		"::1":          "",
	} {
		got, err := serveAddr(asked)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("serveAddr(%q) = %q, %v; want %q", asked, got, err, want)
		}
	}
}

// A page of another site whose name points to this machine gets nothing of what is for this machine alone. What other machines
// reach may have any name.
func TestServeAnswersItsOwnHosts(t *testing.T) {
	h := ownHosts(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "the token") }))
	for _, tt := range []struct {
		at, host string
		code     int
	}{
		{"127.0.0.1:9090", "127.0.0.1:9090", 200},
		{"127.0.0.1:9090", "localhost:9090", 200},
		{"[::1]:9090", "[::1]:9090", 200},
		{"127.0.0.1:9090", "rebound.example.com:9090", 421},
		{"127.0.0.1:9090", "10.0.0.7:9090", 421},
		{"127.0.0.1:9090", "", 421},
		{"10.0.0.7:9090", "10.0.0.7:9090", 200},
		{"10.0.0.7:9090", "web-1.example.com", 200},
	} {
		r := httptest.NewRequest(http.MethodGet, "/leader", nil)
		r.Host = tt.host
		at := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(tt.at))
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, at))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != tt.code || (w.Code == 200) != strings.Contains(w.Body.String(), "token") {
			t.Errorf("at %s a request for %q is answered with %d, %s; want %d", tt.at, tt.host, w.Code, w.Body, tt.code)
		}
	}
}
