//go:build unix

package run

import "testing"

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
