// Package certs makes the TLS certificates that tests use.
package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A Certificate is good for a server and for a client, and lasts for a day.
type Certificate struct {
	File, KeyFile string // PEM; the key as PKCS #8, the only form that ZooKeeper reads

	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// New makes a certificate that signs itself, and may sign others. Its hosts are names and
// addresses. The files go when the test ends.
func New(t testing.TB, name string, hosts ...string) *Certificate {
	t.Helper()
	return issue(t, nil, name, hosts)
}

// Sign makes a certificate that c signs.
func (c *Certificate) Sign(t testing.TB, name string, hosts ...string) *Certificate {
	t.Helper()
	return issue(t, c, name, hosts)
}

func issue(t testing.TB, by *Certificate, name string, hosts []string) *Certificate {
	t.Helper()
	fatal := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	fatal(err)
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(time.Now().UnixNano()),
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
		IsCA:                  by == nil,
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	parent, signer := template, key
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	fatal(err)
	cert, err := x509.ParseCertificate(der)
	fatal(err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	fatal(err)
	dir := t.TempDir()
	c := &Certificate{File: filepath.Join(dir, name+".pem"), KeyFile: filepath.Join(dir, name+"-key.pem"), cert: cert, key: key}
	fatal(os.WriteFile(c.File, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	fatal(os.WriteFile(c.KeyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), 0o600))
	return c
}

// Replace replaces the file, in one step, by a copy of others, one behind the other. So do
// operators who renew certificates.
func Replace(t testing.TB, file string, by ...string) {
	t.Helper()
	var all []byte
	for _, name := range by {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, data...)
	}
	err := os.WriteFile(file+".new", all, 0o600)
	if err == nil {
		err = os.Rename(file+".new", file)
	}
	if err != nil {
		t.Fatal(err)
	}
}
