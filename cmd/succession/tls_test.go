//go:build linux

package main

import (
	"net"
	"strings"
	"testing"

	"github.com/succession-dev/succession/internal/rig/certs"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// The certificate is not that of the proxies' address, and what the operator does
// needs it as well.
func TestConformanceOverTLS(t *testing.T) {
	t.Parallel()
	cert := certs.New(t, "localhost", "localhost")
	etcd := coordtest.NewEtcd(t, &coordtest.EtcdOptions{CertFile: cert.File, KeyFile: cert.KeyFile})
	_, port, err := net.SplitHostPort(etcd.Addrs()[0])
	if err != nil {
		t.Fatal(err)
	}
	url := "etcd://localhost:" + port + "/app?ttl=2s&ca-file=" + cert.File
	code, stdout, stderr := here("--url", url, "conformance", "--faults", "all", "--rule", "L3.cut", "--rule", "L3.removed", "--rule", "L3.dropped")
	if judged(t, stdout) && (code != 0 || !strings.Contains(stdout, ": 3 passed, 0 failed, 0 waived, 0 impossible, 0 not wired, in ")) {
		t.Errorf("exit code %d, output\n%s\nstandard error %s", code, stdout, stderr)
	}
}
