package consul_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/coordtest"
)

// certificate makes a certificate of 127.0.0.1 that signs itself, good for a server
// and for a client.
func certificate(t *testing.T) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "test"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, b []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("cert.pem", "CERTIFICATE", cert), write("key.pem", "EC PRIVATE KEY", der)
}

// Both sides show a certificate. Over TLS the client speaks HTTP/2, and all queries of
// a kind share one connection.
func TestTLS(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	c := coordtest.NewConsul(t, &coordtest.ConsulOptions{CertFile: cert, KeyFile: key, ClientCAFile: cert})
	p := coordtest.NewProxy(t, c.Addrs()[0])
	url := "consul://" + p.Addr() + "/app?ttl=1s&connect=1s"
	b, err := backend.Open(t.Context(), url+"&ca-file="+cert+"&cert-file="+cert+"&key-file="+key)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	s := sessionOf(t, b)
	name := coordtest.Name(t)
	gone := make(chan error, 10)
	for range cap(gone) {
		m := join(t, s, name, "")
		go func() { gone <- s.Gone(t.Context(), m) }()
		defer func() {
			if err := s.Leave(t.Context(), m); err != nil {
				t.Error(err)
			}
			if err := <-gone; err != nil {
				t.Error(err)
			}
		}()
	}
	select {
	case <-s.Done():
		t.Fatal(s.Err())
	case <-time.After(2 * ttl): // several renewals
	}
	if n := p.Stats().Open; n >= cap(gone) {
		t.Errorf("%d connections are open for %d queries, which should share one", n, cap(gone))
	}

	for _, query := range []string{
		"&tls=on",            // the server's certificate is not trusted
		"&ca-file=" + cert,   // the client shows none
		"&server-name=other", // the name is not that of the certificate
	} {
		b, err := backend.Open(t.Context(), url+query)
		if err == nil {
			b.Close()
		}
		if !errors.Is(err, backend.ErrUnavailable) {
			t.Errorf("%s: Open returned %v, want ErrUnavailable", query, err)
		}
	}
}
