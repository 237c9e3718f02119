//go:build linux

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// certificate writes one that localhost signs for itself.
func certificate(t *testing.T) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		DNSNames:              []string{"localhost"},
		NotAfter:              time.Now().Add(time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, der []byte) string {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	return write("cert.pem", "CERTIFICATE", cert), write("key.pem", "PRIVATE KEY", secret)
}

// The certificate is not that of the proxies' address, and what the operator does
// needs it as well.
func TestConformanceOverTLS(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	etcd := coordtest.NewEtcd(t, &coordtest.EtcdOptions{CertFile: cert, KeyFile: key})
	_, port, err := net.SplitHostPort(etcd.Addrs()[0])
	if err != nil {
		t.Fatal(err)
	}
	url := "etcd://localhost:" + port + "/app?ttl=2s&ca-file=" + cert
	code, stdout, stderr := here("--url", url, "conformance", "--faults", "all", "--rule", "L3.cut", "--rule", "L3.removed", "--rule", "L3.dropped")
	if code != 0 || !strings.Contains(stdout, ": 3 passed, 0 failed, 0 waived, 0 impossible, 0 not wired, in ") {
		t.Errorf("exit code %d, output\n%s\nstandard error %s", code, stdout, stderr)
	}
}
