package etcd_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// openByProxy is what names the URL that the process of [TestOpenByProxy] opens.
const openByProxy = "SUCCESSION_ETCD_TEST_OPEN"

// TestOpenByProxy opens a backend by way of a proxy that the environment names, with a server
// behind it and with nobody there. It does so in processes of their own, as Go reads that
// part of the environment once.
func TestOpenByProxy(t *testing.T) {
	if url := os.Getenv(openByProxy); url != "" {
		b, err := succession.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		b.Close()
		return
	}
	t.Parallel()
	proxy := httptest.NewServer(connectTo(sharedEtcd(t).Addrs()[0]))
	t.Cleanup(proxy.Close)
	open := func(proxy, excluded string) (string, error) {
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOpenByProxy$")
		c.Env = append(os.Environ(), openByProxy+"=etcd://etcd.invalid", "HTTPS_PROXY="+proxy, "NO_PROXY="+excluded)
		out, err := c.CombinedOutput()
		return string(out), err
	}
	if out, err := open(proxy.URL, ""); err != nil {
		t.Errorf("through the proxy: %v: %s", err, out)
	}
	nobody := coordtest.Refused(t)
	out, err := open("http://user:secret@"+nobody, "")
	if err == nil || !strings.Contains(out, "the proxy http://user:xxxxx@"+nobody) || strings.Contains(out, "no server listens there") {
		t.Errorf("a proxy that does not run: %v: %s", err, out)
	}
	if out, err := open(proxy.URL, "etcd.invalid"); err == nil || !strings.Contains(out, "no such host") {
		t.Errorf("a host that needs no proxy: %v: %s", err, out)
	}
}

// connectTo is a proxy that connects everybody to the address.
func connectTo(addr string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		server, err := net.Dial("tcp", addr)
		if err != nil || r.Method != http.MethodConnect {
			http.Error(w, "no", http.StatusBadGateway)
			return
		}
		defer server.Close()
		client, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer client.Close()
		_, _ = io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n")
		go func() {
			_, _ = io.Copy(server, client)
			server.Close()
		}()
		_, _ = io.Copy(client, server)
	})
}
